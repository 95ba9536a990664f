import Core
import Dispatch
import Foundation
import Synchronization
import TestSupport
import Testing

@testable import RootSets

@Suite("What is known of a data file that grows")
struct DatabaseTrustTests {
    @Test("A data file that grows while it is read does not look cut, and one that was cut does")
    func growth() throws {
        let folder = ScratchDirectory()
        let file = open(folder.path + "/data", O_RDWR | O_CREAT, 0o600)
        try #require(file >= 0)
        defer { close(file) }
        let trust = DatabaseTrust(StorageHealth())
        trust.watchLength(of: file)
        let hasEnded = Atomic<Bool>(false)
        let group = DispatchGroup()
        DispatchQueue.global().async(group: group) {
            for length in 1...200_000 {
                ftruncate(file, off_t(length))
                trust.noteLength()
            }
            hasEnded.store(true, ordering: .releasing)
        }
        var looks = 0
        while !hasEnded.load(ordering: .acquiring) {
            looks += 1
            if let cut = trust.cut {
                Issue.record("after \(looks) looks: \(cut)")
                break
            }
        }
        group.wait()
        #expect(looks > 0 && trust.cut == nil)
        ftruncate(file, 100_000)
        #expect(trust.cut != nil)
    }
}
