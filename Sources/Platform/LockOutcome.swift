/// What came of an attempt to lock a file.
package enum LockOutcome: Sendable {
    case locked
    /// Another open file holds the lock.
    case held
    case failed(SystemFailure)
}
