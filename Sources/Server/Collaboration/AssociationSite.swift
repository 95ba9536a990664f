import Foundation

/// The page from which Apple's systems learn which app opens the universal links. It is served over HTTP/1.1; the
/// server that serves the links' domain with TLS stands in front of it. Apple: "Supporting associated domains".
struct AssociationSite: HTTPSite {
    static let path = "/.well-known/apple-app-site-association"

    private let json: [UInt8]

    /// `appIdentifiers`: each the team's prefix, a dot and the bundle identifier.
    ///
    /// Throws when the link base is no URL.
    init(linkBase: String, appIdentifiers: [String]) throws(StartupFailure) {
        struct Site: Encodable {
            struct Links: Encodable {
                struct Details: Encodable {
                    let appIDs: [String]
                    let components: [[String: String]]
                }
                let details: [Details]
            }
            let applinks: Links
        }
        guard let base = URL(string: linkBase) else {
            throw StartupFailure.linkBase(linkBase, reason: "it is no URL")
        }
        let links = base.path.hasSuffix("/") ? base.path + "*" : base.path + "/*"
        let site = Site(
            applinks: Site.Links(
                details: [Site.Links.Details(appIDs: appIdentifiers, components: [["/": links]])]))
        let encoder = JSONEncoder()
        encoder.outputFormatting = [.sortedKeys, .withoutEscapingSlashes]
        do {
            json = Array(try encoder.encode(site))
        } catch {
            // Strings can always be written as JSON.
            throw StartupFailure.linkBase(linkBase, reason: "it is no URL")
        }
    }

    func page(for request: HTTPRequest) -> HTTPPage? {
        guard request.path == AssociationSite.path else { return nil }
        return HTTPPage { HTTPResponse(.ok, json, contentType: "application/json") }
    }
}
