import Foundation
import Synchronization

/// Remembers which thread owns something. Methods that only this thread may call assert it.
///
/// The checks stay in release builds: each is a relaxed load and a comparison. A thread is identified by its
/// `pthread_t`, which the system may give to a later thread once the first has ended. If the owned thing outlives its
/// thread, call `unbind` before the thread ends.
package struct ThreadConfinement: ~Copyable, Sendable {
    /// The owner's identity; 0 while there is none.
    private let owner = Atomic<UInt>(0)

    package init() {}

    /// Makes the calling thread the owner, unless it is the owner already. Traps when another thread is the owner.
    package func bind() {
        guard !isCurrent else { return }
        let (isBound, previous) = owner.compareExchange(
            expected: 0, desired: ThreadConfinement.current, ordering: .relaxed)
        precondition(isBound || previous == ThreadConfinement.current, "another thread owns this already")
    }

    /// Ends the ownership. Traps unless the calling thread is the owner.
    package func unbind() {
        assertIsCurrent()
        owner.store(0, ordering: .relaxed)
    }

    /// Whether the calling thread is the owner.
    package var isCurrent: Bool { owner.load(ordering: .relaxed) == ThreadConfinement.current }

    /// Traps unless the calling thread is the owner.
    package func assertIsCurrent(file: StaticString = #file, line: UInt = #line) {
        precondition(isCurrent, "only the thread that owns this may call this method", file: file, line: line)
    }

    /// Traps when another thread is the owner. For methods that may also be called before the owner starts or after it
    /// has ended.
    package func assertIsCurrentOrUnbound(file: StaticString = #file, line: UInt = #line) {
        let owner = owner.load(ordering: .relaxed)
        precondition(
            owner == 0 || owner == ThreadConfinement.current, "only the thread that owns this may call this method",
            file: file, line: line)
    }

    /// The calling thread's identity, never 0.
    private static var current: UInt {
        #if canImport(Darwin)
        UInt(bitPattern: pthread_self())
        #else
        UInt(pthread_self())
        #endif
    }
}
