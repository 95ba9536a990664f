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
    private let address: Holder
    private let trail: AuditTrail?
    private let peer: String?

    /// Of one connection from `address`. `trail`: `nil` unless there is an audit.
    init(
        _ site: OperatorSite, _ principals: PrincipalTable, _ trail: AuditTrail?, _ connection: Connection,
        _ address: Holder
    ) {
        self.site = site
        self.trail = trail
        self.address = address
        peer = connection.peer?.description
        identity = ConnectionIdentity(
            principals, at: .page, certificate: connection.peerCertificate, peer: connection.peer, address: address)
    }

    func page(for request: HTTPRequest) -> HTTPPage? {
        // Whether there is a page is nobody's business who may read none.
        if let refusal = refusal(of: request) { return HTTPPage { refusal }.refused(with: refusal) }
        return site.page(for: request, from: .elsewhere)
    }

    /// What the request gets in place of every page; `nil`: it may have its page.
    private func refusal(of request: HTTPRequest) -> HTTPResponse? {
        do throws(ServiceError) {
            if request.has("authorization") {
                guard let credentials = request.value(of: "authorization").flatMap(Credentials.init) else {
                    return GuardedSite.unknown("The field Authorization has no key that can be read.")
                }
                try identity.present(key: Array(credentials.key.utf8), of: credentials.name)
            }
            let principal = identity.principal
            // A service without principals is open on this machine, but here it is closed.
            guard principal.name != nil else { return GuardedSite.unknown("This page is for principals.") }
            try checkRoles(of: principal, request.path)
            try spend(principal, request)
            return nil
        } catch {
            return GuardedSite.response(to: error)
        }
    }

    /// Throws `roleMissing` unless the principal's roles, over everything, allow the page.
    private func checkRoles(of principal: Principal, _ path: String) throws(ServiceError) {
        let missing = site.roles(forPath: path).filter { !principal.authority.allows($0, about: .everything) }
        guard !missing.isEmpty else { return }
        let names = missing.map(\.rawValue).joined(separator: ", ")
        trail?.noteRefusal(.request, of: principal.holder ?? address) {
            AuditRecord(
                .refusal, principal: principal.auditName, peer: peer, operation: KeyDoor.page.rawValue,
                outcome: ServiceError.Code.roleMissing.name,
                detail: "missing over everything: \(names); the path is \(path.prefix(bytesMax: 100))")
        }
        throw ServiceError(.roleMissing, "This page needs roles over everything that are missing: \(names).")
    }

    /// Takes what the request costs of the principal's limits. Requests are answered one after the other, so none is in
    /// flight when the next one comes. To explain a proof costs as much as to verify it.
    private func spend(_ principal: Principal, _ request: HTTPRequest) throws(ServiceError) {
        guard let allowance = principal.allowance else { return }
        try allowance.takeRequest(isRemoval: false)
        allowance.giveBackRequest()
        var cost = RequestCost()
        if request.path == ExplainPage.path { cost.proofs = 1 }
        try allowance.spend(cost)
    }

    private static func response(to error: ServiceError) -> HTTPResponse {
        switch error.code {
        case .keyRefused: unknown("The key is not valid.")
        case .busy:
            .refusal(.tooManyRequests, because: error.reason)
                .with("Retry-After", String((max(error.detail, 1) + 999) / 1000))
        default: .refusal(.forbidden, because: error.reason)
        }
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
