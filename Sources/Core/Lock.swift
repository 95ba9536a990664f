#if THREAD_SANITIZER
import Foundation

/// A value that one thread at a time may use. This is what `deploy/sanitize --threads` builds: ThreadSanitizer knows
/// the system's mutex, but it can't see a thread that waits for Swift's.
package struct Lock<Value: ~Copyable>: ~Copyable, @unchecked Sendable {
    // Unchecked: only the thread that has `mutex` reaches `value`.
    private let mutex: UnsafeMutablePointer<pthread_mutex_t>
    private let value: UnsafeMutablePointer<Value>

    package init(_ value: consuming sending Value) {
        mutex = .allocate(capacity: 1)
        self.value = .allocate(capacity: 1)
        self.value.initialize(to: value)
        let code = pthread_mutex_init(mutex, nil)
        precondition(code == 0, "no mutex")
    }

    deinit {
        pthread_mutex_destroy(mutex)
        mutex.deallocate()
        value.deinitialize(count: 1)
        value.deallocate()
    }

    package borrowing func withLock<Result: ~Copyable, Failure: Error>(
        _ body: (inout sending Value) throws(Failure) -> sending Result
    ) throws(Failure) -> sending Result {
        pthread_mutex_lock(mutex)
        defer { pthread_mutex_unlock(mutex) }
        return try body(&value.pointee)
    }
}
#else
package import Synchronization

/// A value that one thread at a time may use.
///
/// `Value` is no function and neither an optional nor a tuple with one: each access would wrap that function once more,
/// also one that only reads, until a call of it has used up the stack. A function is a property of a struct.
package typealias Lock<Value: ~Copyable> = Mutex<Value>
#endif
