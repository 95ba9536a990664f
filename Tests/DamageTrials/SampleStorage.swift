import Core
import Foundation
import RootSets
import TestSupport

/// The storage whose copies are damaged: small and large sets, records, a log; and the questions about it.
enum SampleStorage {
    /// With every other seed the change log lacks its beginning.
    static func configuration(_ directory: String, seed: UInt64) -> RootSets.Configuration {
        RootSets.Configuration(
            directory: directory, sizeLimitBytes: 32 << 20, reserveBytes: 1 << 20,
            logRetentionBytes: isLogTrimmed(seed) ? 48 << 10 : 32 << 20)
    }

    private static func isLogTrimmed(_ seed: UInt64) -> Bool { seed % 2 == 1 }

    private static let names = (0..<60).map { "collaboration-\($0)" }
    private static let largeNames = ["crowd", "people"]

    /// Changes after the damage: sets and records of their own among the others, and removals: a part of the set
    /// `leaving`, and the set `parting`.
    static let laterChanges: [Mutation] = {
        var changes: [Change] = []
        if let leaving = CollaborationIdentifier("leaving") {
            changes.append(.removeRoots(leaving, (0..<20).map { digest(2000, $0) }))
        }
        for index in 0..<8 {
            guard let name = CollaborationIdentifier("later-\(index)") else { continue }
            changes.append(.createCollaboration(name, .challenge))
            changes.append(.addRoots(name, (0..<(index == 1 ? 200 : 30)).map { digest(3000 + index, $0) }))
            var edit = Edit(name)
            edit.records = [RecordEdit(Array("later-\(index)".utf8), value: [UInt8(index)])]
            changes.append(.edit(edit))
        }
        if let name = CollaborationIdentifier("later-1") { changes.append(.dropCollaboration(name)) }
        if let parting = CollaborationIdentifier("parting") { changes.append(.dropCollaboration(parting)) }
        return changes.enumerated().map { number, change in
            Mutation(identifier: MutationIdentifier(0xabcdef00 + UInt128(number)), change)
        }
    }()

    /// Questions about what acknowledged changes have made, with the right answers. `made`: which of `laterChanges`
    /// were acknowledged.
    static func laterQuestions(_ made: [Bool]) -> [(question: Question, answer: [UInt8])] {
        guard made.count == laterChanges.count else { return [] }
        let changes = zip(laterChanges, made).filter(\.1).map(\.0.change)
        // The members that a set has or lacks because of acknowledged changes; `nil`: it was dropped.
        var sets: [CollaborationIdentifier: [Digest: Bool]?] = [:]
        var questions: [(question: Question, answer: [UInt8])] = []
        for change in changes {
            switch change {
            case .createCollaboration(let name, _): sets[name] = .some([:])
            case .dropCollaboration(let name): sets[name] = .some(nil)
            case .addRoots(let name, let roots):
                for root in roots { sets[name, default: [:]]?[root] = true }
            case .removeRoots(let name, let roots):
                for root in roots { sets[name, default: [:]]?[root] = false }
            case .edit(let edit):
                for record in edit.records {
                    questions.append((recordQuestion(record.key), [1] + (record.value ?? [])))
                }
            }
        }
        for (name, members) in sets.sorted(by: { $0.key.description < $1.key.description }) {
            let roots = (members ?? [:]).sorted { $0.key < $1.key }
            let probes = members == nil ? [digest(3001, 0), digest(2001, 30)] : roots.map(\.key)
            questions.append(
                (
                    membersQuestion("later members of \(name)", of: name, probes),
                    members == nil ? [] : [1] + roots.map { $0.value ? 1 : 0 }
                ))
        }
        return questions
    }

    private static func recordQuestion(_ key: [UInt8]) -> Question {
        Question("a later record") { snapshot throws(ServiceError) in
            try snapshot.record(key).map { [1] + $0.value } ?? []
        }
    }

    private static func membersQuestion(
        _ question: String, of name: CollaborationIdentifier, _ probes: [Digest]
    ) -> Question {
        Question(question) { snapshot throws(ServiceError) in
            try snapshot.test(probes, in: name).map { tests in [1] + tests.map { $0 ? 1 : 0 } } ?? []
        }
    }

    private static func digest(_ set: Int, _ number: Int) -> Digest {
        var generator = SeededGenerator(seed: UInt64(set) << 32 | UInt64(number))
        return generator.digest()
    }

    private static func key(_ number: Int) -> [UInt8] { Array("record-\(number % 7)-\(number)".utf8) }

    private static func identifier(_ number: Int) -> MutationIdentifier {
        MutationIdentifier(UInt128(number) << 64 | 7)
    }

    private static func mutations(seed: UInt64) throws -> [Change] {
        var random = SeededGenerator(seed: seed)
        var changes: [Change] = []
        for name in names + largeNames + ["leaving", "parting"] {
            guard let name = CollaborationIdentifier(name) else { continue }
            changes.append(.createCollaboration(name, .challenge))
        }
        for (index, text) in ["leaving", "parting"].enumerated() {
            guard let name = CollaborationIdentifier(text) else { continue }
            changes.append(.addRoots(name, (0..<40).map { digest(2000 + index, $0) }))
        }
        for (index, text) in largeNames.enumerated() {
            guard let name = CollaborationIdentifier(text) else { continue }
            changes.append(.addRoots(name, (0..<600).map { digest(1000 + index, $0) }))
        }
        for step in 0..<500 {
            let index = Int.random(in: names.indices, using: &random)
            guard let name = CollaborationIdentifier(names[index]) else { continue }
            let roots = (0..<Int.random(in: 1...8, using: &random)).map { _ in
                digest(index, Int.random(in: 0..<60, using: &random))
            }
            switch Int.random(in: 0..<4, using: &random) {
            case 0: changes.append(.removeRoots(name, roots))
            case 1, 2: changes.append(.addRoots(name, roots))
            default:
                var edit = Edit(Bool.random(using: &random) ? name : nil)
                if edit.collaboration != nil { edit.addedRoots = roots }
                edit.records = (0..<4).map { _ in
                    let bytes = Int.random(in: 0..<8, using: &random) == 0 ? 3000 : 40
                    let number = Int.random(in: 0..<200, using: &random)
                    return RecordEdit(key(number), value: step % 5 == 0 ? nil : random.bytes(bytes))
                }
                // A key may be written once in an edit.
                var seen: Set<[UInt8]> = []
                edit.records.removeAll { !seen.insert($0.key).inserted }
                changes.append(.edit(edit))
            }
        }
        return changes
    }

    /// The files of the storage, and what is left of its past.
    struct Files {
        let newest: [UInt8]
        let older: [UInt8]
        /// The meta pages of two commits before.
        let earlier: [UInt8]
        let mark: [UInt8]
        let owner: [UInt8]

        init(reading folder: String) throws {
            func bytes(_ name: String) throws -> [UInt8] {
                Array(try Data(contentsOf: URL(fileURLWithPath: "\(folder)/\(name)")))
            }
            (newest, older, earlier) = (try bytes("newest.mdb"), try bytes("older.mdb"), try bytes("earlier"))
            (mark, owner) = (try bytes("newest-commit"), try bytes("owner.lock"))
        }
    }

    static func make(in folder: String, seed: UInt64) throws {
        let directory = folder + "/made"
        let changes = try mutations(seed: seed)
        func data() throws -> [UInt8] { Array(try Data(contentsOf: URL(fileURLWithPath: directory + "/data.mdb"))) }
        func write(_ name: String, _ bytes: some Sequence<UInt8>) throws {
            try Data(bytes).write(to: URL(fileURLWithPath: "\(folder)/\(name)"))
        }
        try apply(changes, 0..<changes.count - 120, in: directory, seed: seed)
        try write("older.mdb", try data())
        try apply(changes, changes.count - 120..<changes.count - 2, in: directory, seed: seed)
        let before = try data()
        try write(
            "earlier", before[0..<DamagedFile.metaBytes] + before[4096..<4096 + DamagedFile.metaBytes])
        try apply(changes, changes.count - 2..<changes.count, in: directory, seed: seed)
        // What follows is reserved, and empty.
        let newest = try data()
        try write("newest.mdb", newest.prefix(DamagedFile(newest, older: [], earlier: []).usedBytes))
        for name in ["newest-commit", "owner.lock"] {
            try FileManager.default.copyItem(atPath: "\(directory)/\(name)", toPath: "\(folder)/\(name)")
        }
        try FileManager.default.removeItem(atPath: directory)
    }

    /// Opens the storage, applies a part of the changes, and closes it.
    private static func apply(
        _ changes: [Change], _ range: Range<Int>, in directory: String, seed: UInt64
    ) throws {
        let sets = try RootSets(configuration(directory, seed: seed))
        for number in range { try sets.apply(Mutation(identifier: identifier(number), changes[number])) }
        sets.close()
    }

    static func questions(seed: UInt64) throws -> [Question] {
        var questions = setQuestions() + recordQuestions()
        let count = try mutations(seed: seed).count
        for start in stride(from: 0, to: count, by: 50) {
            questions.append(
                Question("changes after \(start)", isChangedLater: isLogTrimmed(seed)) {
                    snapshot throws(ServiceError) in
                    let items = try snapshot.changes(after: UInt64(start), limit: 50).items
                    return .made { bytes in for item in items { bytes.add(item) } }
                })
        }
        for number in stride(from: 0, to: count + 20, by: 7) {
            let identifier = identifier(number)
            questions.append(
                // Later changes make the log shorter.
                Question("mutation \(number)", isChangedLater: isLogTrimmed(seed), isOfLog: true) {
                    snapshot throws(ServiceError) in
                    let applied = try snapshot.applied(identifier)
                    return .made { bytes in bytes.add(applied?.sequence ?? .max) }
                })
        }
        questions.append(
            Question("totals", isChangedLater: true, isOfLog: true) { snapshot throws(ServiceError) in
                let statistics = try snapshot.statistics()
                return .made { bytes in
                    bytes.add(statistics.lastSequence)
                    bytes.add(statistics.firstSequence)
                    bytes.add(statistics.collaborations)
                    bytes.add(statistics.roots)
                    bytes.add(statistics.logBytes)
                }
            })
        // The page that later changes make longer.
        let lastPage = count / 50 * 50
        questions.removeAll { $0.name == "changes after \(lastPage)" }
        return questions
    }

    private static func setQuestions() -> [Question] {
        var questions: [Question] = []
        for (index, text) in (names + largeNames + ["absent"]).enumerated() {
            guard let name = CollaborationIdentifier(text) else { continue }
            let isChanged = text == "collaboration-0"
            let set = index < names.count ? index : 1000 + index - names.count
            let probes = (0..<(index < names.count ? 60 : 640)).map { digest(set, $0) }
            questions.append(
                Question("summary of \(text)", isChangedLater: isChanged) { snapshot throws(ServiceError) in
                    let summary = try snapshot.summary(of: name)
                    return .made { bytes in bytes.add(summary) }
                })
            questions.append(membersQuestion("members of \(text)", of: name, probes))
            questions.append(
                Question("roots of \(text)", isChangedLater: isChanged) { snapshot throws(ServiceError) in
                    let roots = try snapshot.roots(of: name, after: nil, limit: 4096)?.items
                    return roots.map { roots in .made { bytes in bytes.add(roots) } } ?? []
                })
        }
        for start in [nil, CollaborationIdentifier("collaboration-7"), CollaborationIdentifier("crowd")] {
            questions.append(
                Question("collaborations", isChangedLater: true) { snapshot throws(ServiceError) in
                    let items = try snapshot.collaborations(after: start, limit: 40).items
                    return .made { bytes in for item in items { bytes.add(item) } }
                })
        }
        return questions
    }

    private static func recordQuestions() -> [Question] {
        var questions: [Question] = []
        for number in 0..<200 {
            questions.append(
                Question("record \(number)") { snapshot throws(ServiceError) in
                    let record = try snapshot.record(key(number))
                    return .made { bytes in bytes.add(record) }
                })
        }
        for part in 0..<7 {
            let prefix = Array("record-\(part)-".utf8)
            let range = RecordRange(prefix, prefix + [0xff])
            for isDescending in [false, true] {
                questions.append(
                    Question("records of part \(part)") { snapshot throws(ServiceError) in
                        let items = try snapshot.records(in: range, limit: 20, isDescending: isDescending).items
                        return .made { bytes in for item in items { bytes.add(item) } }
                    })
            }
            questions.append(
                Question("visit of part \(part)") { snapshot throws(ServiceError) in
                    var bytes: [UInt8] = []
                    try snapshot.visitRecords(in: range) { key, value in
                        bytes.add(Array(key))
                        bytes.add(Array(value))
                        return true
                    }
                    return bytes
                })
        }
        return questions
    }
}
