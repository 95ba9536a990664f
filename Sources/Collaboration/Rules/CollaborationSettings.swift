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

    /// The collaboration that a link leads to; `nil` when it is not one of ours. Links are compared in their normal
    /// form. A deeper path below a collaboration's link belongs to it. Query and fragment don't matter.
    func collaboration(of link: URL) -> CollaborationIdentifier? {
        guard let base = linkBase.flatMap({ WebLink($0) }) else { return nil }
        return WebLink(link)?.segments(below: base).flatMap(CollaborationSettings.collaboration)
    }

    /// The collaboration whose link this is, also when it is written with http, with user information, or in another
    /// way of `WebLink.segmentsOfAnySpelling`. Such a link leads nowhere, but people take it for the collaboration's:
    /// it must not stay on shelves when the collaboration ends.
    func collaboration(ofAnySpelling link: URL) -> CollaborationIdentifier? {
        guard let base = linkBase.flatMap({ WebLink($0) }) else { return nil }
        return WebLink(link)?.segmentsOfAnySpelling(below: base).flatMap(CollaborationSettings.collaboration)
    }

    private static func collaboration(in path: ArraySlice<String>) -> CollaborationIdentifier? {
        path.first?.removingPercentEncoding.flatMap { CollaborationIdentifier($0) }
    }

    /// What is wrong with a base of universal links; `nil` when nothing is.
    package static func fault(ofLinkBase base: String) -> String? {
        guard base.utf8.count <= Limits.linkBaseBytesMax else {
            return "it has more than \(Limits.linkBaseBytesMax) bytes"
        }
        guard let link = WebLink(base) else { return "it is no URL with a host" }
        guard link.scheme == "https" else { return "its scheme is not https" }
        guard link.user == nil else { return "it has user information" }
        guard !base.contains("?"), !base.contains("#") else { return "it has a query or a fragment" }
        return nil
    }
}
