import Core
import Principals
import Synchronization

/// When a key was last used, or without a key a principal.
final class PrincipalUse: Sendable {
    /// What is used.
    struct Subject: Hashable, Sendable {
        let principal: PrincipalName
        /// `nil`: a certificate or a local user.
        let key: KeyIdentifier?
    }

    let subject: Subject
    /// The use that was stored last, in milliseconds; 0: none.
    private let stored: Atomic<UInt64>

    init(_ subject: Subject, stored: UInt64) {
        self.subject = subject
        self.stored = Atomic(stored)
    }

    /// The use that was stored before, if this one is to be stored: the first one, and one in an hour. The caller
    /// stores it. `now`: in milliseconds.
    func note(at now: UInt64) -> UInt64? {
        let last = stored.load(ordering: .relaxed)
        guard last == 0 || now >= last && now - last >= Limits.useStoredMilliseconds else { return nil }
        let isOurs = stored.compareExchange(expected: last, desired: max(1, now), ordering: .relaxed).exchanged
        return isOurs ? last : nil
    }
}
