import Core
import Principals

/// The edit that changes one principal. It is stale when any principal has changed since the records were read, because
/// two principals must not be known by the same key, certificate or user.
struct PrincipalEdit {
    /// All principals.
    let known: [Loaded<PrincipalRecord>]
    private let count: StoredRecord?
    private var records: [RecordEdit] = []
    private var removedRanges: [RecordRange] = []
    private var difference = 0

    init(_ records: borrowing some RecordReader & ~Copyable) throws(ServiceError) {
        known = try records.principals()
        count = try records.record(RecordKeys.principalCount)
    }

    /// Whether there never was a principal.
    var isFirst: Bool { count == nil }

    /// The principal of that name.
    func principal(_ name: PrincipalName) -> Loaded<PrincipalRecord>? { known.first { $0.value.name == name } }

    /// Throws unless the principal's parts are within their bounds and no other principal is known by them.
    func check(_ record: PrincipalRecord) throws(ServiceError) {
        try record.check()
        for other in known where other.value.name != record.name { try record.checkDistinct(from: other.value) }
    }

    /// The principal of that name. Throws `unknownPrincipal`.
    func existing(_ name: PrincipalName) throws(ServiceError) -> Loaded<PrincipalRecord> {
        guard let found = principal(name) else {
            throw ServiceError(.unknownPrincipal, "there is no principal \(name)")
        }
        return found
    }

    /// The decision that a principal is written. `before`: what it was; `nil` for a new one.
    ///
    /// Throws what `check` throws.
    func writing(
        _ record: PrincipalRecord, before: Loaded<PrincipalRecord>?
    ) throws(ServiceError) -> Decision<ChangeReceipt> {
        var edit = self
        try edit.write(record, before: before)
        return .change(edit.edit(), topics: [], count: 1)
    }

    private mutating func write(_ record: PrincipalRecord, before: Loaded<PrincipalRecord>?) throws(ServiceError) {
        try check(record)
        records.append(
            try .json(
                RecordKeys.principal(record.name), record,
                expecting: before.map { .version($0.version) } ?? .absent))
        if before == nil { difference += 1 }
        let never = bigEndianBytes(0)
        let identifiers = Set(record.keys.map(\.hash.identifier))
        let earlier = Set(before?.value.keys.map(\.hash.identifier) ?? [])
        for key in record.keys where !earlier.contains(key.hash.identifier) {
            records.append(
                RecordEdit(RecordKeys.principalUse(record.name, key.hash.identifier), value: never, expecting: .absent))
        }
        for key in before?.value.keys ?? [] where !identifiers.contains(key.hash.identifier) {
            records.append(RecordEdit(RecordKeys.principalUse(record.name, key.hash.identifier), value: nil))
        }
        let wasKnown = before?.value.isKnownWithoutKey ?? false
        if record.isKnownWithoutKey != wasKnown {
            records.append(
                RecordEdit(
                    RecordKeys.principalUse(record.name, nil), value: record.isKnownWithoutKey ? never : nil))
        }
    }

    /// The decision that a principal is removed with its keys.
    func removing(_ before: Loaded<PrincipalRecord>) -> Decision<ChangeReceipt> {
        var edit = self
        let name = before.value.name
        edit.records.append(RecordEdit(RecordKeys.principal(name), value: nil, expecting: .version(before.version)))
        edit.removedRanges.append(.beginning(with: RecordKeys.principalUses(name)))
        edit.difference -= 1
        return .change(edit.edit(), topics: [], count: 1)
    }

    private func edit() -> Edit {
        var edit = Edit()
        edit.removedRanges = removedRanges
        edit.records = records
        edit.records.append(
            RecordEdit(
                RecordKeys.principalCount, value: bigEndianBytes(UInt64(max(0, known.count + difference))),
                expecting: count.map { .version($0.version) } ?? .absent))
        return edit
    }
}
