import Core
import Foundation

/// What an operator decides about the collaboration layer.
package struct CollaborationSettings: Hashable, Sendable {
    /// The beginning of universal links, as `https://example.com/c`; `nil`: no collaboration can be started.
    package var linkBase: String?
    /// How long notices are kept.
    package var noticeSeconds: Double = 30 * 24 * 3600
    /// How many posts of a collaboration are kept at least. Older ones are deleted at some later post.
    package var noticeCount = 1000

    package init() {}
}

extension CollaborationSettings {
    /// Bytes of an identifier that a path takes as they are (RFC 3986, section 2.3).
    private static let unreserved = CharacterSet(
        charactersIn: "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-._~")

    private var linkStart: String? {
        linkBase.map { $0.hasSuffix("/") ? $0 : $0 + "/" }
    }

    /// The universal link of a collaboration; `nil` without a base.
    func link(of collaboration: CollaborationIdentifier) -> URL? {
        guard let linkStart,
            let name = collaboration.description.addingPercentEncoding(
                withAllowedCharacters: CollaborationSettings.unreserved)
        else { return nil }
        return URL(string: linkStart + name)
    }

    /// The collaboration that a link leads to; `nil` when it is not one of ours. Query and fragment don't matter.
    func collaboration(of link: URL) -> CollaborationIdentifier? {
        guard let linkStart, link.absoluteString.hasPrefix(linkStart) else { return nil }
        let rest = link.absoluteString.dropFirst(linkStart.count).prefix { $0 != "?" && $0 != "#" }
        guard !rest.contains("/") else { return nil }
        return rest.removingPercentEncoding.flatMap { CollaborationIdentifier($0) }
    }
}
