import Core
import Foundation
import Testing

@testable import RootSets

@Suite("Failures of the storage")
struct StorageFailureTests {
    @Test(
        "No failure is busy, which would say that nothing was done, and each carries its number",
        arguments: Array(-30_799...(-30_779))
            + [EIO, EACCES, EINVAL, ENOMEM, EAGAIN, EINTR, ENOSPC, EDQUOT, EFBIG, ECANCELED])
    func neverBusy(code: CInt) {
        let error = StorageFailure(code, "reading").asServiceError
        #expect([.storageFull, .storageFailed, .storageDamaged].contains(error.code))
        #expect(error.detail == UInt32(bitPattern: code))
        #expect(error.retryAfter == nil)
    }

    @Test("A reading that is given up is busy: it changes nothing, and may be begun again")
    func givenUp() {
        let error = StorageFailure.givenUp("the check was given up").asServiceError
        #expect(error.code == .busy && error.detail == 0 && error.reason == "the check was given up")
    }

    @Test("What the check of a start has not come to is busy, with a time: it is only said to who reads")
    func unchecked() {
        let error = StorageFailure.unchecked.asServiceError
        #expect(error.code == .busy && error.retryAfter == .milliseconds(100))
    }

    @Test("A storage without a free place for a reader has failed")
    func readersFull() {
        // LMDB's MDB_READERS_FULL.
        #expect(StorageFailure(-30_790, "reading").asServiceError.code == .storageFailed)
    }
}
