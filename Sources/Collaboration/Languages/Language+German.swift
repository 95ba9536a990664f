extension Language {
    static let german = Language(
        "de", pronouns: Pronouns(author: "Jemand", person: "jemanden", reader: "dich"),
        attribution: Attribution(
            remove: "Entfernen", removeWords: ["entfernen", "entferne", "entfernt"], reply: "Antwort an {name}",
            plainReply: "Antworten",
            fromOne: "Von {name}", fromTwo: "Von {name} und {other}", fromMany: "Von {name} und {count} weiteren"),
        manageButtonTitle: "Geteilte Datei verwalten"
    ) { sentence in
        switch sentence {
        case .edited:
            Wording("{author} hat „{title}“ bearbeitet", untitled: "{author} hat den geteilten Inhalt bearbeitet")
        case .commented:
            Wording("{author} hat in „{title}“ kommentiert", untitled: "{author} hat im geteilten Inhalt kommentiert")
        case .joined:
            Wording("{author} ist „{title}“ beigetreten", untitled: "{author} ist dem geteilten Inhalt beigetreten")
        case .left: Wording("{author} hat „{title}“ verlassen", untitled: "{author} hat den geteilten Inhalt verlassen")
        case .added:
            Wording(
                "{author} hat {person} zu „{title}“ hinzugefügt",
                untitled: "{author} hat {person} zum geteilten Inhalt hinzugefügt")
        case .removed:
            Wording(
                "{author} hat {person} aus „{title}“ entfernt",
                untitled: "{author} hat {person} aus dem geteilten Inhalt entfernt")
        case .mentioned:
            Wording(
                "{author} hat {person} in „{title}“ erwähnt",
                untitled: "{author} hat {person} im geteilten Inhalt erwähnt")
        case .created:
            Wording("{author} hat „{title}“ erstellt", untitled: "{author} hat den geteilten Inhalt erstellt")
        case .deleted:
            Wording("{author} hat „{title}“ gelöscht", untitled: "{author} hat den geteilten Inhalt gelöscht")
        case .renamed:
            Wording("{author} hat „{title}“ umbenannt", untitled: "{author} hat den geteilten Inhalt umbenannt")
        case .moved:
            Wording("{author} hat „{title}“ verschoben", untitled: "{author} hat den geteilten Inhalt verschoben")
        case .arrived:
            Wording("In „{title}“ ist jemand neu dabei", untitled: "Im geteilten Inhalt ist jemand neu dabei")
        case .departed:
            Wording(
                "In „{title}“ ist jemand nicht mehr dabei", untitled: "Im geteilten Inhalt ist jemand nicht mehr dabei")
        }
    }
}
