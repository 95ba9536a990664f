import Core
import Foundation
import Testing

@Suite struct ThreadConfinementTests {
    @Test("The thread that binds is the owner until it unbinds")
    func binding() {
        let confinement = ThreadConfinement()
        #expect(confinement.isCurrent == false)
        confinement.assertIsCurrentOrUnbound()
        confinement.bind()
        confinement.bind()
        #expect(confinement.isCurrent == true)
        confinement.assertIsCurrent()
        confinement.assertIsCurrentOrUnbound()
        confinement.unbind()
        #expect(confinement.isCurrent == false)
    }

    @Test("A call from a thread that is not the owner ends the process")
    func wrongThread() async {
        await #expect(processExitsWith: .failure) {
            Owned.callFromAnotherThread { $0.assertIsCurrent() }
        }
        await #expect(processExitsWith: .failure) {
            Owned.callFromAnotherThread { $0.assertIsCurrentOrUnbound() }
        }
        await #expect(processExitsWith: .failure) {
            Owned.callFromAnotherThread { $0.bind() }
        }
        await #expect(processExitsWith: .failure) {
            Owned.callFromAnotherThread { $0.unbind() }
        }
    }

    @Test("Before a thread is bound, only the strict assertion traps")
    func unbound() async {
        await #expect(processExitsWith: .failure) {
            ThreadConfinement().assertIsCurrent()
        }
    }
}

/// Something that the calling thread owns.
private final class Owned: Sendable {
    let confinement = ThreadConfinement()

    /// Binds this thread and has another one call `method`; returns when it has.
    static func callFromAnotherThread(_ method: @escaping @Sendable (borrowing ThreadConfinement) -> Void) {
        let owned = Owned()
        owned.confinement.bind()
        let done = DispatchSemaphore(value: 0)
        let thread = Thread {
            method(owned.confinement)
            done.signal()
        }
        thread.start()
        done.wait()
    }
}
