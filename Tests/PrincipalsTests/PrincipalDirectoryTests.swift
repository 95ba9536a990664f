import Core
import Foundation
import Principals
import Testing

/// How connections are recognized.
struct PrincipalDirectoryTests {
    private let now = Date(timeIntervalSince1970: 1_800_000_000)
    private let key = APIKey.random()

    private func record(
        _ name: String, key: APIKey? = nil, keyExpiry: Date? = nil, certificates: [String] = [], user: UInt32? = nil,
        expiry: Date? = nil
    ) throws -> PrincipalRecord {
        var record = PrincipalRecord(
            try #require(PrincipalName(name)), roles: [],
            certificates: try certificates.map { try #require(CertificateName($0)) }, localUser: user,
            expiresAt: expiry, createdAt: now)
        record.keys = key.map { [PrincipalKey(KeyHash($0), createdAt: now, expiresAt: keyExpiry)] } ?? []
        return record
    }

    private func directory(_ records: PrincipalRecord...) -> PrincipalDirectory {
        PrincipalDirectory(records, isConfigured: true)
    }

    @Test("A key is its principal's, and another key is nobody's")
    func keys() throws {
        let directory = directory(try record("one", key: key), try record("two", key: .random()))
        #expect(directory.match(key, at: now)?.principal.name.text == "one")
        #expect(directory.match(.random(), at: now) == nil)
        let forged = try #require(APIKey("rgk_\(key.identifier)_" + APIKey.random().text.suffix(43)))
        #expect(directory.match(forged, at: now) == nil)
    }

    @Test("A key ends at its own expiry or its principal's, whichever is first")
    func expiry() throws {
        let later = now + 60
        for (own, principal) in [(later, nil), (nil, later), (later, later + 1), (later + 1, later)] as [(Date?, Date?)]
        {
            let directory = directory(try record("one", key: key, keyExpiry: own, expiry: principal))
            let match = try #require(directory.match(key, at: later - 0.001))
            #expect(match.expiresAt == later)
            #expect(match.isValid(at: later - 0.001) && !match.isValid(at: later))
            #expect(directory.match(key, at: later) == nil)
        }
    }

    @Test("A key that was accepted is followed by its hash, until it is gone")
    func acceptedKeys() throws {
        let one = try record("one", key: key)
        let hash = try #require(directory(one).match(key, at: now)?.key)
        #expect(directory(one).match(hash)?.principal.name.text == "one")
        #expect(directory(try record("one")).match(hash) == nil)
        // The same identifier with another salt is another key.
        #expect(directory(try record("one", key: key)).match(hash) == nil)
    }

    @Test("A certificate that names two principals is nobody's, and so is one that disagrees with the local user")
    func ambiguity() throws {
        let directory = directory(
            try record("one", certificates: ["dns:a.example"], user: 7),
            try record("two", certificates: ["subject:CN=b"]))
        func found(_ names: [String], _ user: UInt32? = nil) throws -> String? {
            let names = try names.map { try #require(CertificateName($0)) }
            return directory.match(names, localUser: user)?.principal.name.text
        }
        #expect(try found(["dns:a.example"]) == "one")
        #expect(try found(["dns:a.example", "subject:CN=x"]) == "one")
        #expect(try found([], 7) == "one")
        #expect(try found(["dns:a.example"], 7) == "one")
        #expect(try found(["dns:a.example", "subject:CN=b"]) == nil)
        #expect(try found(["subject:CN=b"], 7) == nil)
        #expect(try found([], 8) == nil)
        #expect(try found([]) == nil)
    }

    @Test("A directory with principals is configured, whatever is said")
    func configured() throws {
        #expect(!PrincipalDirectory.open.isConfigured)
        #expect(PrincipalDirectory.closed.isConfigured)
        #expect(PrincipalDirectory([try record("one")], isConfigured: false).isConfigured)
    }
}
