import Foundation

extension System {
    /// Locks an open file against all others that lock it so, with flock(2). Tries again and again until `milliseconds`
    /// have passed: a process that is ending, or a child process that is just starting, may hold the lock.
    ///
    /// The system releases the lock when the descriptor is closed, also when the process ends.
    package static func lock(_ descriptor: CInt, milliseconds: Int) -> LockOutcome {
        let pause = 10
        var left = milliseconds
        while flock(descriptor, LOCK_EX | LOCK_NB) != 0 {
            switch errno {
            case EINTR: continue
            case EWOULDBLOCK: break
            default: return .failed(SystemFailure("lock"))
            }
            left -= pause
            guard left >= 0 else { return .held }
            usleep(UInt32(pause) * 1000)
        }
        return .locked
    }
}
