import Core
import Foundation
import TestSupport
import Transport

@testable import Cluster
@testable import RootSets

/// What the services of a cluster give each other, and what a storage of a cluster has of its own. The first byte says
/// which kind of record it is.
enum FuzzedCluster {
    static let subject = FuzzSubject("cluster-records", bytesMax: 1024, seeds: seeds) { input in
        guard let first = input.first, let kind = Kind(rawValue: first) else { return }
        let bytes = Array(input.dropFirst())
        switch kind {
        case .segment: try segment(bytes)
        case .mutations: try mutations(bytes)
        case .place: try place(bytes)
        case .version: try version(bytes)
        case .note: try note(bytes)
        case .noteWithSum: try noteWithSum(Array(bytes.prefix(24)))
        case .noteFile: try noteFile(bytes)
        case .gates: try gates(bytes)
        }
    }

    private enum Kind: UInt8 {
        case segment, mutations, place, version, note, noteWithSum, noteFile
        /// Records of services, one in a line.
        case gates
    }

    // MARK: The log

    /// What is no segment is refused, and a segment has one form only.
    private static func segment(_ bytes: [UInt8]) throws {
        let shape = shape(of: bytes)
        guard let segment = Segment(bytes) else {
            return try demand(shape != 0, "a segment that has no mutation is refused")
        }
        try demand(segment.bytes == bytes, "a segment is written in another way than it was read")
        switch segment.contents {
        case .mutations(let mutations):
            try demand(shape == mutations.count, "\(mutations.count) mutations are read of \(shape ?? -1)")
        case .founding(let founding):
            try demand(shape == 0 && segment.previous == .zero, "a founding is read that is none")
            let place = SharedPlace(founding: Segment.hash(bytes), founding)
            let again = try place.bytes.withRawBytes { try SharedPlace(reading: $0) }
            try demand(again == place && again.number == 1, "the place behind a founding is read as another one")
        }
    }

    /// How many mutations a segment of these bytes has, when lengths and zeros are as they have to be; `nil`: they are
    /// not.
    private static func shape(of bytes: [UInt8]) -> Int? {
        var parts = InputParts(bytes)
        guard parts.number(1) == 1, let kind = parts.number(1), parts.number(2) == 0, let count = parts.number(4),
            parts.take(16) != nil, let previous = parts.take(32)
        else { return nil }
        if kind == 1 {
            let isFounding = count == 0 && previous.allSatisfy { $0 == 0 } && parts.take(24) != nil && parts.isAtEnd
            return isFounding ? 0 : nil
        }
        guard kind == 2, count <= 4096 else { return nil }
        for _ in 0..<count {
            guard let length = parts.number(4), parts.take(Int(length)) != nil else { return nil }
        }
        return parts.isAtEnd ? Int(count) : nil
    }

    /// What one service appends, every other one reads. The input has records of the change log, each with its length
    /// (2) before it; those that can be read become a segment.
    private static func mutations(_ bytes: [UInt8]) throws {
        var parts = InputParts(bytes)
        var mutations: [Mutation] = []
        while let length = parts.number(2), let record = parts.take(Int(length)) {
            let logged = try? record.withRawBytes { try LogRecord.decode($0, sequence: 0) }
            if let logged { mutations.append(logged.mutation) }
        }
        let before = Digest([UInt8](repeating: 0xa4, count: 32)) ?? .zero
        let segment = Segment(identifier: UInt128(bytes.count), after: before, .mutations(mutations))
        let written = segment.bytes
        try demand(Segment(written) == segment, "a segment that was written is not read as what it was")
        try demand(Segment(written + [0]) == nil, "a segment with a byte behind it is read")
        try demand(Segment(Array(written.dropLast())) == nil, "a segment without its last byte is read")
    }

    // MARK: The storage

    /// A place has 80 bytes and a number that is not 0.
    private static func place(_ bytes: [UInt8]) throws {
        let isPlace = bytes.count == 80 && bytes.prefix(8).contains { $0 != 0 }
        let sealed = SealedValue.bytes(of: bytes, version: 5, seed: 9).bytes
        let (place, read) = try sealed.withRawBytes { sealed in
            let value = SealedValue(sealed)
            try demand(
                value?.isGenuine(seed: 9) == true && value?.contents.elementsEqual(bytes) == true,
                "a sealed value is read as another one")
            return (
                try? bytes.withRawBytes { try SharedPlace(reading: $0) }, try? SharedPlace.read(value)
            )
        }
        try demand(place == read, "a sealed place is read as another one")
        try demand((place != nil) == isPlace, "a place is refused, or read where there is none")
        guard let place else { return }
        try demand(place.bytes == bytes, "a place is written in another way than it was read")
        guard place.number < .max else { return }
        let next = place.following(hash: place.founding)
        let again = try next.bytes.withRawBytes { try SharedPlace(reading: $0) }
        try demand(again == next && next.number > place.number, "the next place is read as another one")
    }

    private static func version(_ bytes: [UInt8]) throws {
        let version = try? bytes.withRawBytes { try SetsVersion(reading: $0) }
        try demand((version != nil) == (bytes.count == 8), "a version is refused, or read where there is none")
        try demand(version.map { $0.bytes == bytes } ?? true, "a version is written in another way than it was read")
    }

    private static func note(_ bytes: [UInt8]) throws {
        guard let note = CommitMark.Note(bytes) else { return }
        try demand(bytes.count == 32, "a note has \(bytes.count) bytes")
        try demand(note.bytes == bytes, "a note is written in another way than it was read")
    }

    /// The fuzzer does not find the sum by itself. With it every 24 bytes are a note.
    private static func noteWithSum(_ numbers: [UInt8]) throws {
        guard numbers.count == 24 else { return }
        let bytes = numbers + appended { $0.appendInteger(numbers.withRawBytes { Checksum.of($0, seed: 0) }) }
        guard let note = CommitMark.Note(bytes) else { throw Finding("a note is refused") }
        var parts = InputParts(numbers)
        let words = [parts.number(8), parts.number(8), parts.number(8)]
        try demand([note.transaction, note.digest, note.sequence] == words, "a note is read as \(note)")
        try Self.note(bytes)
        try demand(CommitMark.Note(bytes + [0]) == nil, "a note with a byte behind it is read")
        try demand(CommitMark.Note(numbers) == nil, "a note without its sum is read")
    }

    private static let scratch = ScratchDirectory()

    /// The file of the note. It stays open: some file systems write a file to the disk when it is closed.
    private static let openFile = Result {
        let mark = try CommitMark(directory: scratch.path)
        let file = open(scratch.path + "/" + CommitMark.fileName, O_WRONLY | O_CLOEXEC)
        try demand(file >= 0, "a file can't be opened")
        return (mark, file)
    }

    /// The file of the note, which an operator may have written to.
    private static func noteFile(_ bytes: [UInt8]) throws {
        let (mark, file) = try openFile.get()
        let isWritten = pwrite(file, bytes, bytes.count, 0) == bytes.count && ftruncate(file, off_t(bytes.count)) == 0
        try demand(isWritten, "a file can't be written")
        let word = Array("accept".utf8)
        let text = bytes.drop(while: isSpace).reversed().drop(while: isSpace).reversed()
        switch try mark.read() {
        case .none: try demand(bytes.prefix(64).allSatisfy { $0 == 0 }, "what is in the file is passed over")
        case .acceptance:
            let hasWord = bytes.indices.contains { bytes[$0...].starts(with: word) }
            try demand(hasWord, "what an operator has not written is read")
        case .note(let note):
            try demand(note.bytes == bytes, "the file's note is written in another way than it was read")
            // The note of the next commit replaces it.
            try demand(mark.write(note), "the note is not written")
            try demand(try mark.read() == .note(note), "a note that was written is not there")
        case .unknown:
            try demand(bytes.contains { $0 != 0 } && CommitMark.Note(bytes) == nil, "the file's note is refused")
            try demand(bytes.count > 64 || Array(text) != word, "what an operator has written is refused")
        }
    }

    private static func isSpace(_ byte: UInt8) -> Bool { byte == 0x20 || (0x09...0x0d).contains(byte) }

    // MARK: Services

    private static func gates(_ bytes: [UInt8]) throws {
        var records: [GateRecord] = []
        for line in bytes.split(separator: UInt8(ascii: "\n")) {
            guard let record = GateRecord(Array(line)) else { continue }
            try check(record)
            try checkLength(Array(line), record)
            records.append(record)
        }
        for (place, record) in records.enumerated() {
            var others = records
            others.remove(at: place)
            let isOutvoted = record.isOutvoted(by: others)
            try demand(record.isOutvoted(by: others.reversed()) == isOutvoted, "the order of services decides")
            try demand(!record.isOutvoted(by: others + [record]), "a service is outvoted that agrees with another one")
            try demand(!isOutvoted || others.count >= 2, "one service outvotes another one")
            for other in records {
                try demand(
                    record.hasForeignSecret(to: other) == other.hasForeignSecret(to: record),
                    "one of two services has a foreign secret, and the other one has not")
            }
        }
    }

    /// What is told of a service has the bounds of what a service tells, and is read again as the same.
    static func check(_ record: GateRecord) throws {
        try demand(!record.hasForeignSecret(to: record), "a service has a foreign secret to itself")
        if let secrets = record.secrets {
            let isName = { (name: String) in name.utf8.count <= 32 && name.utf8.allSatisfy { $0 > 0x20 && $0 < 0x7f } }
            try demand(secrets.count <= 3 && secrets.allSatisfy(isName), "names of secrets are \(secrets)")
        }
        if let address = record.address {
            try demand(address.utf8.count <= 300, "an address has \(address.utf8.count) bytes")
            let controls = address.unicodeScalars.filter { $0.properties.generalCategory == .control }
            try demand(controls.isEmpty, "an address has control characters")
        }
        let written = record.bytes
        try demand(
            GateRecord(written) == (written.count <= 4096 ? record : nil),
            "a service's record is read in another way when it is written again")
    }

    /// A record may have so many bytes, and no more. Spaces make it longer.
    private static func checkLength(_ bytes: [UInt8], _ record: GateRecord) throws {
        // It may be UTF-16, where these are no spaces.
        guard !bytes.contains(0) else { return }
        let longest = bytes + [UInt8](repeating: 0x20, count: 4096 - bytes.count)
        try demand(GateRecord(longest) == record, "spaces change a service's record")
        try demand(GateRecord(longest + [0x20]) == nil, "a service's record is too long and is read")
    }

    // MARK: Seeds

    private static let root = Digest([UInt8](repeating: 0xd7, count: 32)) ?? .zero

    private static func seeds() throws -> [[UInt8]] {
        let founding = Segment.Founding(hashKey: Array(1...16), logRetentionBytes: 1 << 30)
        let place = SharedPlace(founding: root, founding)
        let note: [UInt8] = appended { bytes in
            for number in [12, 0x1234_5678_9abc_def0, 11] as [UInt64] { bytes.appendInteger(number) }
        }
        let whole = note + appended { $0.appendInteger(note.withRawBytes { Checksum.of($0, seed: 0) }) }
        let records = gateRecords().map(\.bytes)
        func seed(_ kind: Kind, _ bytes: [UInt8]) -> [UInt8] { [kind.rawValue] + bytes }
        return try logSeeds(founding).map { seed(.segment, $0.bytes) } + [
            seed(.mutations, mutations().flatMap(recordWithLength)),
            seed(.place, place.bytes), seed(.place, place.following(hash: .zero).bytes),
            seed(.version, SetsVersion(sequence: 7).bytes), seed(.note, whole), seed(.noteWithSum, note),
            seed(.noteFile, whole), seed(.noteFile, Array("accept\n".utf8)), seed(.noteFile, Array(" accept".utf8)),
            seed(.noteFile, [UInt8](repeating: 0, count: 32)), seed(.noteFile, whole + [1]), seed(.noteFile, []),
            seed(.gates, Array(records.joined(separator: [10]))),
        ] + records.map { seed(.gates, $0) }
    }

    private static func logSeeds(_ founding: Segment.Founding) throws -> [Segment] {
        let all = try mutations()
        return [Segment(identifier: 1, after: .zero, .founding(founding))]
            + ([[]] + all.map { [$0] } + [all]).enumerated().map { index, mutations in
                Segment(identifier: UInt128(index) << 64, after: root, .mutations(mutations))
            }
    }

    private static func mutations() throws -> [Mutation] {
        guard let deck = CollaborationIdentifier("deck-42") else { throw Finding("an identifier is not valid") }
        var edit = Edit(deck)
        edit.creation = .deviceNonce(windowSeconds: 60)
        edit.records = [RecordEdit([1], value: [2], expecting: .absent)]
        var other = Edit()
        other.records = [RecordEdit([1, 2], isSequenced: true, value: [])]
        other.request = RequestDigest(logged: 99)
        let changes: [Change] = [
            .createCollaboration(deck, .challenge), .addRoots(deck, [root]), .removeRoots(deck, [.zero, root]),
            .edit(edit), .edit(other), .dropCollaboration(deck),
        ]
        return changes.enumerated().map { Mutation(identifier: MutationIdentifier(UInt128($0)), $1) }
    }

    private static func recordWithLength(_ mutation: Mutation) -> [UInt8] {
        var record: [UInt8] = []
        LogRecord.encode(mutation, changed: 3, after: 4, into: &record)
        return appended { $0.appendInteger(UInt16(record.count)) } + record
    }

    static func gateRecords() -> [GateRecord] {
        var progress = SharedProgress()
        (progress.segment, progress.sequence, progress.digest) = (70, 90, root)
        let first = GateRecord(progress)
        progress.checkpoint = SharedProgress.Checkpoint(segment: 64, digest: root)
        let second = GateRecord(
            progress, address: Endpoint(host: "::1", port: 7000), snapshot: 64, secrets: ["a1", "b2"])
        progress.checkpoint = SharedProgress.Checkpoint(segment: 64, digest: .zero)
        let third = GateRecord(progress, address: Endpoint(path: "/run/gate"), secrets: ["c3"])
        let fourth = GateRecord(progress, secrets: ["b2", "a1"])
        return [first, second, third, fourth]
    }
}
