import Core
import Foundation
import RootgateClient

/// Verbs that move one collaboration to another service, or keep a copy of it.
let transferVerbs: [CollabVerb] = [
    CollabVerb(
        Verb(
            "export", "ID", 1...1, options: ["owner", "with-notices", "with-shelves"],
            "write a collaboration and its people to standard output")
    ) { call in
        let collaboration = try call.collaboration()
        let owner = try call.arguments.text("owner").map(call.account(named:))
        let (wantsNotices, wantsShares) = (
            call.arguments.isOn("with-notices"), call.arguments.isOn("with-shelves")
        )
        let export = CollabExport(
            client: try call.client(), collaboration: collaboration, owner: owner, wantsNotices: wantsNotices,
            wantsShares: wantsShares)
        try await export.run { printNow($0, terminator: "") }
        return .success
    },
    CollabVerb(Verb("import", "FILE", 1...1, "make a collaboration as an export says (-: standard input)")) { call in
        let path = try call.operand(0, "the file")
        let patience = Duration.seconds(try call.arguments.decimal("timeout", in: 0.01...86_400))
        let client = try call.client()
        let file = try TransferFile(path)
        let work = CollabImport(file, by: client, patience: patience)
        switch file.subject {
        case .collaboration(let settings):
            report(try await work.make(settings), of: settings.collaboration, file, from: settings.url, call.arguments)
        case .rootSet(let set):
            report(try await work.makeSet(set), of: set.collaboration, file, from: nil, call.arguments)
        }
        return .success
    },
]

/// What an import has made, as JSON.
private struct ImportReport: Encodable {
    struct Link: Encodable {
        let identity: PersonIdentity
        let account: Account
    }

    let collaboration: CollaborationIdentifier
    let url: URL?
    let participants: Int
    let roots: Int
    let shares: Int
    let isRepeat: Bool
    /// Participants of the file who are not let in.
    let leftOut: [PersonIdentity]
    /// Links that people need again once they have joined.
    let links: [Link]
    /// Open invitations of the file, which nobody can accept here.
    let invitations: Int
    let notices: Int
}

/// Prints what was imported, and what has to be done by hand.
private func report(
    _ summary: CollabImport.Summary, of collaboration: CollaborationIdentifier, _ file: TransferFile, from source: URL?,
    _ arguments: Arguments
) {
    let report = ImportReport(
        collaboration: collaboration, url: summary.url, participants: summary.participants, roots: summary.roots,
        shares: summary.shares, isRepeat: summary.isRepeat, leftOut: summary.leftOut,
        links: summary.unlinked.map { ImportReport.Link(identity: $0.person, account: $0.account) },
        invitations: file.end.invitations, notices: file.end.notices)
    guard !arguments.isOn("json") else {
        // The command's own values can always be written as JSON.
        return printNow(String(decoding: (try? JSON.encode(report)) ?? [], as: UTF8.self).escapingControls)
    }
    let name = collaboration.description.escapingControls
    var lines = [
        "imported \(name)\(summary.isRepeat ? ", which an earlier run had begun or made" : ""): "
            + "\(summary.participants) participants, \(summary.roots) root hashes without one, "
            + "\(summary.shares) shares of the file"
    ]
    if let url = summary.url { lines.append("its link is \(url.absoluteString.escapingControls)") }
    if let source, source != summary.url {
        lines.append("links of the service before lead there: \(source.absoluteString.escapingControls)")
    }
    if summary.foreignShares > 0 {
        lines.append("\(summary.foreignShares) shares of other links were left out")
    }
    if summary.isRepeat { lines.append("who has been removed since that run stays removed") }
    for person in summary.leftOut {
        lines.append("not let in, because the root hash was not in the set: \(person.rootHash)")
    }
    if file.end.invitations > 0 {
        lines.append("\(file.end.invitations) open invitations are void here: invite again")
    }
    for link in summary.unlinked {
        lines.append("to link after joining: \(link.person.rootHash) to \(link.account.name.escapingControls)")
    }
    printNow(lines.joined(separator: "\n"))
}
