import Core
import Dispatch
import FailingDisk
import Foundation
import RootSets
import TestSupport

/// Fills storages of random sizes on small disks, and then removes from them. Every removal must pass, also of what is
/// not there; what remains must be exactly what was added and not removed; and when everything is removed, at least
/// half as much fits as before.
///
/// A disk is one in memory where this process may mount one. Others end at some byte of the data file. Some of these
/// promise room that they don't have, and cut writes short. There removals may be refused, but only for lack of space.
/// What was removed there may leave no room, either: some of the free pages may be behind the disk's end, because LMDB
/// does not write pages that a commit has taken and given back. When something is left there, the disk is not filled
/// again: the last line counts these trials. On every other disk something that is left is wrong.
struct FullDiskTrials {
    struct Wrong: Error {
        let what: String
    }

    private enum Disk: CustomStringConvertible {
        case endless
        case inMemory(mebibytes: Int)
        case ending(mebibytes: Int, promises: Bool)

        var description: String {
            switch self {
            case .endless: "endless"
            case .inMemory(let size): "\(size) MiB in memory"
            case .ending(let size, let promises): "\(size) MiB\(promises ? ", and promises more" : "")"
            }
        }
    }

    private struct Plan: CustomStringConvertible {
        let disk: Disk
        let limit: Int
        let reserve: Int
        let log: Int
        /// The most roots of an addition.
        let batch: Int
        /// Whether the storage gets records, too.
        let hasDocuments: Bool

        var description: String {
            "disk \(disk); limit \(limit), reserve \(reserve), log \(log), additions up to \(batch)"
                + (hasDocuments ? ", documents" : "")
        }

        init(_ random: inout SeededGenerator, isBrief: Bool, hasDocuments: Bool) {
            let size = Int.random(in: isBrief ? 6...9 : 8...40, using: &random)
            switch Int.random(in: 0..<8, using: &random) {
            case 0...1: disk = .endless
            case 2...4: disk = .inMemory(mebibytes: size)
            case 5...6: disk = .ending(mebibytes: size, promises: false)
            default: disk = .ending(mebibytes: size, promises: true)
            }
            reserve = [1, 1, 1, 2, 4, 8, 16].randomElement(using: &random) ?? 1
            log = [1, 4, 32].randomElement(using: &random) ?? 1
            batch = [isBrief ? 300 : 30, 500, 4000, Limits.rootsPerRequestMax].randomElement(using: &random) ?? 1
            if isBrief {
                limit = [1, 2, 4, 8].randomElement(using: &random) ?? 1
            } else if case .endless = disk {
                limit = [1, 2, 4, 8, 16].randomElement(using: &random) ?? 1
            } else {
                limit = [8, 16, 64, 1024].randomElement(using: &random) ?? 8
            }
            self.hasDocuments = hasDocuments
        }
    }

    /// How the second filling of a trial has ended.
    private enum SecondFilling {
        /// The roots that fitted, as a part of those that fitted at first.
        case part(Double)
        /// At first nothing fitted.
        case ofNothing
        /// The disk does not keep its promise, so no part of it has to fit.
        case unbounded
        /// Something was left on a disk that does not keep its promise.
        case skipped
    }

    /// What all trials have come to.
    private struct Tally: CustomStringConvertible {
        private var filled = 0
        private var ofNothing = 0
        private var unbounded = 0
        private var skipped = 0
        private var least: Double?

        mutating func add(_ second: SecondFilling) {
            switch second {
            case .part(let part):
                filled += 1
                least = min(least ?? part, part)
            case .ofNothing: ofNothing += 1
            case .unbounded: unbounded += 1
            case .skipped: skipped += 1
            }
        }

        var description: String {
            let part = least.map { String(format: ", at least %.3f of the first root hashes fitted", $0) } ?? ""
            return "\(filled) disks filled again\(part); \(ofNothing) had no room at first; of those that promise "
                + "more, \(unbounded) filled again, \(skipped) not"
        }
    }

    /// As much as fitted at first, divided by this, must fit when everything was removed.
    ///
    /// Nobody has proved a tighter bound. The second filling has other sizes of additions and another number of
    /// collaborations, so its buckets are not as full. Its free pages are scattered, and the change log, which has as
    /// many bytes as the largest removals, is whole at once. Hundreds of trials have kept this bound. The last line
    /// tells the least part that was met.
    private static let secondPart = 2

    /// Runs trials with `count` seeds from `first` on. Prints a line for each and one for all, and ends with 1 at the
    /// first that is wrong. `isBrief`: with small disks only.
    static func run(first: UInt64, count: Int, isBrief: Bool) {
        var tally = Tally()
        for seed in first..<first + UInt64(count) {
            var trial = FullDiskTrials(seed: seed, isBrief: isBrief)
            do {
                let (line, second) = try trial.run()
                print("seed \(seed): \(line)")
                tally.add(second)
            } catch let wrong as Wrong {
                StorageProbe.end(1, "seed \(seed), \(trial.plan): WRONG: \(wrong.what)")
            } catch {
                StorageProbe.end(1, "seed \(seed), \(trial.plan): WRONG: \(error)")
            }
            fflush(nil)
        }
        StorageProbe.end(0, "\(count) trials, nothing wrong: \(tally)")
    }

    private var random: SeededGenerator
    private let plan: Plan
    private let scratch = ScratchDirectory()
    private let disk: SmallDisk?
    private let configuration: RootSets.Configuration
    private var sets: RootSets?
    /// What the storage should have.
    private var model: [CollaborationIdentifier: [Digest]] = [:]
    private var documents = StoredDocuments()
    private var removals = 0
    /// Removals that were refused because the disk does not keep its promise.
    private var refused = 0

    private init(seed: UInt64, isBrief: Bool) {
        random = SeededGenerator(seed: seed)
        plan = Plan(&random, isBrief: isBrief, hasDocuments: seed % 2 == 1)
        failing_disk_end(0, 0)
        // No disk has to be waited for.
        var small = SmallDisk(mebibytes: 512)
        switch plan.disk {
        case .endless: break
        case .inMemory(let size):
            small = SmallDisk(mebibytes: size)
            if small == nil { failing_disk_end(size << 20, 0) }
        case .ending(let size, let promises): failing_disk_end(size << 20, promises ? 1 : 0)
        }
        disk = small
        configuration = RootSets.Configuration(
            directory: (small?.path ?? scratch.path) + "/data", sizeLimitBytes: plan.limit << 20,
            reserveBytes: plan.reserve << 20, logRetentionBytes: plan.log << 20)
    }

    /// Returns what is to be printed, and how the second filling has ended.
    private mutating func run() throws -> (line: String, second: SecondFilling) {
        defer { sets?.close() }
        sets = try RootSets(configuration)
        let first = try fill(withDocuments: plan.hasDocuments)
        let full = try storage.read { snapshot throws(ServiceError) in try snapshot.statistics() }
        let fileMax = (plan.limit + plan.reserve) << 20
        guard full.fileBytes <= fileMax else { throw Wrong(what: "the file has \(full.fileBytes) bytes") }
        for _ in 0..<40 { try remove() }
        try compare()
        if Bool.random(using: &random) {
            try reopen()
            try compare()
        }
        for name in Array(model.keys) { try drop(name) }
        // Each removes a document at least, unless it is refused.
        for _ in 0..<StoredDocuments.documentsMax where !documents.counts.isEmpty { try removeDocuments() }
        guard model.isEmpty, documents.counts.isEmpty else {
            guard isLying, refused > 0 else {
                throw Wrong(what: "\(model.count) collaborations and \(documents.counts.count) documents are left")
            }
            return ("\(plan): \(first) roots, \(removals) removals, \(refused) refused; not filled again", .skipped)
        }
        if Bool.random(using: &random) { try reopen() }
        let second = try fill(withDocuments: false)
        guard isLying || second >= first / FullDiskTrials.secondPart else {
            throw Wrong(what: "\(first) roots fitted, and \(second) in the end")
        }
        try compare()
        let line =
            "\(plan): \(first) roots, then \(second); file \(full.fileBytes >> 10) KiB when full, "
            + "of it \(full.usedBytes >> 10) KiB used; \(removals) removals"
        if isLying { return (line, .unbounded) }
        return (line, first > 0 ? .part(Double(second) / Double(first)) : .ofNothing)
    }

    private var storage: RootSets {
        get throws {
            guard let sets else { throw Wrong(what: "it is closed") }
            return sets
        }
    }

    private mutating func reopen() throws {
        sets?.close()
        sets = nil
        let deadline = ContinuousClock.now + .seconds(20)
        while true {
            do throws(ServiceError) {
                sets = try RootSets(configuration)
                return
            } catch {
                guard error.code == .storageInUse, ContinuousClock.now < deadline else { throw error }
                usleep(1000)
            }
        }
    }

    private mutating func digests(_ count: Int) -> [Digest] {
        (0..<count).map { _ in
            let words = SIMD4(random.next(), random.next(), random.next(), random.next())
            return withUnsafeBytes(of: words) { Digest(Array($0)) ?? .zero }
        }
    }

    /// Whether the disk promises room that it does not have.
    private var isLying: Bool {
        if case .ending(_, true) = plan.disk { true } else { false }
    }

    /// A number up to `most`; small ones are as likely as large ones.
    private mutating func size(upTo most: Int) -> Int {
        Int(pow(Double(most), Double.random(in: 0...1, using: &random)).rounded())
    }

    /// Adds to several collaborations until additions are refused. Returns how many roots they have.
    private mutating func fill(withDocuments: Bool) throws -> Int {
        for index in 0..<Int.random(in: 1...4, using: &random) {
            let name = try StorageProbe.name(index)
            if try add(.createCollaboration(name, .challenge)) { model[name] = [] }
        }
        let names = model.keys.sorted { $0.description < $1.description }
        guard let one = names.first else { return 0 }
        var (refusals, batch) = (0, plan.batch)
        for _ in 0..<6000 where batch > 0 {
            if withDocuments, refusals == 0, Bool.random(using: &random) {
                let (edit, document, count) = documents.addition(&random)
                if try add(.edit(edit)) { documents.add(count, to: document) }
            }
            let name = names.randomElement(using: &random) ?? one
            let roots = digests(refusals > 0 ? batch : max(1, batch / 2, size(upTo: batch)))
            if try add(.addRoots(name, roots)) {
                model[name, default: []] += roots
            } else {
                refusals += 1
                batch /= 3
            }
        }
        return model.values.reduce(0) { $0 + $1.count }
    }

    /// Whether there was room for an addition.
    private func add(_ change: Change) throws -> Bool {
        do {
            try storage.apply(Mutation(change))
            return true
        } catch let error as ServiceError where error.code == .storageFull {
            return false
        } catch {
            throw Wrong(what: "an addition got \(error)")
        }
    }

    /// Removes some documents.
    private mutating func removeDocuments() throws {
        let (edit, gone) = documents.removal(&random)
        removals += 1
        do {
            try storage.apply(Mutation(.edit(edit)))
            documents.remove(gone)
        } catch let error as ServiceError where isLying && error.code == .storageFull {
            refused += 1
        } catch {
            throw Wrong(what: "removing documents got \(error), after \(removals)")
        }
    }

    /// Sends one or several removals at once, of roots that are there or not.
    private mutating func remove() throws {
        if plan.hasDocuments, Int.random(in: 0..<4, using: &random) == 0 { try removeDocuments() }
        // Longer records take what they can.
        for _ in 0..<3 {
            if let edit = documents.replacement(&random) { _ = try add(.edit(edit)) }
        }
        var changes: [(change: Change, changed: UInt64)] = []
        for _ in 0..<(Bool.random(using: &random) ? 1 : Int.random(in: 2...20, using: &random)) {
            guard let name = model.keys.randomElement(using: &random), var present = model[name] else { break }
            var removed: ArraySlice<Digest> = []
            if Int.random(in: 0..<3, using: &random) == 0 {
                present.shuffle(using: &random)
                removed = present.suffix(size(upTo: min(max(1, present.count / 3), Limits.rootsPerRequestMax)))
                model[name] = present.dropLast(removed.count)
            }
            let count = UInt64(removed.count)
            let absent = removed.isEmpty ? size(upTo: Limits.rootsPerRequestMax) : 0
            changes.append((.removeRoots(name, removed + digests(absent)), count))
        }
        let results = Lock([Result<MutationReceipt, ServiceError>?](repeating: nil, count: changes.count))
        let group = DispatchGroup()
        for (index, change) in changes.enumerated() {
            group.enter()
            try storage.submit(Mutation(change.change), isUrgent: true) { result in
                results.withLock { $0[index] = result }
                group.leave()
            }
        }
        group.wait()
        removals += changes.count
        for (result, (change, count)) in zip(results.withLock({ $0 }), changes) {
            switch result {
            case .success(let receipt) where receipt.changed == count: break
            case .failure(let error) where isLying && error.code == .storageFull:
                refused += 1
                guard case .removeRoots(let name, let roots) = change, count > 0 else { continue }
                model[name, default: []] += roots
            default: throw Wrong(what: "a removal of \(count) got \(String(describing: result)), after \(removals)")
            }
        }
        // Additions in between take what they can.
        guard Int.random(in: 0..<8, using: &random) == 0, let name = model.keys.randomElement(using: &random) else {
            return
        }
        let roots = digests(size(upTo: 500))
        if try add(.addRoots(name, roots)) { model[name, default: []] += roots }
    }

    private mutating func drop(_ name: CollaborationIdentifier) throws {
        do {
            try storage.apply(Mutation(.dropCollaboration(name)))
        } catch let error as ServiceError where isLying && error.code == .storageFull {
            refused += 1
            return
        } catch {
            throw Wrong(what: "dropping got \(error)")
        }
        model[name] = nil
    }

    private func compare() throws {
        let deadline = ContinuousClock.now + .seconds(20)
        while try !storage.health.isChecked, ContinuousClock.now < deadline { usleep(1000) }
        guard try storage.health.isChecked else { throw Wrong(what: "the check of the start does not end") }
        for (name, expected) in model {
            var found: [Digest] = []
            while true {
                let last = found.last
                let page = try storage.read { snapshot throws(ServiceError) in
                    try snapshot.roots(of: name, after: last, limit: 4096)
                }
                found += page?.items ?? []
                guard page?.hasMore == true else { break }
            }
            guard found == expected.sorted() else {
                throw Wrong(what: "\(name) has \(found.count) roots, not the \(expected.count) that it should have")
            }
        }
        if let fault = try documents.fault(in: storage) { throw Wrong(what: fault) }
        guard try storage.health.level == .intact else { throw Wrong(what: "the storage counts as failed") }
    }
}
