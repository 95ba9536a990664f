extension Language {
    static let english = Language(
        "en", pronouns: Pronouns(author: "Somebody", person: "somebody", reader: "you"),
        attribution: Attribution(
            remove: "Remove", removeWords: ["remove"], reply: "Reply to {name}", plainReply: "Reply",
            fromOne: "From {name}",
            fromTwo: "From {name} and {other}", fromMany: "From {name} and {count} others"),
        manageButtonTitle: CollaborationDetails.standardManageButtonTitle
    ) { sentence in
        switch sentence {
        case .edited: Wording("{author} edited “{title}”", untitled: "{author} edited the shared content")
        case .commented:
            Wording("{author} commented in “{title}”", untitled: "{author} commented in the shared content")
        case .joined: Wording("{author} joined “{title}”", untitled: "{author} joined the shared content")
        case .left: Wording("{author} left “{title}”", untitled: "{author} left the shared content")
        case .added:
            Wording("{author} added {person} to “{title}”", untitled: "{author} added {person} to the shared content")
        case .removed:
            Wording(
                "{author} removed {person} from “{title}”",
                untitled: "{author} removed {person} from the shared content")
        case .mentioned:
            Wording(
                "{author} mentioned {person} in “{title}”",
                untitled: "{author} mentioned {person} in the shared content")
        case .created: Wording("{author} created “{title}”", untitled: "{author} created the shared content")
        case .deleted: Wording("{author} deleted “{title}”", untitled: "{author} deleted the shared content")
        case .renamed: Wording("{author} renamed “{title}”", untitled: "{author} renamed the shared content")
        case .moved: Wording("{author} moved “{title}”", untitled: "{author} moved the shared content")
        case .arrived:
            Wording(
                "There is a new participant in “{title}”",
                untitled: "There is a new participant in the shared content")
        case .departed:
            Wording(
                "A participant no longer takes part in “{title}”",
                untitled: "A participant no longer takes part in the shared content")
        }
    }
}
