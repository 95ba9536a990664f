import Audit
import Core
import Foundation
import Principals
import Transport

/// The operator's pages for visitors from other machines. A page needs a principal whose roles, over everything, allow
/// what the page shows.
///
/// A request shows its principal by a key: as the password of the principal's name (Basic, RFC 7617), which browsers
/// ask for, or alone (Bearer, RFC 6750). Without a key the certificate and the address of the connection do.
struct GuardedSite: HTTPSite {
    private let site: OperatorSite
    private let identity: ConnectionIdentity
    private let trail: AuditTrail?
    private let peer: String?

    /// Of one connection from `address`. `trail`: `nil` unless there is an audit.
    init(
        _ site: OperatorSite, _ principals: PrincipalTable, _ trail: AuditTrail?, _ connection: Connection,
        _ address: Holder
    ) {
        self.site = site
        self.trail = trail
        peer = connection.peer?.description
        identity = ConnectionIdentity(
            principals, certificate: connection.peerCertificate, peer: connection.peer, address: address)
    }

    func page(for request: HTTPRequest) -> HTTPPage? {
        // Whether there is a page is nobody's business who may read none.
        if let refusal = refusal(of: request) { return HTTPPage { refusal }.refused(with: refusal) }
        return site.page(for: request, from: .elsewhere)
    }

    /// What the request gets in place of every page; `nil`: it may have its page.
    private func refusal(of request: HTTPRequest) -> HTTPResponse? {
        var name: String?
        if request.has("authorization") {
            guard let credentials = request.value(of: "authorization").flatMap(Credentials.init) else {
                return GuardedSite.unknown("The field Authorization has no key that can be read.")
            }
            name = credentials.name
            do throws(ServiceError) {
                try identity.present(key: Array(credentials.key.utf8))
            } catch {
                guard error.code == .busy else { return GuardedSite.unknown("The key is not valid.") }
                return .refusal(.tooManyRequests, because: error.reason)
                    .with("Retry-After", String((error.detail + 999) / 1000))
            }
        }
        let principal = identity.principal
        // The key of another principal than the one that is named.
        if let name, name != principal.name?.text { return GuardedSite.unknown("The key is not valid.") }
        // A service without principals is open on this machine, but here it is closed.
        guard principal.name != nil else { return GuardedSite.unknown("This page is for principals.") }
        let roles = OperatorSite.roles(forPath: request.path)
        guard let missing = roles.first(where: { !principal.authority.allows($0, about: .everything) }) else {
            return nil
        }
        trail?.noteRefusal(.request, of: principal.holder ?? identity.address) {
            AuditRecord(
                .refusal, principal: principal.auditName, peer: peer, operation: "page",
                outcome: ServiceError.Code.roleMissing.name,
                detail: "the role \(missing.rawValue) is missing for \(request.path.prefix(bytesMax: 100))")
        }
        return .refusal(.forbidden, because: "The role \(missing.rawValue) over everything is missing.")
    }

    private static func unknown(_ reason: String) -> HTTPResponse {
        HTTPResponse.refusal(.unauthorized, because: reason)
            .with("WWW-Authenticate", "Basic realm=\"rootgate\", charset=\"UTF-8\"")
    }
}

/// What the field Authorization says.
private struct Credentials {
    /// The principal's name; `nil`: the key stands alone.
    let name: String?
    let key: String

    /// `nil` for schemes other than Basic and Bearer, and for what is malformed.
    init?(_ value: String) {
        let words = value.split(separator: " ", omittingEmptySubsequences: true)
        guard words.count == 2 else { return nil }
        switch words[0].lowercased() {
        case "bearer":
            (name, key) = (nil, String(words[1]))
        case "basic":
            guard let bytes = Data(base64Encoded: String(words[1])),
                let text = String(validating: bytes, as: UTF8.self), let colon = text.firstIndex(of: ":")
            else { return nil }
            (name, key) = (String(text[..<colon]), String(text[text.index(after: colon)...]))
        default: return nil
        }
    }
}
