package import Core
public import Foundation
public import Principals

/// Changes what a principal may do and how it is known. What is left out stays. Keys have requests of their own.
public struct UpdatePrincipal: RuledRequest {
    public static let name = "updatePrincipal"
    public typealias Answer = ChangeReceipt

    public var name: PrincipalName
    /// Cleared: it has none.
    public var roles: Patch<[LimitedRole]>
    /// Cleared: no certificate identifies it.
    public var certificates: Patch<[CertificateName]>
    public var localUser: Patch<UInt32>
    /// All of them. Cleared: none.
    public var limits: Patch<PrincipalLimits>
    /// Single ones, so that two who change different limits at once don't undo each other's changes. Not together with
    /// `limits`.
    public var changedLimits: LimitChanges?
    /// Cleared: it stays until it is removed.
    public var expiresAt: Patch<Date>

    public init(
        _ name: PrincipalName, roles: Patch<[LimitedRole]> = .keep, certificates: Patch<[CertificateName]> = .keep,
        localUser: Patch<UInt32> = .keep, limits: Patch<PrincipalLimits> = .keep,
        changedLimits: LimitChanges? = nil, expiresAt: Patch<Date> = .keep
    ) {
        self.name = name
        self.roles = roles
        self.certificates = certificates
        self.localUser = localUser
        self.limits = limits
        self.changedLimits = changedLimits
        self.expiresAt = expiresAt
    }

    package func decide(
        _ context: RuleContext, _ records: borrowing some RecordReader & ~Copyable
    ) throws(ServiceError) -> Decision<Answer> {
        guard limits == .keep || changedLimits == nil else {
            throw ServiceError(.malformedRequest, "limits and changedLimits exclude each other")
        }
        try changedLimits?.check()
        let edit = try PrincipalEdit(records)
        let found = try edit.existing(name)
        var record = found.value
        record.roles = roles.applied(to: record.roles) ?? []
        record.certificates = certificates.applied(to: record.certificates) ?? []
        record.localUser = localUser.applied(to: record.localUser)
        record.limits = limits.applied(to: record.limits) ?? PrincipalLimits()
        record.limits = changedLimits?.applied(to: record.limits) ?? record.limits
        record.expiresAt = expiresAt.applied(to: record.expiresAt)
        try edit.check(record)
        guard record != found.value else {
            guard gives else { return .unchanged }
            return .remembered(nil, [.checking(RecordKeys.principal(name), expecting: .version(found.version))])
        }
        return try edit.writing(record, before: found)
    }

    /// Whether the principal could get more by a later repetition: a right, a way to be known, or time.
    private var gives: Bool {
        roles.value?.isEmpty == false || certificates.value?.isEmpty == false || localUser.value != nil
            || limits != .keep || changedLimits?.isEmpty == false || expiresAt != .keep
    }
}
