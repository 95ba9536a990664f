import Core
import FailingDisk
import Foundation
import RootSets

/// Lets writes of a storage fail while roots are added, and checks what is left: everything that was acknowledged is
/// there, what was refused can be repeated, and the storage is open again without a restart.
struct FailingWrites {
    private let folder: String
    private let call: failing_call
    private let after: CInt
    private let count: CInt
    private let error: CInt

    /// Returns `nil` when a word is not what it should be.
    init?(_ words: [String]) {
        let calls = ["meta": failing_meta, "data": failing_data, "sync": failing_sync]
        guard let call = calls[words[2]], let after = CInt(words[3]), let count = CInt(words[4]),
            let error = CInt(words[5]), after >= 0, count >= 1, error >= 1
        else { return nil }
        (folder, self.call, self.after, self.count, self.error) = (words[1], call, after, count, error)
    }

    private func outcome(_ sets: RootSets, _ mutation: Mutation) -> ServiceError? {
        do throws(ServiceError) {
            try sets.apply(mutation)
            return nil
        } catch {
            return error
        }
    }

    /// Changes a storage while the note of the newest commit can't be written, and when it can again.
    static func ofNote(_ folder: String) throws {
        let sets = try StorageProbe.open(folder)
        failing_disk_plan(failing_note, 0, 1000, EIO)
        for number in 0..<3 {
            try sets.apply(Mutation(.createCollaboration(try StorageProbe.name(number), .challenge)))
            // The note is looked at each second.
            usleep(1_500_000)
        }
        failing_disk_plan(failing_nothing, 0, 0, 0)
        try sets.apply(Mutation(.createCollaboration(try StorageProbe.name(3), .challenge)))
        usleep(1_500_000)
        sets.close()
        StorageProbe.end(0, "\(failing_disk_failures()) failures")
    }

    func run() throws {
        let name = try StorageProbe.name(1000)
        let (acknowledged, refused) = try fail(name)
        try reopened(name, acknowledged)
        StorageProbe.end(0, "recovered from \(failing_disk_failures()) failures, \(refused) refused")
    }

    /// Lets writes fail. Returns what was acknowledged in the end, and how many mutations were refused before.
    private func fail(_ name: CollaborationIdentifier) throws -> (acknowledged: [Digest], refused: Int) {
        var random = ProbeRandom(seed: UInt64(after) << 8 + UInt64(count))
        let sets = try StorageProbe.open(folder)
        try sets.apply(Mutation(.createCollaboration(name, .challenge)))
        var acknowledged: [Digest] = []
        var refused: [(mutation: Mutation, roots: [Digest])] = []
        failing_disk_plan(call, after, count, error)
        for _ in 0..<60 {
            let roots = (0..<40).map { _ in random.digest() }
            let mutation = Mutation(.addRoots(name, roots))
            if outcome(sets, mutation) == nil { acknowledged += roots } else { refused.append((mutation, roots)) }
        }
        // A lack of space is tried again at once, so maybe nothing was refused.
        guard failing_disk_failures() > 0, !refused.isEmpty || error == ENOSPC else {
            StorageProbe.end(1, "no write has failed")
        }
        failing_disk_plan(failing_nothing, 0, 0, 0)
        let deadline = ContinuousClock.now + .seconds(20)
        for (mutation, roots) in refused {
            while let failure = outcome(sets, mutation) {
                guard ContinuousClock.now < deadline else { StorageProbe.end(1, "it does not recover: \(failure)") }
                usleep(20_000)
            }
            acknowledged += roots
        }
        guard sets.health.level == .intact else { StorageProbe.end(1, "the storage counts as failed") }
        try check(sets, name, acknowledged, "before the end")
        sets.close()
        return (acknowledged, refused.count)
    }

    /// What the next start finds on the disk.
    private func reopened(_ name: CollaborationIdentifier, _ roots: [Digest]) throws {
        let deadline = ContinuousClock.now + .seconds(20)
        var found: RootSets?
        while found == nil {
            do throws(ServiceError) {
                found = try StorageProbe.open(folder)
            } catch {
                // A thread of the storage before may still end.
                guard error.code == .storageInUse, ContinuousClock.now < deadline else { throw error }
                usleep(20_000)
            }
        }
        guard let sets = found else { return }
        guard sets.health.level == .intact else { StorageProbe.end(1, "the storage is damaged on the disk") }
        try check(sets, name, roots, "after a start")
        sets.close()
    }

    private func check(
        _ sets: RootSets, _ name: CollaborationIdentifier, _ roots: [Digest], _ moment: String
    ) throws {
        let tests = try sets.read { snapshot throws(ServiceError) in try snapshot.test(roots, in: name) }
        let found = tests?.count { $0 } ?? 0
        let counted = try sets.read { snapshot throws(ServiceError) in try snapshot.summary(of: name)?.rootCount }
        guard found == roots.count, counted == UInt64(roots.count) else {
            StorageProbe.end(1, "\(moment): \(found) of \(roots.count) roots, \(counted ?? 0) counted")
        }
    }
}
