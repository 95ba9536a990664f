import Core
import Foundation

extension RecordReader where Self: ~Copyable {
    /// Where an account takes part, and as whom.
    func links(
        of account: Account
    ) throws(ServiceError) -> [(collaboration: CollaborationIdentifier, person: PersonIdentity)] {
        let prefix = RecordKeys.linked(account)
        let page = try records(
            in: .beginning(with: prefix), limit: Limits.linksPerAccountMax, isDescending: false)
        var links: [(collaboration: CollaborationIdentifier, person: PersonIdentity)] = []
        for record in page.items {
            let rest = record.key.dropFirst(prefix.count)
            guard let root = Digest(rest.suffix(Digest.byteCount)),
                let collaboration = CollaborationIdentifier(utf8: rest.dropLast(Digest.byteCount + 1)),
                try isLinked(account, to: PersonIdentity(rootHash: root), in: collaboration)
            else { continue }
            links.append((collaboration, PersonIdentity(rootHash: root)))
        }
        return links
    }
}

extension RecordReader where Self: ~Copyable {
    /// The newest notices of a collaboration that `reader` may see, newest first.
    func recentNotices(
        of collaboration: CollaborationIdentifier, for reader: PersonIdentity?, count: Int, in language: Language,
        _ context: RuleContext
    ) throws(ServiceError) -> [Notice] {
        let range = RecordRange.beginning(with: RecordKeys.notices(collaboration))
        // Mentions of others are left out, so more posts than `count` are read.
        let newest = try records(in: range, limit: 4 * count, isDescending: true)
        guard let oldest = newest.items.last else { return [] }
        var reading = FeedReading(context, limit: 4 * count)
        try reading.add(collaboration, for: reader, after: max(1, oldest.version) - 1, self)
        var json = Array(#"{"hasMore":false,"next":0,"posts":["#.utf8)
        try reading.newest(count, self).append(in: language, to: &json)
        json += Array("]}".utf8)
        let notices = try JSON.decode(NoticePage.self, from: json).notices
        return notices.suffix(count).reversed()
    }
}
