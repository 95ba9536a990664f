import Core
import RootSets

/// What the storage must hold, in plain sets and dictionaries.
struct CutModel {
    struct Collaboration {
        let policy: ProofPolicy
        var roots: Set<Digest> = []
    }

    private(set) var collaborations: [CollaborationIdentifier: Collaboration] = [:]
    private(set) var records: [[UInt8]: [UInt8]] = [:]

    /// All keys are in this range.
    static let keys = RecordRange(Array("record/".utf8), Array("record/".utf8) + [0xff])

    mutating func apply(_ change: Change) {
        switch change {
        case .createCollaboration(let name, let policy):
            if collaborations[name] == nil { collaborations[name] = Collaboration(policy: policy) }
        case .dropCollaboration(let name): collaborations[name] = nil
        case .addRoots(let name, let roots): collaborations[name]?.roots.formUnion(roots)
        case .removeRoots(let name, let roots): collaborations[name]?.roots.subtract(roots)
        case .edit(let edit):
            if let name = edit.collaboration {
                collaborations[name]?.roots.formUnion(edit.addedRoots)
                collaborations[name]?.roots.subtract(edit.removedRoots)
            }
            for record in edit.records { records[record.key] = record.value }
        }
    }

    /// How a snapshot differs from the model; `nil` when it does not.
    func difference(from snapshot: borrowing Snapshot) throws(ServiceError) -> String? {
        let listed = try snapshot.collaborations(after: nil, limit: Limits.rootsPerPageMax).items
        guard Set(listed.map(\.identifier)) == Set(collaborations.keys), listed.count == collaborations.count else {
            return "there are \(listed.count) collaborations, not \(collaborations.count)"
        }
        for summary in listed {
            guard let expected = collaborations[summary.identifier] else { return "\(summary.identifier) is there" }
            guard summary.policy == expected.policy, summary.rootCount == UInt64(expected.roots.count) else {
                return "\(summary.identifier) counts \(summary.rootCount) roots, not \(expected.roots.count)"
            }
            var count = 0
            var last: Digest?
            while let page = try snapshot.roots(of: summary.identifier, after: last, limit: Limits.rootsPerPageMax) {
                guard page.items.allSatisfy(expected.roots.contains) else { return "a root was invented" }
                count += page.items.count
                last = page.items.last ?? last
                guard page.hasMore, count <= expected.roots.count else { break }
            }
            guard count == expected.roots.count else { return "\(count) roots, not \(expected.roots.count)" }
        }
        return try differenceOfRecords(from: snapshot)
    }

    private func differenceOfRecords(from snapshot: borrowing Snapshot) throws(ServiceError) -> String? {
        let found = try snapshot.records(in: CutModel.keys, limit: records.count + 1, isDescending: false).items
        guard found.count == records.count else { return "there are \(found.count) records, not \(records.count)" }
        for record in found where records[record.key] != record.value { return "a record has another value" }
        return nil
    }
}
