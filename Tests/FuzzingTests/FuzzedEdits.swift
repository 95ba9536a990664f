import Core

/// Edits, as the change log and its readers have them. The first byte says whether the edit is about a collaboration.
enum FuzzedEdits {
    static let subject = FuzzSubject("edits", bytesMax: 512, seeds: seeds) { input in
        guard let first = input.first else { return }
        let bytes = UnsafeRawBufferPointer(rebasing: input[1...])
        let deck = first & 1 == 0 ? nil : CollaborationIdentifier("deck-42")
        guard let edit = Edit(bytes, collaboration: deck) else { return }
        try demand(
            appended { edit.append(to: &$0) }.elementsEqual(bytes), "an edit is written in another way than it was read"
        )
        _ = (edit.weight, edit.needsSpace, edit.isEmpty)
    }

    private static func seeds() -> [[UInt8]] {
        let root = Digest([UInt8](repeating: 0xc1, count: 32)) ?? .zero
        var edit = Edit(CollaborationIdentifier("deck-42"))
        let empty = edit
        edit.creation = .deviceNonce(windowSeconds: 60)
        edit.addedRoots = [root]
        edit.removedRoots = [.zero]
        edit.removedRanges = [RecordRange([1], [1, 2])]
        edit.records = [
            RecordEdit([1, 2], value: [3, 4], expecting: .version(5)), RecordEdit([6], isSequenced: true, value: []),
            RecordEdit([7], value: nil, expecting: .present), .checking([8], expecting: .absent),
        ]
        edit.request = RequestDigest(logged: 99)
        var drop = empty
        drop.dropsCollaboration = true
        return [edit, empty, drop].map { edit in [1] + appended { edit.append(to: &$0) } }
    }
}
