import Core
import Foundation
import TestSupport
import Testing

@testable import RootSets

/// What the root sets ought to be: plain dictionaries, and a list of what was applied.
struct RootModel {
    struct Entry {
        let policy: ProofPolicy
        var roots: Set<Digest> = []
    }

    private(set) var entries: [CollaborationIdentifier: Entry] = [:]
    private(set) var records: [[UInt8]: StoredRecord] = [:]
    private(set) var log: [LoggedMutation] = []
    private var applied: [MutationIdentifier: LoggedMutation] = [:]

    mutating func apply(_ mutation: Mutation) -> Outcome {
        if let first = applied[mutation.identifier] {
            guard isRepetition(of: first.mutation, mutation) else { return .failure(.mutationConflict) }
            return .success(MutationReceipt(sequence: first.sequence, changed: first.changed, isRepeat: true))
        }
        if case .edit(let edit) = mutation.change { return apply(edit, of: mutation) }
        guard let name = mutation.change.collaboration else { return .failure(.internalFault) }
        var changed = 1
        switch mutation.change {
        case .createCollaboration(_, let policy):
            if let present = entries[name] {
                guard present.policy == policy else { return .failure(.collaborationExists) }
                changed = 0
            } else {
                entries[name] = Entry(policy: policy)
            }
        case .dropCollaboration:
            guard entries.removeValue(forKey: name) != nil else { return .failure(.unknownCollaboration) }
        case .addRoots(_, let roots):
            guard let before = entries[name] else { return .failure(.unknownCollaboration) }
            entries[name]?.roots.formUnion(roots)
            changed = (entries[name]?.roots.count ?? 0) - before.roots.count
        case .removeRoots(_, let roots):
            guard let before = entries[name] else { return .failure(.unknownCollaboration) }
            entries[name]?.roots.subtract(roots)
            changed = before.roots.count - (entries[name]?.roots.count ?? 0)
        case .edit: break
        }
        return logged(mutation, changed)
    }

    /// Edits are the same when the same request made them, else when they are equal.
    private func isRepetition(of first: Mutation, _ second: Mutation) -> Bool {
        if case .edit(let one) = first.change, case .edit(let other) = second.change,
            one.request != nil || other.request != nil
        {
            return one.request == other.request
        }
        return first == second
    }

    private mutating func apply(_ edit: Edit, of mutation: Mutation) -> Outcome {
        for record in edit.records {
            let present = records[record.key]
            switch record.expectation {
            case .anything: break
            case .absent: if present != nil { return .failure(.staleEdit) }
            case .present: if present == nil { return .failure(.staleEdit) }
            case .version(let version): if present?.version != version { return .failure(.staleEdit) }
            }
        }
        var changed = 0
        if let name = edit.collaboration {
            if let policy = edit.creation {
                if let present = entries[name], present.policy != policy { return .failure(.collaborationExists) }
                if entries[name] == nil { (entries[name], changed) = (Entry(policy: policy), 1) }
            }
            guard let before = entries[name]?.roots else { return .failure(.unknownCollaboration) }
            let left = before.subtracting(edit.removedRoots)
            let after = left.union(edit.addedRoots)
            entries[name]?.roots = after
            changed += before.count - left.count + after.count - left.count
            if edit.dropsCollaboration { (entries[name], changed) = (nil, changed + 1) }
        }
        let sequence = UInt64(log.count + 1)
        for range in edit.removedRanges {
            records = records.filter { key, _ in
                key.lexicographicallyPrecedes(range.start) || !key.lexicographicallyPrecedes(range.end)
            }
        }
        for record in edit.records where !record.isCheck {
            let key =
                record.isSequenced ? record.key + withUnsafeBytes(of: sequence.bigEndian) { Array($0) } : record.key
            records[key] = record.value.map { StoredRecord(key: key, version: sequence, value: $0) }
        }
        return logged(mutation, changed)
    }

    private mutating func logged(_ mutation: Mutation, _ changed: Int) -> Outcome {
        let record = LoggedMutation(sequence: UInt64(log.count + 1), changed: UInt64(changed), mutation: mutation)
        log.append(record)
        applied[mutation.identifier] = record
        return .success(MutationReceipt(sequence: record.sequence, changed: record.changed, isRepeat: false))
    }
}

extension ServiceError {
    /// The code of what `body` throws; `nil` when it does not.
    static func code(of body: () throws(ServiceError) -> Void) -> Code? {
        do throws(ServiceError) {
            try body()
            return nil
        } catch {
            return error.code
        }
    }
}

extension RootSets {
    func outcome(of mutation: Mutation) -> Outcome {
        do throws(ServiceError) {
            return .success(try apply(mutation))
        } catch {
            return .failure(error.code)
        }
    }

    func refusal(of change: Change) -> ServiceError.Code? {
        ServiceError.code { () throws(ServiceError) in try apply(Mutation(change)) }
    }

    /// All root hashes, page by page; `nil` when there is no such collaboration.
    func allRoots(of name: CollaborationIdentifier, pages limit: Int = 4096) throws -> [Digest]? {
        var all: [Digest] = []
        while true {
            let start = all.last
            let page = try read { snapshot throws(ServiceError) in
                try snapshot.roots(of: name, after: start, limit: limit)
            }
            guard let page else { return nil }
            #expect(page.items.count <= limit)
            #expect(!page.hasMore || page.items.count == limit)
            all += page.items
            guard page.hasMore, !page.items.isEmpty else { return all }
        }
    }

    func allCollaborations(pages limit: Int = 1024) throws -> [CollaborationSummary] {
        var all: [CollaborationSummary] = []
        while true {
            let start = all.last?.identifier
            let page = try read { snapshot throws(ServiceError) in
                try snapshot.collaborations(after: start, limit: limit)
            }
            #expect(page.items.count <= limit)
            all += page.items
            guard page.hasMore, !page.items.isEmpty else { return all }
        }
    }

    func allChanges(after sequence: UInt64 = 0, pages limit: Int = 1024) throws -> [LoggedMutation] {
        var all: [LoggedMutation] = []
        while true {
            let last = all.last?.sequence ?? sequence
            let page = try read { snapshot throws(ServiceError) in try snapshot.changes(after: last, limit: limit) }
            #expect(page.items.count <= limit)
            all += page.items
            guard page.hasMore, !page.items.isEmpty else { return all }
        }
    }

    func statistics() throws -> StorageStatistics {
        try read { snapshot throws(ServiceError) in try snapshot.statistics() }
    }

    func test(_ roots: [Digest], in name: CollaborationIdentifier) throws -> [Bool]? {
        try read { snapshot throws(ServiceError) in try snapshot.test(roots, in: name) }
    }

    func summary(of name: CollaborationIdentifier) throws -> CollaborationSummary? {
        try read { snapshot throws(ServiceError) in try snapshot.summary(of: name) }
    }
}

/// The order of the bytes, one at a time.
func inOrder(_ roots: some Sequence<Digest>) -> [Digest] {
    roots.map { ($0, $0.bytes) }.sorted { $0.1.lexicographicallyPrecedes($1.1) }.map(\.0)
}

/// Compares everything that can be read with the model.
func expectSame(
    _ sets: RootSets, _ model: RootModel, probes: [Digest], pages limit: Int = 500, _ context: String
) throws {
    let names = model.entries.keys.sorted { $0.utf8.lexicographicallyPrecedes($1.utf8) }
    let listed = try sets.allCollaborations(pages: 2)
    #expect(try sets.allCollaborations(pages: 1000) == listed, "the order does not depend on the pages; \(context)")
    let listedNames = listed.map(\.identifier).sorted { $0.utf8.lexicographicallyPrecedes($1.utf8) }
    #expect(listedNames == names, "\(context)")
    let records = model.records.values.sorted { $0.key.lexicographicallyPrecedes($1.key) }
    try sets.read { snapshot throws(ServiceError) in
        let all = RecordRange([0], [0xff])
        let isSame = try snapshot.records(in: all, limit: .max).items == records
        #expect(isSame, "\(context): records")
        let last = try snapshot.records(in: all, limit: 3, isDescending: true)
        #expect(last.items == records.suffix(3).reversed() && last.hasMore == (records.count > 3), "\(context)")
        if let middle = records.dropFirst(records.count / 2).first {
            #expect(try snapshot.record(middle.key) == middle, "\(context)")
            #expect(try snapshot.record(middle.key + [0]) == nil, "\(context)")
            let before = try snapshot.records(in: RecordRange([0], middle.key), limit: 2, isDescending: true).items
            #expect(
                before == records.filter { $0.key.lexicographicallyPrecedes(middle.key) }.suffix(2).reversed(),
                "\(context)")
            let behind = try snapshot.records(in: RecordRange(middle.key, [0xff]), limit: 2).items
            #expect(behind == Array(records.dropFirst(records.count / 2).prefix(2)), "\(context)")
        }
    }
    for summary in listed {
        let entry = try #require(model.entries[summary.identifier])
        #expect(summary.policy == entry.policy, "\(context)")
        #expect(summary.rootCount == UInt64(entry.roots.count), "\(context): \(summary.identifier)")
        #expect(try sets.summary(of: summary.identifier) == summary, "\(context)")
        let isListedSame = try sets.allRoots(of: summary.identifier, pages: limit) == inOrder(entry.roots)
        #expect(isListedSame, "\(context): \(summary.identifier)")
        let tested = try sets.test(probes, in: summary.identifier)
        let isTestedSame = tested == probes.map { entry.roots.contains($0) }
        #expect(isTestedSame, "\(context): \(summary.identifier)")
    }
    let statistics = try sets.statistics()
    #expect(statistics.collaborations == UInt64(model.entries.count), "\(context)")
    #expect(statistics.roots == model.entries.values.reduce(0) { $0 + UInt64($1.roots.count) }, "\(context)")
    #expect(statistics.lastSequence == UInt64(model.log.count), "\(context)")
    #expect(statistics.firstSequence == 1, "\(context)")
    #expect(statistics.fileBytes > 0, "\(context)")
}

/// A data directory of a test's own, with its storage open.
final class Storage {
    let scratch = ScratchDirectory()
    private let configure: (inout RootSets.Configuration) -> Void
    private let surroundings: StorageSurroundings
    private let log: (any SharedLog)?
    private var opened: RootSets?

    /// The reserve is small, so that tests don't write 32 MiB files.
    init(
        _ surroundings: StorageSurroundings = StorageSurroundings(), sharing log: (any SharedLog)? = nil,
        _ configure: @escaping (inout RootSets.Configuration) -> Void = { _ in }
    ) throws {
        (self.surroundings, self.log, self.configure) = (surroundings, log, configure)
        opened = try open()
    }

    var directory: String { scratch.path + "/data" }
    var file: String { directory + "/data.mdb" }

    var sets: RootSets {
        get throws { try #require(opened) }
    }

    /// Creates an empty collaboration that requires challenges.
    func create(_ text: String) throws -> CollaborationIdentifier {
        let identifier = try name(text)
        try sets.apply(Mutation(.createCollaboration(identifier, .challenge)))
        return identifier
    }

    func open() throws(ServiceError) -> RootSets {
        var configuration = RootSets.Configuration(directory: directory, sizeLimitBytes: 1 << 30, reserveBytes: 1 << 20)
        configure(&configuration)
        return try RootSets(configuration, surroundings: surroundings, shared: log)
    }

    /// Returns when LMDB's environment is closed, or after a second, when something else still uses it. Closing an
    /// environment frees all places that its process has in the table of readers, also those of a later environment.
    func close() {
        let closing = opened?.closing
        opened?.close()
        opened = nil
        _ = closing?.wait(timeout: .now() + 1)
    }

    /// Closes and opens again. The writer's thread may hold the directory a moment longer than its owner.
    func reopen() throws {
        close()
        for _ in 0..<5000 where opened == nil {
            do throws(ServiceError) {
                opened = try open()
            } catch {
                guard error.code == .storageInUse else { throw error }
                usleep(1000)
            }
        }
        _ = try sets
    }
}

func name(_ text: String) throws -> CollaborationIdentifier {
    try #require(CollaborationIdentifier(text))
}

/// What came of a mutation.
enum Outcome: Equatable {
    case success(MutationReceipt)
    case failure(ServiceError.Code)
}
