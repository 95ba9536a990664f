import Core
import Foundation
import RootSets
import TestSupport
import Testing

@Suite("Mutations")
struct MutationTests {
    @Test("A mutation sent again changes nothing and gets the first receipt")
    func retry() throws {
        let storage = try Storage()
        let decks = try storage.create("decks")
        var random = SeededGenerator(seed: runSeed)
        let add = Mutation(.addRoots(decks, [random.digest(), random.digest()]))
        let first = try storage.sets.apply(add)
        #expect(first == MutationReceipt(sequence: 2, changed: 2, isRepeat: false))
        _ = try storage.sets.apply(Mutation(.addRoots(decks, [random.digest()])))
        #expect(try storage.sets.apply(add) == MutationReceipt(sequence: 2, changed: 2, isRepeat: true))
        try storage.reopen()
        #expect(try storage.sets.apply(add) == MutationReceipt(sequence: 2, changed: 2, isRepeat: true))
        #expect(try storage.sets.statistics().lastSequence == 3)
        #expect(try storage.sets.statistics().roots == 3)
    }

    @Test("A repeat is recognized even when the collaboration was dropped since")
    func retryAfterDrop() throws {
        let storage = try Storage()
        let decks = try name("decks")
        let create = Mutation(.createCollaboration(decks, .challenge))
        _ = try storage.sets.apply(create)
        _ = try storage.sets.apply(Mutation(.dropCollaboration(decks)))
        #expect(try storage.sets.apply(create) == MutationReceipt(sequence: 1, changed: 1, isRepeat: true))
        #expect(try storage.sets.summary(of: decks) == nil)
    }

    @Test("A repeat in the same commit gets the first receipt")
    func retryInOneCommit() throws {
        let storage = try Storage()
        let create = Mutation(.createCollaboration(try name("decks"), .challenge))
        let sets = try storage.sets
        let receipts = Shared<[MutationReceipt]>([])
        for _ in 0..<50 {
            sets.submit(create) { result in
                if case .success(let receipt) = result { receipts.with { $0.append(receipt) } }
            }
        }
        sets.close()
        #expect(receipts.value.count == 50)
        #expect(receipts.value.count { !$0.isRepeat } == 1)
        #expect(receipts.value.allSatisfy { $0.sequence == 1 && $0.changed == 1 })
    }

    @Test("Root hashes with the same first eight bytes have a limit, and whoever removes some can add others")
    func crowdedPrefixes() throws {
        let storage = try Storage()
        var random = SeededGenerator(seed: runSeed)
        let prefix = random.bytes(8)
        let crowd = (0...Limits.rootsPerPrefixMax).map { _ in Digest(prefix + random.bytes(24)) ?? .zero }
        let most = Array(crowd.dropLast())
        let last = try #require(crowd.last)
        for (text, others) in [("few", 3), ("many", 500)] {
            let decks = try storage.create(text)
            let more = (0..<others).map { _ in random.digest() }
            func code(_ roots: [Digest]) throws -> ServiceError.Code? {
                do {
                    _ = try storage.sets.apply(Mutation(.addRoots(decks, roots)))
                    return nil
                } catch let error as ServiceError {
                    #expect(error.detail == UInt32(Limits.rootsPerPrefixMax))
                    return error.code
                }
            }
            #expect(try code(more + crowd) == .limitExceeded)
            #expect(try storage.sets.summary(of: decks)?.rootCount == 0, "a refusal has written something")
            #expect(try code(more + most) == nil)
            #expect(try code([last]) == .limitExceeded)
            #expect(try code(more + [last]) == .limitExceeded)
            var edit = Edit(decks)
            (edit.addedRoots, edit.records) = ([last], [RecordEdit([1], value: [])])
            #expect(try storage.sets.outcome(of: Mutation(.edit(edit))) == .failure(.limitExceeded))
            #expect(try storage.sets.read { snapshot throws(ServiceError) in try snapshot.record([1]) } == nil)
            // What is there already is no addition, and another prefix is not touched.
            #expect(try code(Array(most.prefix(5)) + [random.digest()]) == nil)
            #expect(try storage.sets.apply(Mutation(.removeRoots(decks, [most[7]]))).changed == 1)
            #expect(try code([last]) == nil)
            #expect(try storage.sets.summary(of: decks)?.rootCount == UInt64(others + most.count + 1))
            #expect(try storage.sets.apply(Mutation(.dropCollaboration(decks))).changed == 1)
        }
    }

    @Test("A mutation identifier used again with other content is refused")
    func conflict() throws {
        let storage = try Storage()
        let decks = try name("decks")
        let create = Mutation(.createCollaboration(decks, .challenge))
        _ = try storage.sets.apply(create)
        for change in [
            Change.createCollaboration(decks, .deviceNonce(windowSeconds: 5)), .dropCollaboration(decks),
            .addRoots(decks, []), .removeRoots(decks, [.zero]), .createCollaboration(try name("deck"), .challenge),
        ] {
            let mutation = Mutation(identifier: create.identifier, change)
            #expect(try storage.sets.outcome(of: mutation) == .failure(.mutationConflict))
        }
        #expect(try storage.sets.statistics().lastSequence == 1)
    }

    @Test("Changing a collaboration that is not there is refused and not logged")
    func unknownCollaboration() throws {
        let storage = try Storage()
        let decks = try name("decks")
        for change in [Change.addRoots(decks, [.zero]), .removeRoots(decks, [.zero]), .dropCollaboration(decks)] {
            #expect(try storage.sets.refusal(of: change) == .unknownCollaboration)
        }
        #expect(try storage.sets.statistics().lastSequence == 0)
        #expect(try storage.sets.allRoots(of: decks) == nil)
        #expect(try storage.sets.test([.zero], in: decks) == nil)
        #expect(try storage.sets.summary(of: decks) == nil)
    }

    @Test("A refused mutation's identifier may be used for another")
    func refusedIdentifier() throws {
        let storage = try Storage()
        let decks = try name("decks")
        let refused = Mutation(.dropCollaboration(decks))
        #expect(try storage.sets.outcome(of: refused) == .failure(.unknownCollaboration))
        let create = Mutation(identifier: refused.identifier, .createCollaboration(decks, .challenge))
        #expect(try storage.sets.apply(create).isRepeat == false)
    }

    @Test("Creating again is harmless with the same policy and refused with another")
    func createAgain() throws {
        let storage = try Storage()
        let decks = try name("decks")
        let policy = ProofPolicy.deviceNonce(windowSeconds: 60)
        #expect(try storage.sets.apply(Mutation(.createCollaboration(decks, policy))).changed == 1)
        #expect(
            try storage.sets.apply(Mutation(.createCollaboration(decks, policy)))
                == MutationReceipt(sequence: 2, changed: 0, isRepeat: false))
        #expect(try storage.sets.refusal(of: .createCollaboration(decks, .challenge)) == .collaborationExists)
        let otherWindow = ProofPolicy.deviceNonce(windowSeconds: 61)
        #expect(try storage.sets.refusal(of: .createCollaboration(decks, otherWindow)) == .collaborationExists)
        #expect(try storage.sets.summary(of: decks)?.policy == policy)
    }

    @Test("A dropped collaboration comes back empty")
    func dropAndCreate() throws {
        let storage = try Storage()
        let decks = try name("decks")
        var random = SeededGenerator(seed: runSeed)
        let roots = (0..<500).map { _ in random.digest() }
        _ = try storage.sets.apply(Mutation(.createCollaboration(decks, .challenge)))
        _ = try storage.sets.apply(Mutation(.addRoots(decks, roots)))
        _ = try storage.sets.apply(Mutation(.dropCollaboration(decks)))
        _ = try storage.sets.apply(Mutation(.createCollaboration(decks, .deviceNonce(windowSeconds: 1))))
        #expect(try storage.sets.allRoots(of: decks) == [])
        #expect(try storage.sets.test(roots, in: decks)?.contains(true) == false)
        #expect(try storage.sets.statistics().roots == 0)
    }

    @Test("A root hash that is named twice in one add counts once")
    func repeatsInOneAdd() throws {
        let storage = try Storage()
        let decks = try storage.create("decks")
        var random = SeededGenerator(seed: runSeed)
        let root = random.digest()
        #expect(try storage.sets.apply(Mutation(.addRoots(decks, [root, root, root]))).changed == 1)
        #expect(try storage.sets.apply(Mutation(.removeRoots(decks, [root, root]))).changed == 1)
        #expect(try storage.sets.apply(Mutation(.removeRoots(decks, [root]))).changed == 0)
    }

    @Test("Mutations of 64 threads get gapless sequences in fewer commits")
    func groupCommit() throws {
        let storage = try Storage()
        let decks = try storage.create("decks")
        let sets = try storage.sets
        let sequences = Shared<[UInt64]>([])
        let seed = runSeed
        onThreads(64) { thread in
            var random = SeededGenerator(seed: seed &+ UInt64(thread))
            for _ in 0..<50 {
                if let receipt = try? sets.apply(Mutation(.addRoots(decks, [random.digest()]))) {
                    sequences.with { $0.append(receipt.sequence) }
                }
            }
        }
        #expect(sequences.value.sorted() == Array(2...3201))
        #expect(sets.commitCounts.mutations == 3201)
        #expect(sets.commitCounts.commits < 3201)
        #expect(try sets.summary(of: decks)?.rootCount == 3200)
        #expect(try sets.allChanges().map(\.sequence) == Array(1...3201))
        #expect(sets.queueDepth == 0)
    }

    @Test("A reader sees an add of 500 whole or not at all")
    func wholeMutations() throws {
        let storage = try Storage()
        let decks = try storage.create("decks")
        let sets = try storage.sets
        var random = SeededGenerator(seed: runSeed)
        let blocks = (0..<4).map { _ in (0..<500).map { _ in random.digest() } }
        let isOver = Shared(false)
        let torn = Shared<[String]>([])
        let seenCounts = Shared<Set<UInt64>>([])
        onThreads(4) { thread in
            if thread == 0 {
                for round in 0..<20 {
                    for block in blocks {
                        let change: Change = round % 2 == 0 ? .addRoots(decks, block) : .removeRoots(decks, block)
                        if (try? sets.apply(Mutation(change))) == nil { torn.with { $0.append("a write failed") } }
                    }
                }
                isOver.with { $0 = true }
                return
            }
            while !isOver.value {
                do {
                    try sets.read { snapshot throws(ServiceError) in
                        let count = try snapshot.summary(of: decks)?.rootCount ?? 1
                        let block = blocks[Int(count) / 500 % 4]
                        let answers = Set(try snapshot.test(block, in: decks) ?? [])
                        if count % 500 != 0 { torn.with { $0.append("\(count) roots") } }
                        if answers.count != 1 { torn.with { $0.append("half a block at \(count) roots") } }
                        let total = try snapshot.statistics().roots
                        if total != count { torn.with { $0.append("\(total) roots in all, \(count) in the set") } }
                        let listed = try snapshot.roots(of: decks, after: nil, limit: 4096)?.items.count ?? -1
                        if listed != Int(count) { torn.with { $0.append("\(listed) listed of \(count)") } }
                        seenCounts.with { _ = $0.insert(count) }
                    }
                } catch {
                    torn.with { $0.append("\(error)") }
                }
            }
        }
        #expect(torn.value == [], "seed \(runSeed)")
        #expect(seenCounts.value.count > 1)
    }

    @Test("Closing commits the queued mutations and refuses later ones")
    func closing() throws {
        let storage = try Storage()
        let decks = try storage.create("decks")
        let sets = try storage.sets
        var random = SeededGenerator(seed: runSeed)
        let answers = Shared<[MutationReceipt?]>([])
        for _ in 0..<300 {
            sets.submit(Mutation(.addRoots(decks, [random.digest()]))) { result in
                answers.with { $0.append(try? result.get()) }
            }
        }
        sets.close()
        #expect(answers.value.count == 300)
        #expect(answers.value.compactMap { $0?.sequence } == Array(2...301))
        let late = Mutation(.addRoots(decks, [random.digest()]))
        #expect(sets.outcome(of: late) == .failure(.shuttingDown))
        sets.close()
        #expect(try sets.summary(of: decks)?.rootCount == 300)
    }

    @Test("Too many bytes of mutations at once are answered busy, and none is lost")
    func busy() throws {
        let storage = try Storage()
        let sets = try storage.sets
        let roots = [Digest](repeating: .zero, count: 32_768)
        let nowhere = try name("nowhere")
        let codes = Shared<[ServiceError.Code: Int]>([:])
        for _ in 0..<2000 {
            sets.submit(Mutation(.addRoots(nowhere, roots))) { result in
                if case .failure(let error) = result { codes.with { $0[error.code, default: 0] += 1 } }
            }
        }
        sets.close()
        #expect(codes.value.values.reduce(0, +) == 2000)
        #expect(Set(codes.value.keys).isSubset(of: [.unknownCollaboration, .busy]))
        #expect(codes.value[.unknownCollaboration, default: 0] > 0)
    }
}

@Suite("The change log")
struct ChangeLogTests {
    @Test("The log is trimmed to its size, and reading a trimmed part is an error that says so")
    func retention() throws {
        let storage = try Storage { $0.logRetentionBytes = 4000 }
        let decks = try name("decks")
        var random = SeededGenerator(seed: runSeed)
        var mutations = [Mutation(.createCollaboration(decks, .challenge))]
        for _ in 0..<60 { mutations.append(Mutation(.addRoots(decks, (0..<10).map { _ in random.digest() }))) }
        for mutation in mutations { _ = try storage.sets.apply(mutation) }
        let statistics = try storage.sets.statistics()
        #expect(statistics.lastSequence == 61)
        #expect(statistics.logBytes <= 4000)
        #expect(statistics.logBytes > 3000)
        #expect(statistics.firstSequence > 40)
        let first = statistics.firstSequence
        let sets = try storage.sets
        let kept = try sets.allChanges(after: first - 1)
        #expect(kept.map(\.sequence) == Array(first...61))
        #expect(kept.map(\.mutation) == Array(mutations[Int(first - 1)...]))
        for sequence in [0, 1, first - 2] {
            #expect(
                ServiceError.code { () throws(ServiceError) in
                    try sets.read { snapshot throws(ServiceError) in
                        _ = try snapshot.changes(after: sequence, limit: 10)
                    }
                } == .changesTrimmed)
        }
        // The sets themselves lose nothing.
        #expect(try sets.summary(of: decks)?.rootCount == 600)
        // A kept identifier is a repeat, a trimmed one is new.
        #expect(try sets.apply(mutations[60]).isRepeat)
        #expect(try sets.apply(mutations[1]) == MutationReceipt(sequence: 62, changed: 0, isRepeat: false))
    }

    @Test("Whoever makes a few changes in another's storage trims nothing of its log, and reserves no room for it")
    func wholeLog() throws {
        let storage = try Storage {
            ($0.logRetentionBytes, $0.keepsWholeLog) = (4000, true)
        }
        let decks = try storage.create("decks")
        var random = SeededGenerator(seed: runSeed)
        for _ in 0..<60 {
            _ = try storage.sets.apply(Mutation(.addRoots(decks, (0..<10).map { _ in random.digest() })))
        }
        let statistics = try storage.sets.statistics()
        #expect(statistics.firstSequence == 1 && statistics.logBytes > 20_000)
        #expect(statistics.fileBytes < 64 << 20, "\(statistics.fileBytes)")
    }

    @Test("The last record stays, however small the log may be")
    func lastRecord() throws {
        let storage = try Storage { $0.logRetentionBytes = 0 }
        let decks = try storage.create("decks")
        var random = SeededGenerator(seed: runSeed)
        let add = Mutation(.addRoots(decks, (0..<2000).map { _ in random.digest() }))
        _ = try storage.sets.apply(add)
        let statistics = try storage.sets.statistics()
        #expect(statistics.firstSequence == 2)
        #expect(statistics.lastSequence == 2)
        #expect(try storage.sets.allChanges(after: 1).map(\.mutation) == [add])
        #expect(try storage.sets.apply(add).isRepeat)
    }

    @Test("Behind the last record there is nothing, and that is no error", arguments: [0, 1, 5, UInt64.max])
    func behindTheEnd(distance: UInt64) throws {
        let storage = try Storage()
        _ = try storage.create("decks")
        let sets = try storage.sets
        let start = distance == .max ? .max : 1 + distance
        let page = try sets.read { snapshot throws(ServiceError) in try snapshot.changes(after: start, limit: 10) }
        #expect(page.items.isEmpty)
        #expect(!page.hasMore)
    }

    @Test("A page of large records ends early and says that there is more")
    func pageBytes() throws {
        let storage = try Storage()
        let decks = try storage.create("decks")
        let sets = try storage.sets
        let roots = [Digest](repeating: .zero, count: 8192)
        for _ in 0..<6 { try sets.apply(Mutation(.addRoots(decks, roots))) }
        let page = try sets.read { snapshot throws(ServiceError) in try snapshot.changes(after: 0, limit: 1000) }
        #expect(page.hasMore)
        #expect((2..<7).contains(page.items.count))
        #expect(try sets.allChanges(pages: 1000).map(\.sequence) == Array(1...7))
    }
}
