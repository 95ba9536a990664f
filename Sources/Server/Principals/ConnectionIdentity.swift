import Core
import Foundation
import Principals
import Transport

/// What a connection has shown of who it is, and the principal that follows from it at present.
///
/// A key that was presented decides. Without one, the certificate and the local user do. The certificate does until its
/// end: then a connection that has no key is nobody's.
final class ConnectionIdentity: Sendable {
    private struct State {
        var key: KeyHash?
        /// Keys that the connection has presented.
        var presentations = 0
        /// The principal at a version of the table.
        var known: (principal: Principal, version: UInt64)?
    }

    /// `nil`: there are no principals, and the connection may do everything.
    private let table: PrincipalTable?
    private let door: KeyDoor
    private let names: [CertificateName]
    /// When the certificate ends to be valid; `nil`: there is none.
    private let certificateEnd: Date?
    private let localUser: UInt32?
    /// Whether the peer is on this machine.
    private let isLocal: Bool
    /// Who the peer is as long as nobody knows its name.
    let address: Holder
    /// The peer's address for audits.
    private let peer: String?
    private let state = Lock(State())

    /// `peer`: `nil` when the system can't tell; then the peer is not on this machine. `address`: whose wrong keys
    /// count together.
    init(
        _ table: PrincipalTable, at door: KeyDoor = .hello, certificate: PeerCertificate?, peer: Peer?,
        address: Holder = .service
    ) {
        self.table = table
        self.door = door
        self.address = address
        names =
            certificate.map { CertificateName.all(uris: $0.uris, dnsNames: $0.dnsNames, subject: $0.subject) } ?? []
        certificateEnd = certificate.map { Date(timeIntervalSince1970: Double($0.endsAt)) }
        switch peer {
        case .network(let endpoint): (localUser, isLocal) = (nil, endpoint.isThisMachine)
        case .local(let credentials): (localUser, isLocal) = (credentials.user, true)
        case nil: (localUser, isLocal) = (nil, false)
        }
        self.peer = peer?.description
    }

    private init(address: Holder) {
        (table, names, certificateEnd, localUser, isLocal, peer) = (nil, [], nil, nil, true, nil)
        door = .hello
        self.address = address
    }

    /// Of a connection without principals, which may do everything.
    static func anonymous(_ address: Holder) -> ConnectionIdentity { ConnectionIdentity(address: address) }

    /// Who sends a request that begins now.
    var principal: Principal {
        let principal = valid
        if let table, let use = principal.use { table.noteUse(use, from: peer) }
        return principal
    }

    /// Who shares memory, places and turns with others now: the principal, or else the address.
    var holder: Holder { valid.holder ?? address }

    private var valid: Principal {
        guard let table else { return .anonymous(.everything) }
        let principal = present(table)
        // The certificate shows nothing about a principal by key, and gives nothing to a connection that is nobody's.
        let isByCertificate = certificateEnd != nil && principal.name != nil && state.withLock { $0.key == nil }
        let end = isByCertificate ? certificateEnd : nil
        guard let first = [principal.expiresAt, end].compactMap({ $0 }).min() else { return principal }
        return table.now < first ? principal : .anonymous(.nothing)
    }

    private func present(_ table: PrincipalTable) -> Principal {
        let version = table.version
        let (known, key) = state.withLock { ($0.known, $0.key) }
        if let known, known.version == version { return known.principal }
        let current = table.current
        let principal: Principal
        if let match = key.map({ current.directory.match($0) })
            ?? current.directory.match(names, localUser: localUser)
        {
            principal = table.principal(match)
        } else {
            // A key that was removed leaves nobody, although the connection has a certificate or is local.
            principal = .anonymous(!current.directory.isConfigured && isLocal ? .everything : .nothing)
        }
        state.withLock { state in
            guard state.key == key else { return }
            state.known = (principal, current.version)
        }
        return principal
    }

    /// Takes the text of a key. From then on the connection is the key's principal. `name`: of the principal, if the
    /// peer says it.
    ///
    /// Throws `keyRefused` when the key is nobody's or another principal's, or when the connection has presented too
    /// many; `busy` when its address has presented too many wrong ones.
    func present(key text: [UInt8], of name: String? = nil) throws(ServiceError) {
        let count = state.withLock { state in
            state.presentations += 1
            return state.presentations
        }
        guard count <= Limits.keysPerConnectionMax else {
            throw ServiceError(
                .keyRefused, detail: UInt32(Limits.keysPerConnectionMax),
                "the connection has presented more than \(Limits.keysPerConnectionMax) keys")
        }
        try table?.checkAttempt(at: door, from: address, peer: peer)
        let key = String(validating: text, as: UTF8.self).flatMap { APIKey($0) }
        guard let table, let key, let match = table.current.directory.match(key, at: table.now), let hash = match.key,
            name == nil || name == match.principal.name.text
        else {
            table?.noteRefusal(of: key?.identifier, at: door, from: address, peer: peer)
            throw ServiceError(.keyRefused, "the key is not valid")
        }
        state.withLock { state in
            state.key = hash
            state.known = nil
        }
    }
}

extension Endpoint {
    /// Whether the address is loopback, also as an address of IPv6 that stands for one of IPv4.
    fileprivate var isThisMachine: Bool {
        let mapped = "::ffff:"
        guard host.lowercased().hasPrefix(mapped) else { return isLoopback }
        return Endpoint(host: String(host.dropFirst(mapped.count)), port: port).isLoopback
    }
}
