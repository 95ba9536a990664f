import Core
import DiskImages
import Foundation
import RootSets
import TestSupport

/// Recordings, one after the other, and the images that are made from them.
struct CutTrials: CustomStringConvertible {
    /// What a storage holds after some change.
    private struct State {
        var model = CutModel()
        var sequence: UInt64 = 0
    }

    private static let imagesPerRecording = 50
    private let folder: String
    private let seed: UInt64
    private let ignoresSyncs: Bool
    private var random: SeededGenerator
    /// All changes of the history, by their sequence.
    private var history: [UInt64: Mutation] = [:]
    private var state = State()
    private var mutations = 0

    private var images = 0
    private var recordings = 0
    private var applied = 0
    private var refusedMutations = 0
    private var withLostWrites = 0
    private var unacknowledged = 0
    private var refusedStarts = 0
    private(set) var wrong = 0

    init(folder: String, seed: UInt64, ignoresSyncs: Bool) throws {
        (self.folder, self.seed, self.ignoresSyncs) = (folder, seed, ignoresSyncs)
        random = SeededGenerator(seed: seed)
        try Recording.open(folder + "/storage").close()
    }

    var description: String {
        "seed \(seed): \(images) images of \(recordings) recordings with \(applied) changes applied and "
            + "\(refusedMutations) refused: \(withLostWrites) images without some writes, \(unacknowledged) with an "
            + "unacknowledged change, \(refusedStarts) refused, \(wrong) wrong"
    }

    mutating func run(_ count: Int) throws {
        while images < count {
            mutations += 1000
            var workload = CutWorkload(seed: random.next(), first: mutations)
            let recording = try Recording(
                folder + "/storage", &workload, bursts: 25, pauses: recordings % 8 == 0)
            recordings += 1
            applied += recording.applied.count
            refusedMutations += recording.refused
            for change in recording.applied { history[change.sequence] = change.mutation }
            let states = states(of: recording)
            let number = min(CutTrials.imagesPerRecording, count - images)
            for index in 0..<number { try trial(recording, states, isLast: index == number - 1) }
        }
    }

    /// What the storage holds after each change of a recording, and before the first.
    private func states(of recording: Recording) -> [State] {
        var states = [state]
        for change in recording.applied {
            var next = states[states.count - 1]
            next.model.apply(change.mutation.change)
            // A repeat has the sequence of the change that it repeats, so this would show in the comparison.
            next.sequence += 1
            states.append(next)
        }
        return states
    }

    private mutating func trial(_ recording: Recording, _ states: [State], isLast: Bool) throws {
        let cut = Int.random(in: 0...recording.events.count, using: &random)
        let image = DiskImage(recording.before, Array(recording.events[..<cut]), ignoresSyncs: ignoresSyncs, &random)
        images += 1
        if image.lost > 0 { withLostWrites += 1 }
        let directory = folder + "/image"
        try? FileManager.default.removeItem(atPath: directory)
        try FileManager.default.copyItem(atPath: folder + "/storage", toPath: directory)
        for (name, bytes) in zip(Recording.files, image.files) {
            try Data(bytes).write(to: URL(fileURLWithPath: "\(directory)/\(name)"))
        }
        // `at`: the newest change that the image has.
        let (fault, at) = judge(directory, recording, states, cut, changes: !isLast)
        if let fault {
            wrong += 1
            if !ignoresSyncs || wrong <= 5 { print("seed \(seed), image \(images), cut before event \(cut): \(fault)") }
        }
        guard isLast, !ignoresSyncs, let at else { return }
        // The next recording goes on with what the power cut has left.
        try FileManager.default.removeItem(atPath: folder + "/storage")
        try FileManager.default.moveItem(atPath: directory, toPath: folder + "/storage")
        state = at
        for sequence in history.keys where sequence > at.sequence { history[sequence] = nil }
    }

    /// What is wrong with an image, and its state. `changes`: whether it must take a change.
    private mutating func judge(
        _ directory: String, _ recording: Recording, _ states: [State], _ cut: Int, changes: Bool
    ) -> (String?, State?) {
        do throws(ServiceError) {
            let sets = try Recording.open(directory)
            defer { sets.close() }
            for _ in 0..<20_000 where !sets.health.isChecked && !sets.health.hasFailed { usleep(200) }
            guard sets.health.isChecked, sets.health.level == .intact else {
                return ("the storage counts as \(sets.health.level): \(sets.health.finding?.what ?? "-")", nil)
            }
            let last = try sets.read { snapshot throws(ServiceError) in try snapshot.lastSequence() }
            guard let at = states.first(where: { $0.sequence == last }) else {
                return ("its newest change is \(last), which is none of the recording", nil)
            }
            let acknowledged = recording.applied.last { $0.acknowledged <= cut }?.sequence ?? states[0].sequence
            guard last >= acknowledged else { return ("change \(acknowledged) was acknowledged: \(last)", nil) }
            if last > acknowledged { unacknowledged += 1 }
            if let newest = recording.applied.first(where: { $0.sequence == last }), newest.sent > cut {
                return ("change \(last) was not sent yet", nil)
            }
            let fault = try sets.read { snapshot throws(ServiceError) -> String? in
                if let difference = try at.model.difference(from: snapshot) { return difference }
                return try gap(in: snapshot, upTo: last)
            }
            if let fault { return (fault, nil) }
            return (changes ? try change(sets, after: last) : nil, at)
        } catch {
            refusedStarts += 1
            return ("refused: \(error)", nil)
        }
    }

    /// What is wrong with the change log; `nil` when it has no gap and says what was applied.
    private func gap(in snapshot: borrowing Snapshot, upTo last: UInt64) throws(ServiceError) -> String? {
        var next = try snapshot.statistics().firstSequence
        while next <= last {
            let page = try snapshot.changes(after: next - 1, limit: 100).items
            guard !page.isEmpty else { return "the log ends before \(next) of \(last)" }
            for logged in page {
                guard logged.sequence == next else { return "change \(logged.sequence) stands in place of \(next)" }
                guard logged.mutation == history[next] else { return "change \(next) is not the one that was sent" }
                next += 1
            }
        }
        return next == last + 1 ? nil : "the log has changes behind \(last)"
    }

    /// The storage must take a change after the cut, with the next sequence. It is one without an effect.
    private func change(_ sets: RootSets, after last: UInt64) throws(ServiceError) -> String? {
        guard let name = CollaborationIdentifier("deck-0") else { return nil }
        do throws(ServiceError) {
            let receipt = try sets.apply(Mutation(.removeRoots(name, [.zero])))
            return receipt.sequence == last + 1 ? nil : "the next change is \(receipt.sequence), not \(last + 1)"
        } catch {
            return error.code == .unknownCollaboration ? nil : "a change was refused: \(error)"
        }
    }
}
