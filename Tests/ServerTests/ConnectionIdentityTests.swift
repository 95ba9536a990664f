import Collaboration
import Core
import Foundation
import Platform
import Principals
import RootSets
import ServiceTestSupport
import TestSupport
import Testing
import Transport

@testable import Server

/// Who a connection is, by where it comes from.
struct ConnectionIdentityTests {
    private let folder = ScratchDirectory()

    private func table(
        _ date: @escaping @Sendable () -> Date = { Date() }, expiryClock: MonotonicClock? = nil
    ) throws -> PrincipalTable {
        let rootSets = try RootSets(RootSets.Configuration(directory: folder.path + "/data"))
        return try PrincipalTable(rootSets, trail: nil, date: date, expiryClock: expiryClock)
    }

    @Test("Without principals, connections from this machine may do everything and all others nothing")
    func places() throws {
        let table = try table()
        func isOpen(_ host: String?) -> Bool {
            let peer = host.map { Peer.network(Endpoint(host: $0, port: 1)) }
            return ConnectionIdentity(table, certificate: nil, peer: peer).principal.authority
                .allows(.administer, about: .everything)
        }
        for host in ["127.0.0.1", "127.255.0.9", "::1", "::ffff:127.0.0.1", "::FFFF:127.0.0.1"] {
            #expect(isOpen(host), "\(host)")
        }
        for host in ["192.0.2.1", "10.0.0.1", "::ffff:192.0.2.1", "::2", "128.0.0.1", "0.0.0.0", "::"] {
            #expect(!isOpen(host), "\(host)")
        }
        #expect(!isOpen(nil))
    }

    @Test("A local user that is a principal has that one's shares, and every other connection those of its address")
    func holders() throws {
        let data = folder.path + "/data"
        let name = try #require(PrincipalName("user"))
        for request in [
            CreatePrincipal(
                try #require(PrincipalName("root")), roles: [LimitedRole(.administer, prefixes: [.every])],
                key: NewKey(KeyHash(.random()))),
            CreatePrincipal(name, roles: [], localUser: 7),
        ] { _ = try OfflinePrincipals.send(request, dataDirectory: data) }
        let table = try table()
        func holder(_ user: UInt32) -> Holder {
            ConnectionIdentity(
                table, certificate: nil, peer: .local(PeerCredentials(user: user, process: 1)), address: .user(user)
            ).holder
        }
        #expect(holder(7) != .user(7) && holder(7) == holder(7))
        #expect(holder(8) == .user(8))
    }

    @Test("A connection by a certificate is nobody's from the certificate's end, unless it has presented a key")
    func certificateEnd() throws {
        let key = APIKey.random()
        let uri = "spiffe://example.org/short"
        for request in [
            CreatePrincipal(
                try #require(PrincipalName("root")), roles: [LimitedRole(.administer, prefixes: [.every])],
                key: NewKey(KeyHash(key))),
            CreatePrincipal(
                try #require(PrincipalName("short")), roles: [], certificates: [try #require(CertificateName(uri))]),
        ] { _ = try OfflinePrincipals.send(request, dataDirectory: folder.path + "/data") }
        let calendar = TestCalendar()
        let table = try table { calendar.now }
        let certificate = PeerCertificate(
            uris: [uri], dnsNames: [], subject: "CN=short", fingerprint: .zero,
            endsAt: Int64(calendar.now.timeIntervalSince1970) + 60)
        func identity() -> ConnectionIdentity {
            ConnectionIdentity(
                table, certificate: certificate, peer: .network(Endpoint(host: "192.0.2.1", port: 1)),
                address: .address(UInt32(1)))
        }
        let (open, keyed) = (identity(), identity())
        try keyed.present(key: Array(key.text.utf8))
        calendar.advance(seconds: 59)
        #expect(open.principal.name?.text == "short" && open.holder != .address(UInt32(1)))
        calendar.advance(seconds: 1)
        #expect(open.principal.name == nil && open.holder == .address(UInt32(1)))
        #expect(keyed.principal.name?.text == "root")
    }

    @Test("A key that has expired stays so when the date is set back")
    func dateSetBack() throws {
        let (root, brief) = (APIKey.random(), APIKey.random())
        let end = Date(timeIntervalSince1970: (Date().timeIntervalSince1970 + 3600).rounded())
        for request in [
            CreatePrincipal(
                try #require(PrincipalName("root")), roles: [LimitedRole(.administer, prefixes: [.every])],
                key: NewKey(KeyHash(root))),
            CreatePrincipal(
                try #require(PrincipalName("brief")), roles: [], key: NewKey(KeyHash(brief), expiresAt: end)),
        ] { _ = try OfflinePrincipals.send(request, dataDirectory: folder.path + "/data") }
        let highest = Shared<UInt64>(0)
        let table = try table(
            { end.addingTimeInterval(-60) }, expiryClock: MonotonicClock { highest.value })
        let identity = ConnectionIdentity(
            table, certificate: nil, peer: .network(Endpoint(host: "192.0.2.1", port: 1)),
            address: .address(UInt32(1)))
        try identity.present(key: Array(brief.text.utf8))
        #expect(identity.principal.name?.text == "brief")
        highest.with { $0 = UInt64(end.timeIntervalSince1970 * 1000) }
        #expect(identity.principal.name == nil)
        #expect(thrownServiceError { try identity.present(key: Array(brief.text.utf8)) }?.code == .keyRefused)
    }

    @Test("A local user is on this machine")
    func localUser() throws {
        let identity = ConnectionIdentity(
            try table(), certificate: nil, peer: .local(PeerCredentials(user: 7, process: 1)))
        #expect(identity.principal.authority.allows(.administer, about: .everything))
    }
}
