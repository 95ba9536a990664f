import Core
import Synchronization
import Wire

/// The results of a notice run so far.
final class NoticeTally: Sendable {
    let posted = Atomic<Int>(0)
    let delivered = Atomic<Int>(0)
    /// Notices that came twice or out of order.
    let misplaced = Atomic<Int>(0)
    /// From before a post was sent to when a follower had its notices, in nanoseconds.
    let latency = Lock(Histogram())
    /// Why the run can't go on.
    let failure = Lock<ServiceError?>(nil)
    let isOver = Atomic<Bool>(false)
    /// Ends when every post is answered, or the run can't go on.
    let posting: AsyncStream<Never>
    private let endOfPosting: AsyncStream<Never>.Continuation

    init() {
        (posting, endOfPosting) = AsyncStream.makeStream()
    }

    func fail(_ error: ServiceError) {
        failure.withLock { $0 = $0 ?? error }
        endOfPosting.finish()
    }

    func endPosting() {
        endOfPosting.finish()
    }
}

extension NoticeTally {
    /// The run can't go on because of an error answer with this body.
    func fail(_ body: UnsafeRawBufferPointer) {
        do throws(ServiceError) {
            fail(try FrameWriter.decodeError(body))
        } catch {
            fail(error)
        }
    }
}
