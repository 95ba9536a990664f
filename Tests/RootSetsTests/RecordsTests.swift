import Core
import RootSets
import TestSupport
import Testing

@Suite("Records beside the sets")
struct RecordsTests {
    private func code(of edit: Edit, on storage: Storage) throws -> ServiceError.Code? {
        switch try storage.sets.outcome(of: Mutation(.edit(edit))) {
        case .success: nil
        case .failure(let code): code
        }
    }

    private func writing(_ records: [RecordEdit]) -> Edit {
        var edit = Edit()
        edit.records = records
        return edit
    }

    @Test("Keys and values of the largest size are kept, and one byte more is over the limit")
    func sizes() throws {
        let storage = try Storage()
        let key = [UInt8](repeating: 7, count: Limits.recordKeyBytesMax)
        let value = [UInt8](repeating: 8, count: Limits.recordValueBytesMax)
        #expect(try code(of: writing([RecordEdit(key, value: value)]), on: storage) == nil)
        #expect(
            try code(of: writing([RecordEdit(Array(key.dropLast(8)), isSequenced: true, value: [])]), on: storage)
                == nil)
        for refused in [
            RecordEdit(key + [1], value: []), RecordEdit([1], value: value + [1]), RecordEdit([], value: []),
            RecordEdit(Array(key.dropLast(7)), isSequenced: true, value: []),
        ] {
            #expect(try code(of: writing([RecordEdit([2], value: []), refused]), on: storage) == .limitExceeded)
        }
        let kept = try storage.sets.read { snapshot throws(ServiceError) in
            try snapshot.records(in: RecordRange([0], [255]), limit: 10).items
        }
        #expect(kept.map(\.key.count) == [500, 500], "a refused edit left something behind")
        #expect(kept.contains { $0.key == key && $0.value == value && $0.version == 1 })
    }

    @Test("An edit with too many records or ranges is over the limit")
    func counts() throws {
        let storage = try Storage()
        let records = (0...Limits.recordsPerEditMax).map { RecordEdit(Array("\($0)".utf8), value: []) }
        #expect(try code(of: writing(records), on: storage) == .limitExceeded)
        #expect(try code(of: writing(records.dropLast()), on: storage) == nil)
        var edit = Edit()
        edit.removedRanges = .init(repeating: RecordRange([1], [2]), count: Limits.rangesPerEditMax + 1)
        #expect(try code(of: edit, on: storage) == .limitExceeded)
        edit.removedRanges.removeLast()
        #expect(try code(of: edit, on: storage) == nil)
        let longest = [UInt8](repeating: 1, count: Limits.recordKeyBytesMax)
        edit.removedRanges = [RecordRange(longest, longest)]
        #expect(try code(of: edit, on: storage) == nil)
        edit.removedRanges = [RecordRange([1], longest + [1])]
        #expect(try code(of: edit, on: storage) == .limitExceeded)
    }

    @Test("An edit of the largest size is kept and can be read from the log; a byte more is over the limit")
    func bytes() throws {
        let storage = try Storage()
        var edit = writing(
            (0..<15).map { RecordEdit([$0], value: [UInt8](repeating: 5, count: Limits.recordValueBytesMax)) })
        edit.records.append(RecordEdit([15], value: []))
        edit.records[15].value = [UInt8](repeating: 6, count: Limits.editBytesMax - edit.weight)
        #expect(edit.weight == Limits.editBytesMax)
        #expect(try code(of: edit, on: storage) == nil)
        let page = try storage.sets.read { snapshot throws(ServiceError) in try snapshot.changes(after: 0, limit: 10) }
        #expect(page.items.map(\.mutation.change) == [.edit(edit)])
        edit.records[15].value?.append(6)
        #expect(try code(of: edit, on: storage) == .limitExceeded)
    }

    @Test("Of two edits that were decided on the same version, the second is stale and changes nothing")
    func stale() throws {
        let storage = try Storage()
        let collaboration = try name("decks")
        var first = writing([RecordEdit([1], value: [1], expecting: .absent)])
        first.collaboration = collaboration
        first.creation = .challenge
        first.addedRoots = [.zero]
        #expect(try code(of: first, on: storage) == nil)
        #expect(try code(of: first, on: storage) == .staleEdit)
        var second = writing([RecordEdit([2], value: []), RecordEdit([1], value: [2], expecting: .version(2))])
        second.collaboration = collaboration
        second.removedRoots = [.zero]
        #expect(try code(of: second, on: storage) == .staleEdit)
        #expect(try storage.sets.test([.zero], in: collaboration) == [true])
        second.records[1].expectation = .version(1)
        #expect(try code(of: second, on: storage) == nil)
        #expect(try storage.sets.test([.zero], in: collaboration) == [false])
    }

    @Test("A check leaves the record and its version, and makes the edit stale when it does not hold")
    func checks() throws {
        let storage = try Storage()
        #expect(try code(of: writing([RecordEdit([1], value: [5])]), on: storage) == nil)
        let other = RecordEdit([2], value: [6])
        #expect(try code(of: writing([.checking([1], expecting: .version(1)), other]), on: storage) == nil)
        #expect(try code(of: writing([.checking([3], expecting: .absent), other]), on: storage) == nil)
        for wrong in [
            RecordEdit.checking([1], expecting: .version(2)), .checking([1], expecting: .absent),
            .checking([3], expecting: .present),
        ] {
            #expect(try code(of: writing([wrong, RecordEdit([4], value: [])]), on: storage) == .staleEdit)
        }
        let kept = try storage.sets.read { snapshot throws(ServiceError) in
            try snapshot.records(in: RecordRange([0], [255]), limit: 10).items
        }
        #expect(
            kept == [StoredRecord(key: [1], version: 1, value: [5]), StoredRecord(key: [2], version: 3, value: [6])])
    }

    /// An edit that writes one record and was made by the request of that number; `nil`: by no request.
    private func edit(_ value: UInt8, by request: UInt128?) -> Mutation {
        var edit = writing([RecordEdit([1], value: [value])])
        edit.request = request.flatMap { RequestDigest(logged: $0) }
        return Mutation(identifier: MutationIdentifier(5), .edit(edit))
    }

    @Test("A repeated edit is recognized by its request, else by its content; a replica of the log does the same")
    func repeats() throws {
        for (first, same, others) in [
            (edit(5, by: 1), edit(6, by: 1), [edit(5, by: 2), edit(5, by: nil)]),
            (edit(5, by: nil), edit(5, by: nil), [edit(6, by: nil), edit(5, by: 1)]),
        ] {
            let (storage, replica) = (try Storage(), try Storage())
            let receipt = MutationReceipt(sequence: 1, changed: 0, isRepeat: false)
            #expect(try storage.sets.outcome(of: first) == .success(receipt))
            let log = try storage.sets.read { snapshot throws(ServiceError) in
                try snapshot.changes(after: 0, limit: 9).items
            }
            for change in log { #expect(try replica.sets.outcome(of: change.mutation) == .success(receipt)) }
            let again = MutationReceipt(sequence: 1, changed: 0, isRepeat: true)
            for either in [storage, replica] {
                #expect(try either.sets.outcome(of: same) == .success(again))
                for other in others { #expect(try either.sets.outcome(of: other) == .failure(.mutationConflict)) }
                let value = try either.sets.read { snapshot throws(ServiceError) in try snapshot.record([1])?.value }
                #expect(value == [5])
            }
        }
    }

    @Test("The identifier of an edit can't be used for another mutation, and the log tells the edit's request")
    func requestsInTheLog() throws {
        let storage = try Storage()
        try storage.sets.apply(edit(5, by: .max))
        let found = try storage.sets.read { snapshot throws(ServiceError) in
            try snapshot.applied(MutationIdentifier(5))
        }
        #expect(found?.sequence == 1 && found?.request == RequestDigest(logged: .max))
        let name = try #require(CollaborationIdentifier("a"))
        let other = Mutation(identifier: MutationIdentifier(5), .createCollaboration(name, .challenge))
        #expect(try storage.sets.outcome(of: other) == .failure(.mutationConflict))
        let create = Mutation(identifier: MutationIdentifier(6), .createCollaboration(name, .challenge))
        try storage.sets.apply(create)
        let created = try storage.sets.read { snapshot throws(ServiceError) in
            try snapshot.applied(MutationIdentifier(6))
        }
        #expect(created?.sequence == 2 && created?.request == nil)
        let nothing = try storage.sets.read { snapshot throws(ServiceError) in
            try snapshot.applied(MutationIdentifier(7)) == nil
        }
        #expect(nothing)
    }

    @Test("Borrowed records equal copied ones")
    func lending() throws {
        let storage = try Storage()
        let records = (0..<20).map {
            RecordEdit([UInt8($0 / 5), UInt8($0)], value: [UInt8](repeating: UInt8($0), count: $0))
        }
        #expect(try code(of: writing(records), on: storage) == nil)
        for range in [
            RecordRange([], [9]), RecordRange([1], [2]), RecordRange([1, 6], [1, 6, 0]), RecordRange([2], [1]),
            RecordRange([3], []),
        ] {
            let (copied, lent) = try storage.sets.read { snapshot throws(ServiceError) in
                var lent: [[UInt8]] = []
                try snapshot.visitRecords(in: range) { key, value in
                    lent.append(Array(key) + Array(value))
                    return true
                }
                return (try snapshot.records(in: range, limit: 100).items, lent)
            }
            #expect(lent == copied.map { $0.key + $0.value })
        }
        let (some, version, none) = try storage.sets.read { snapshot throws(ServiceError) in
            var some = 0
            try snapshot.visitRecords(in: RecordRange([], [9])) { _, _ in
                some += 1
                return some < 7
            }
            let version = try [0, 3].withRawBytes { key throws(ServiceError) in
                try snapshot.withRecord(key) { version, value in Int(version) + value.count }
            }
            let none = try [0, 9].withRawBytes { key throws(ServiceError) in try snapshot.withRecord(key) { _, _ in 1 }
            }
            return (some, version, none)
        }
        #expect((some, version, none) == (7, 4, nil))
    }

    @Test("Empty bounds are before every key")
    func emptyBounds() throws {
        let storage = try Storage()
        let keys: [[UInt8]] = [[0], [0, 0], [9], [255]]
        #expect(try code(of: writing(keys.map { RecordEdit($0, value: $0) }), on: storage) == nil)
        func kept(_ range: RecordRange, isDescending: Bool = false) throws -> [[UInt8]] {
            try storage.sets.read { snapshot throws(ServiceError) in
                try snapshot.records(in: range, limit: 10, isDescending: isDescending).items.map(\.key)
            }
        }
        #expect(try kept(RecordRange([], [255, 0])) == keys)
        #expect(try kept(RecordRange([], [255]), isDescending: true) == [[9], [0, 0], [0]])
        #expect(try kept(RecordRange([], [])) == [])
        #expect(try kept(RecordRange([1], []), isDescending: true) == [])
        #expect(try storage.sets.read { snapshot throws(ServiceError) in try snapshot.record([]) } == nil)
        var edit = Edit()
        edit.removedRanges = [RecordRange([], []), RecordRange([], [9])]
        #expect(try code(of: edit, on: storage) == nil)
        #expect(try kept(RecordRange([], [255, 0])) == [[9], [255]])
    }

    @Test("An edit in the log is decoded whole or not at all")
    func truncations() throws {
        var edit = writing([RecordEdit([1, 2], value: [3, 4], expecting: .version(5)), RecordEdit([6], value: nil)])
        edit.addedRoots = [.zero]
        edit.removedRanges = [RecordRange([1], [2])]
        edit.request = RequestDigest(logged: .max / 3)
        var bytes: [UInt8] = []
        edit.append(to: &bytes)
        let whole = bytes.withRawBytes { Edit($0, collaboration: nil) }
        #expect(whole == edit)
        for count in 0..<bytes.count {
            let cut = Array(bytes[..<count]).withRawBytes { Edit($0, collaboration: nil) }
            #expect(cut == nil, "\(count) bytes")
        }
        let longer = (bytes + [0]).withRawBytes { Edit($0, collaboration: nil) }
        #expect(longer == nil)
    }
}
