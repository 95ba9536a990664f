package import Foundation

/// All principals at one moment, by what identifies them.
package struct PrincipalDirectory: Sendable {
    /// A principal, and how a connection showed that it is this one.
    package struct Match: Sendable {
        package let principal: PrincipalRecord
        /// The key; `nil`: a certificate or a local user.
        package let key: KeyHash?
        /// When it ends to be this principal; `nil`: not by time.
        package let expiresAt: Date?

        init(_ principal: PrincipalRecord, _ key: PrincipalKey? = nil) {
            self.principal = principal
            self.key = key?.hash
            expiresAt = [principal.expiresAt, key?.expiresAt].compactMap { $0 }.min()
        }

        /// Whether it is the principal at that time.
        package func isValid(at date: Date) -> Bool { expiresAt.map { date < $0 } ?? true }
    }

    /// Whether there was a principal at any time. Without one a service on this machine alone is open.
    package let isConfigured: Bool
    private let records: [PrincipalRecord]
    /// Positions in `records`.
    private var keys: [KeyIdentifier: (record: Int, key: Int)] = [:]
    private var certificates: [CertificateName: Int] = [:]
    private var users: [UInt32: Int] = [:]
    private var names: [PrincipalName: Int] = [:]

    /// No principal, and none before.
    package static let open = PrincipalDirectory([], isConfigured: false)
    /// Nobody is known: when the principals can't be read.
    package static let closed = PrincipalDirectory([], isConfigured: true)

    package init(_ records: [PrincipalRecord], isConfigured: Bool) {
        self.records = records
        self.isConfigured = isConfigured || !records.isEmpty
        for (index, record) in records.enumerated() {
            for (place, key) in record.keys.enumerated() { keys[key.hash.identifier] = (index, place) }
            names[record.name] = index
            for name in record.certificates { certificates[name] = index }
            if let user = record.localUser { users[user] = index }
        }
    }

    /// The principal whose key this is; `nil` when it is nobody's or has expired.
    package func match(_ key: APIKey, at date: Date) -> Match? {
        guard let place = keys[key.identifier] else {
            _ = KeyHash.ofNoKey.matches(key)
            return nil
        }
        let record = records[place.record]
        let stored = record.keys[place.key]
        guard stored.hash.matches(key) else { return nil }
        let match = Match(record, stored)
        return match.isValid(at: date) ? match : nil
    }

    /// The principal that has this key now; `nil` when the key was removed.
    package func match(_ hash: KeyHash) -> Match? {
        guard let place = keys[hash.identifier] else { return nil }
        let record = records[place.record]
        let stored = record.keys[place.key]
        return stored.hash == hash ? Match(record, stored) : nil
    }

    /// The principal of a connection without a key, by the names of its certificate and by its local user; `nil` when
    /// it is nobody's, or when they name several principals.
    package func match(_ names: [CertificateName], localUser: UInt32?) -> Match? {
        var found = Set(names.compactMap { certificates[$0] })
        if let user = localUser.flatMap({ users[$0] }) { found.insert(user) }
        guard found.count == 1, let index = found.first else { return nil }
        return Match(records[index])
    }

    /// Whether the principal has the key, or is there when no key is asked for.
    package func has(_ name: PrincipalName, _ key: KeyIdentifier?) -> Bool {
        guard let key else { return names[name] != nil }
        return keys[key].map { records[$0.record].name == name } ?? false
    }

    /// The limits of the principal; `nil` when there is none of that name.
    package func limits(of name: PrincipalName) -> PrincipalLimits? { names[name].map { records[$0].limits } }
}
