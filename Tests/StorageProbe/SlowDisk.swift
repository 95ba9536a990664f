import Core
import Dispatch
import FailingDisk
import Foundation
import RootSets

/// Changes a storage whose disk takes very long to make anything durable, and reads from it meanwhile. Reads must go
/// on, changes must wait and be acknowledged, and the storage must not count as failed.
struct SlowDisk {
    private let folder: String
    private let seconds: Int

    init(_ folder: String, seconds: Int) {
        (self.folder, self.seconds) = (folder, seconds)
    }

    func run() throws {
        let (sets, name) = (try StorageProbe.open(folder), try StorageProbe.name(0))
        try sets.apply(Mutation(.createCollaboration(name, .challenge)))
        let present = Digest([UInt8](repeating: 1, count: 32)) ?? .zero
        try sets.apply(Mutation(.addRoots(name, [present])))
        failing_disk_delay(CInt(seconds * 1000))
        let answers = Lock<[Result<MutationReceipt, ServiceError>]>([])
        let start = ContinuousClock.now
        for index in 0..<8 {
            let root = Digest([UInt8](repeating: UInt8(10 + index), count: 32)) ?? .zero
            // The later ones come while the writer waits for the disk.
            if index == 4 { usleep(500_000) }
            sets.submit(Mutation(.addRoots(name, [root]))) { result in answers.withLock { $0.append(result) } }
        }
        var (reads, longest) = (0, Duration.zero)
        while answers.withLock({ $0.count }) < 8 {
            guard ContinuousClock.now - start < .seconds(seconds * 12) else { StorageProbe.end(1, "no answer comes") }
            let began = ContinuousClock.now
            let found = try sets.read { snapshot throws(ServiceError) in try snapshot.test([present], in: name) }
            longest = max(longest, ContinuousClock.now - began)
            guard found == [true] else { StorageProbe.end(1, "a read found \(String(describing: found))") }
            guard sets.health.level == .intact else { StorageProbe.end(1, "the storage counts as failed") }
            reads += 1
            usleep(5000)
        }
        let took = ContinuousClock.now - start
        failing_disk_delay(0)
        for answer in answers.withLock({ $0 }) {
            guard case .success = answer else { StorageProbe.end(1, "a change got \(answer)") }
        }
        guard took >= .seconds(seconds), reads >= seconds * 20, longest < .seconds(seconds) / 2 else {
            StorageProbe.end(1, "\(reads) reads, the longest \(longest), the changes took \(took)")
        }
        sets.close()
        StorageProbe.end(0, "\(reads) reads, the longest \(longest), while 8 changes took \(took)")
    }
}
