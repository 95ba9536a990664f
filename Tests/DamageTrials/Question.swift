import Core
import RootSets

/// Something that can be asked about a storage.
struct Question {
    let name: String
    /// Whether `SampleStorage.laterChanges` change the answer.
    let isChangedLater: Bool
    /// Whether the answer is another one when the change log becomes shorter, instead of an error.
    let isOfLog: Bool
    private let body: (borrowing Snapshot) throws(ServiceError) -> [UInt8]

    init(
        _ name: String, isChangedLater: Bool = false, isOfLog: Bool = false,
        _ body: @escaping (borrowing Snapshot) throws(ServiceError) -> [UInt8]
    ) {
        self.name = name
        self.isChangedLater = isChangedLater
        self.isOfLog = isOfLog
        self.body = body
    }

    /// The answer as bytes; `nil` when it is an error.
    func answer(_ sets: RootSets) -> [UInt8]? {
        try? sets.read { snapshot throws(ServiceError) in try body(snapshot) }
    }
}

/// Answers as bytes that differ when the answers do.
extension [UInt8] {
    mutating func add(_ number: some FixedWidthInteger) {
        self += Swift.withUnsafeBytes(of: number.littleEndian) { Array($0) }
    }

    mutating func add(_ bytes: [UInt8]) {
        add(bytes.count)
        self += bytes
    }

    mutating func add(_ roots: [Digest]) {
        add(roots.count)
        for root in roots { root.withUnsafeBytes { self += Array($0) } }
    }

    mutating func add(_ collaboration: CollaborationIdentifier?) { add(collaboration.map { Array($0.utf8) } ?? []) }

    mutating func add(_ summary: CollaborationSummary?) {
        guard let summary else { return add(0) }
        add(summary.identifier)
        add(Array("\(summary.policy)".utf8))
        add(summary.rootCount)
    }

    mutating func add(_ record: StoredRecord?) {
        guard let record else { return add(0) }
        add(record.key)
        add(record.version)
        add(record.value)
    }

    mutating func add(_ change: LoggedMutation) {
        add(change.sequence)
        add(change.changed)
        add(change.mutation.identifier.value)
        add(change.mutation.change.collaboration)
        switch change.mutation.change {
        case .createCollaboration(_, let policy): add(Array("\(policy)".utf8))
        case .dropCollaboration: add(4)
        case .addRoots(_, let roots): add(roots)
        case .removeRoots(_, let roots):
            add(5)
            add(roots)
        case .edit(let edit):
            add(edit.addedRoots)
            add(edit.removedRoots)
            for record in edit.records {
                add(record.key)
                add(record.value ?? [0, 1, 2])
            }
        }
    }

    /// What `body` adds.
    static func made(_ body: (inout [UInt8]) -> Void) -> [UInt8] {
        var bytes: [UInt8] = []
        body(&bytes)
        return bytes
    }
}
