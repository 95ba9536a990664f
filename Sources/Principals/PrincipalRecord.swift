package import Core
package import Foundation

/// A principal as it is stored: who may talk to the service, how it shows who it is, and what it may do.
package struct PrincipalRecord: Hashable, Sendable, Codable {
    package let name: PrincipalName
    package var roles: [LimitedRole]
    /// At most two, valid ones first to last as they were added.
    package var keys: [PrincipalKey] = []
    package var certificates: [CertificateName]
    /// The user of this machine, by number, whose connections over a local socket are this principal's.
    package var localUser: UInt32?
    package var limits: PrincipalLimits
    /// `nil`: it stays until it is removed.
    package var expiresAt: Date?
    package let createdAt: Date

    package init(
        _ name: PrincipalName, roles: [LimitedRole], certificates: [CertificateName] = [], localUser: UInt32? = nil,
        limits: PrincipalLimits = PrincipalLimits(), expiresAt: Date? = nil, createdAt: Date
    ) {
        self.name = name
        self.roles = roles
        self.certificates = certificates
        self.localUser = localUser
        self.limits = limits
        self.expiresAt = expiresAt
        self.createdAt = createdAt
    }

    /// Whether the principal may do anything at that time.
    package func isValid(at date: Date) -> Bool { expiresAt.map { date < $0 } ?? true }

    /// Whether connections can be this principal's without a key.
    package var isKnownWithoutKey: Bool { !certificates.isEmpty || localUser != nil }

    /// Throws `malformedRequest` or `limitExceeded` unless every part is within its bounds.
    package func check() throws(ServiceError) {
        try checkLimit(roles.count, Limits.rolesPerPrincipalMax, "roles")
        for (index, role) in roles.enumerated() { try role.check("roles[\(index)]") }
        try checkLimit(
            roles.reduce(0) { $0 + $1.prefixes.count }, Limits.prefixesPerPrincipalMax, "prefixes of all roles")
        try checkLimit(certificates.count, Limits.certificateNamesMax, "names of certificates")
        try checkLimit(keys.count, Limits.keysPerPrincipalMax, "keys of one principal")
        try limits.check()
    }

    /// Throws `principalExists` when the other principal is known by the same certificate, user or key: a connection is
    /// one principal's.
    package func checkDistinct(from other: PrincipalRecord) throws(ServiceError) {
        if let name = certificates.first(where: { other.certificates.contains($0) }) {
            throw ServiceError(.principalExists, "\(name) belongs to the principal \(other.name)")
        }
        if let localUser, localUser == other.localUser {
            throw ServiceError(.principalExists, "the local user \(localUser) belongs to the principal \(other.name)")
        }
        let theirs = Set(other.keys.map(\.hash.identifier))
        if let key = keys.first(where: { theirs.contains($0.hash.identifier) }) {
            throw ServiceError(
                .principalExists, "the key \(key.hash.identifier) belongs to the principal \(other.name)")
        }
    }
}
