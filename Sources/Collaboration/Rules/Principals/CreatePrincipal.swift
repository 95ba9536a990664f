package import Core
public import Foundation
public import Principals

/// Creates a principal. The first one of a service must be an administrator, because from then on nobody else can
/// create others.
public struct CreatePrincipal: RuledRequest {
    public static let name = "createPrincipal"
    public typealias Answer = ChangeReceipt

    public var name: PrincipalName
    public var roles: [LimitedRole]
    /// Its first key; `nil`: none.
    public var key: NewKey?
    /// Names of certificates that identify it; `nil`: none.
    public var certificates: [CertificateName]?
    /// The number of a user of the service's machine whose local connections are this principal's.
    public var localUser: UInt32?
    public var limits: PrincipalLimits?
    public var expiresAt: Date?

    public init(
        _ name: PrincipalName, roles: [LimitedRole], key: NewKey? = nil, certificates: [CertificateName]? = nil,
        localUser: UInt32? = nil, limits: PrincipalLimits? = nil, expiresAt: Date? = nil
    ) {
        self.name = name
        self.roles = roles
        self.key = key
        self.certificates = certificates
        self.localUser = localUser
        self.limits = limits
        self.expiresAt = expiresAt
    }

    package func decide(
        _ context: RuleContext, _ records: borrowing some RecordReader & ~Copyable
    ) throws(ServiceError) -> Decision<Answer> {
        var record = PrincipalRecord(
            name, roles: roles, certificates: certificates ?? [], localUser: localUser,
            limits: limits ?? PrincipalLimits(), expiresAt: expiresAt, createdAt: context.now)
        if let key { record.keys = [try key.stored(context, "key")] }
        try checkExpiry(expiresAt, context, "expiresAt")
        let edit = try PrincipalEdit(records)
        // The sizes first, so that nothing large is compared.
        try record.check()
        guard edit.principal(name) == nil else {
            throw ServiceError(.principalExists, "there is a principal \(name) already")
        }
        guard edit.known.count < Limits.principalsMax else {
            throw ServiceError(
                .limitExceeded, detail: UInt32(Limits.principalsMax),
                "there are \(Limits.principalsMax) principals already")
        }
        guard !edit.isFirst || isAdministrator else {
            throw ServiceError(
                .notPermitted,
                "the first principal needs the role administer, a key, certificate or local user, and no expiry: "
                    + "without it nobody could administer the service")
        }
        return try edit.writing(record, before: nil)
    }

    private var isAdministrator: Bool {
        expiresAt == nil && roles.contains { $0.role == .administer }
            && (key.map { $0.expiresAt == nil } ?? (certificates?.isEmpty == false || localUser != nil))
    }
}

extension NewKey {
    /// The key as it is stored.
    ///
    /// Throws `malformedRequest` when it would never be valid.
    func stored(_ context: RuleContext, _ field: String) throws(ServiceError) -> PrincipalKey {
        try checkExpiry(expiresAt, context, "\(field).expiresAt")
        return PrincipalKey(hash, createdAt: context.now, expiresAt: expiresAt)
    }
}

/// Throws `malformedRequest` unless the date is in the future.
private func checkExpiry(_ date: Date?, _ context: RuleContext, _ field: String) throws(ServiceError) {
    guard let date, date <= context.expiryTime else { return }
    throw ServiceError(.malformedRequest, "\(field) is not in the future")
}
