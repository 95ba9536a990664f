import Core
import Foundation
import TestSupport
import Testing

@testable import RootSets

@Suite("Storages that share a log")
struct SharedLogTests {
    /// A storage that shares a log.
    private final class Member {
        let scratch = ScratchDirectory()
        let log: any SharedLog
        var surroundings: StorageSurroundings
        private(set) var sets: RootSets

        init(
            _ log: MemoryLog, _ surroundings: StorageSurroundings, log lines: Log = .none,
            configure: (inout RootSets.Configuration) -> Void = { _ in }
        ) throws {
            (self.log, self.surroundings) = (log, surroundings)
            configuration = RootSets.Configuration(
                directory: scratch.path + "/data", sizeLimitBytes: 1 << 30, reserveBytes: 1 << 20)
            configure(&configuration)
            sets = try RootSets(configuration, surroundings: surroundings, shared: log, log: lines)
        }

        private var configuration: RootSets.Configuration

        /// Lets go of the storage. The writer's thread may hold it a moment longer.
        func close() throws {
            sets.close()
            sets = try RootSets(RootSets.Configuration(directory: scratch.path + "/none", sizeLimitBytes: 1 << 24))
        }

        func reopen() throws {
            try close()
            var isOpen = false
            for _ in 0..<5000 where !isOpen {
                do throws(ServiceError) {
                    sets = try RootSets(configuration, surroundings: surroundings, shared: log)
                    isOpen = true
                } catch {
                    guard error.code == .storageInUse else { throw error }
                    usleep(1000)
                }
            }
        }

        var contents: SharedContents? {
            (try? sets.read { snapshot throws(ServiceError) in try snapshot.sharedContents() }) ?? nil
        }

        /// Waits until everything in the log is applied.
        func follow(to number: Int) -> Bool {
            (log as? MemoryLog)?.ring()
            return becomesTrue { contents?.place.number == UInt64(number) }
        }
    }

    // MARK: What comes of mutations

    @Test("A mutation is in every storage, its sequence is the same, and a repetition anywhere gets the first receipt")
    func oneOrder() throws {
        let log = MemoryLog()
        let surroundings = log.found()
        let members = try (0..<3).map { _ in try Member(log, surroundings) }
        let decks = try name("decks")
        let create = Mutation(.createCollaboration(decks, .challenge))
        for member in members { #expect(member.follow(to: 1)) }
        #expect(try members[0].sets.apply(create) == MutationReceipt(sequence: 1, changed: 1, isRepeat: false))
        // Elsewhere it is a repetition, also before that storage has followed.
        #expect(try members[1].sets.apply(create) == MutationReceipt(sequence: 1, changed: 1, isRepeat: true))
        let roots = [Digest.zero]
        #expect(try members[2].sets.apply(Mutation(.addRoots(decks, roots))).sequence == 2)
        #expect(
            members[0].sets.refusal(of: .createCollaboration(decks, .deviceNonce(windowSeconds: 9)))
                == .collaborationExists)
        #expect(members[1].sets.refusal(of: .dropCollaboration(try name("others"))) == .unknownCollaboration)
        for member in members {
            #expect(member.follow(to: log.segments.count))
            #expect(try member.sets.test(roots, in: decks) == [true])
            #expect(member.contents == members[0].contents && member.contents != nil)
            #expect(try member.sets.allChanges().map(\.mutation.change) == [create.change, .addRoots(decks, roots)])
            #expect(member.sets.sharingProblem == nil)
        }
    }

    @Test("Whoever relies on what others have changed is told of it before the storage tells that it has the change")
    func order() throws {
        let log = MemoryLog()
        let surroundings = log.found()
        let (one, another) = (try Member(log, surroundings), try Member(log, surroundings))
        for member in [one, another] { #expect(member.follow(to: 1)) }
        let decks = try name("decks")
        // A confirmation that everybody has a change goes by this.
        let told = Shared<[(sequence: UInt64, shown: UInt64)]>([])
        another.sets.onApplied { [weak sets = another.sets] others, _, last in
            guard !others.isEmpty else { return }
            let shown = sets?.sharing?.segment ?? 0
            told.with { $0.append((last, shown)) }
        }
        try one.sets.apply(Mutation(.createCollaboration(decks, .challenge)))
        try one.sets.apply(Mutation(.addRoots(decks, [.zero])))
        #expect(another.follow(to: log.segments.count))
        #expect(becomesTrue { told.value.last?.sequence == 2 })
        for (sequence, shown) in told.value { #expect(shown < sequence + 1, "change \(sequence)") }
        // The first segment is the founding, so each change is in the segment behind its number.
        #expect(log.segments.count == 3)
    }

    @Test("What is told of the log again and again is told with no more of the stack than before")
    func stackOfListeners() throws {
        let log = MemoryLog()
        let member = try Member(log, log.found())
        #expect(member.follow(to: 1))
        // Not the place of a variable: AddressSanitizer has its variables elsewhere.
        let (applied, news) = (Shared<[Int]>([]), Shared<[Int]>([]))
        member.sets.onApplied { _, _, _ in applied.with { $0.append(Thread.callStackReturnAddresses.count) } }
        member.sets.onNews { _ in news.with { $0.append(Thread.callStackReturnAddresses.count) } }
        let decks = try name("decks")
        try member.sets.apply(Mutation(.createCollaboration(decks, .challenge)))
        for _ in 0..<300 {
            try member.sets.apply(Mutation(.addRoots(decks, [.zero])))
            try member.sets.apply(Mutation(.removeRoots(decks, [.zero])))
        }
        for (what, calls) in [("changes", applied.value), ("news", news.value)] {
            #expect(calls.count > 500, "\(what)")
            // Ways to a call differ a little. The longest of some has been each.
            let (first, last) = (calls.prefix(20).max() ?? 0, calls.suffix(20).max() ?? 0)
            #expect(first > 1 && last < first + 20, "\(what): first \(first) functions deep, at last \(last)")
        }
    }

    @Test("A storage that can't follow looks at the log once in a second, however often it hears of something new")
    func pause() throws {
        let log = MemoryLog()
        let surroundings = log.found()
        let one = try Member(log, surroundings)
        #expect(one.follow(to: 1))
        try one.sets.apply(Mutation(.createCollaboration(try name("decks"), .challenge)))
        log.remove(before: 3)
        let another = try Member(log, surroundings)
        #expect(becomesTrue { another.sets.sharingProblem?.contains("begins at 3") == true })
        let before = log.now
        for _ in 0..<300 {
            log.ring()
            usleep(1000)
        }
        // The other one looks at each ring, and besides ten times in a second.
        #expect(log.now - before > 20)
        one.sets.close()
        let (alone, began) = (log.now, MonotonicClock.system.milliseconds)
        for _ in 0..<300 {
            log.ring()
            usleep(1000)
        }
        #expect(log.now - alone <= 2 + (MonotonicClock.system.milliseconds - began) / 1000)
    }

    @Test("What a commit has changed that was made and taken for failed is told, before it is shown to be there")
    func undecided() throws {
        let log = MemoryLog()
        let surroundings = log.found()
        let (one, failure) = (try Member(log, surroundings), Shared<CInt>(0))
        var failing = surroundings
        failing.commitOutcome = { failure.value }
        let another = try Member(log, failing)
        for member in [one, another] { #expect(member.follow(to: 1)) }
        let decks = try name("decks")
        let told = Shared<[(change: Change, shown: UInt64)]>([])
        another.sets.onApplied { [weak sets = another.sets] changes, _, _ in
            let shown = sets?.sharing?.segment ?? 0
            told.with { $0 += changes.map { ($0, shown) } }
        }
        failure.with { $0 = EIO }
        let create = Mutation(.createCollaboration(decks, .challenge))
        try one.sets.apply(create)
        log.ring()
        // It is there, and nobody was told by the commit itself.
        #expect(becomesTrue { another.contents?.place.number == 2 })
        // So are changes of its own, whose senders got an error.
        let add = Mutation(.addRoots(decks, [.zero]))
        #expect(another.sets.outcome(of: add) == .failure(.storageFailed))
        failure.with { $0 = 0 }
        #expect(another.follow(to: log.segments.count))
        #expect(becomesTrue { Set(told.value.map { "\($0.change)" }).count == 2 }, "\(told.value)")
        #expect(told.value.first.map { $0.shown < 2 } == true)
        #expect(try another.sets.test([.zero], in: decks) == [true])
        #expect(another.contents == one.contents || one.follow(to: log.segments.count))
    }

    @Test("Random mutations at three storages over a log that fails end in the same contents, those that the log says")
    func model() throws {
        for round in 0..<UInt64(3) {
            let seed = runSeed &+ round
            let log = MemoryLog(failures: 0.05, seed: seed)
            // Of the change log, each storage keeps the same part.
            let surroundings = log.found(logRetentionBytes: round == 0 ? 32 << 20 : 200_000)
            let members = try (0..<3).map { _ in try Member(log, surroundings) }
            // Before that, a member refuses every mutation with busy.
            for member in members { #expect(member.follow(to: 1)) }
            let receipts = Shared<[(Mutation, MutationReceipt)]>([])
            let unknown = Shared(0)
            let sets = members.map(\.sets)
            onThreads(3) { number in
                guard var steps = try? Steps(seed: seed &* 31 &+ UInt64(number)) else { return }
                for _ in 0..<150 {
                    let mutation = steps.next(growth: 0.7)
                    do throws(ServiceError) {
                        let receipt = try sets[number].apply(mutation)
                        receipts.with { $0.append((mutation, receipt)) }
                    } catch {
                        if error.code == .storageFailed { unknown.increment() }
                    }
                }
            }
            log.failures = 0
            for member in members { #expect(member.follow(to: log.segments.count)) }
            // A late one applies all of it in few commits.
            let late = try Member(log, surroundings)
            #expect(late.follow(to: log.segments.count))
            let contents = try #require(members[0].contents)
            for member in members + [late] { #expect(member.contents == contents, "ROOTGATE_TEST_SEED=\(seed)") }
            var model = RootModel()
            for segment in log.segments.dropFirst() {
                guard case .mutations(let mutations) = try #require(Segment(segment)).contents else { continue }
                for mutation in mutations { _ = model.apply(mutation) }
            }
            #expect(contents.place.number == UInt64(log.segments.count))
            // The model forgets no change, and so recognizes every repetition.
            if round == 0 {
                try expectSame(late.sets, model, probes: [.zero], "ROOTGATE_TEST_SEED=\(seed)")
                for (mutation, receipt) in receipts.value {
                    let logged = model.log[Int(receipt.sequence) - 1]
                    #expect(logged.mutation.identifier == mutation.identifier && logged.changed == receipt.changed)
                }
            } else {
                #expect(try late.sets.statistics().firstSequence > 1)
            }
            #expect(receipts.value.count > 150 && unknown.value > 0)
        }
    }

    @Test("A mutation whose fate was unknown is made once, and its repetition gets its receipt")
    func unknownOutcome() throws {
        let log = MemoryLog()
        let member = try Member(log, log.found())
        #expect(member.follow(to: 1))
        log.failures = 1
        var unknown: [Mutation] = []
        for number in 0..<20 {
            let mutation = Mutation(.createCollaboration(try name("c\(number)"), .challenge))
            #expect(member.sets.outcome(of: mutation) == .failure(.storageFailed))
            unknown.append(mutation)
        }
        log.failures = 0
        let made = log.segments.count - 1
        #expect(made > 0 && made < 20)
        for mutation in unknown { _ = try member.sets.apply(mutation) }
        #expect(try member.sets.statistics().collaborations == 20)
        #expect(try member.sets.allChanges().count == 20)
    }

    @Test("A commit that fails behind the appending is made good from the log, once")
    func failedCommit() throws {
        let log = MemoryLog()
        var surroundings = log.found()
        let failure = Shared<CInt>(0)
        surroundings.willCommit = { failure.value }
        let member = try Member(log, surroundings)
        #expect(member.follow(to: 1))
        failure.with { $0 = EIO }
        let create = Mutation(.createCollaboration(try name("decks"), .challenge))
        #expect(member.sets.outcome(of: create) == .failure(.storageFailed))
        #expect(log.segments.count == 2 && member.contents?.place.number == 1)
        failure.with { $0 = 0 }
        #expect(try member.sets.apply(create) == MutationReceipt(sequence: 1, changed: 1, isRepeat: true))
        try member.reopen()
        #expect(member.follow(to: log.segments.count))
        #expect(try member.sets.allChanges().count == 1)
    }

    @Test("Many small mutations share segments, and a large one has its own")
    func segmentSizes() throws {
        let log = MemoryLog()
        let member = try Member(log, log.found())
        #expect(member.follow(to: 1))
        let decks = try name("decks")
        _ = try member.sets.apply(Mutation(.createCollaboration(decks, .challenge)))
        let done = Shared(0)
        let count = 3000
        var random = SeededGenerator(seed: runSeed)
        for _ in 0..<count {
            member.sets.submit(Mutation(.addRoots(decks, [random.digest()]))) { _ in done.increment() }
        }
        #expect(becomesTrue { done.value == count })
        #expect(log.segments.count < count / 2)
        let roots = (0..<Limits.rootsPerRequestMax).map { _ in random.digest() }
        #expect(try member.sets.apply(Mutation(.addRoots(decks, roots))).changed == UInt64(roots.count))
        let longest = try #require(log.segments.map(\.count).max())
        #expect(longest > 1 << 20 && longest <= Limits.segmentBytesMax)
        let others = log.segments.map(\.count).filter { $0 < longest }
        #expect(others.allSatisfy { $0 <= Limits.mutationBytesPerSegmentMax })
    }

    @Test("What has no room here is refused and not appended, and what others had room for is applied")
    func lackOfRoom() throws {
        let log = MemoryLog()
        let surroundings = log.found(logRetentionBytes: 512 << 10)
        let small = try Member(log, surroundings) { $0.sizeLimitBytes = 2 << 20 }
        let large = try Member(log, surroundings)
        for member in [small, large] { #expect(member.follow(to: 1)) }
        let decks = try name("decks")
        _ = try large.sets.apply(Mutation(.createCollaboration(decks, .challenge)))
        var random = SeededGenerator(seed: runSeed)
        var roots: [Digest] = []
        var refusal: ServiceError.Code?
        var last: Mutation?
        while refusal == nil, roots.count < 200_000 {
            let more = Mutation(.addRoots(decks, (0..<500).map { _ in random.digest() }))
            refusal = ServiceError.code { () throws(ServiceError) in try small.sets.apply(more) }
            guard refusal == nil, case .addRoots(_, let added) = more.change else { continue }
            roots += added
            last = more
        }
        #expect(refusal == .storageFull)
        // A repetition is answered as the first time, although its change would find no room now.
        #expect(try small.sets.apply(try #require(last)).isRepeat)
        let count = log.segments.count
        let others = (0..<500).map { _ in random.digest() }
        #expect(small.sets.refusal(of: .addRoots(decks, others)) == .storageFull && log.segments.count == count)
        #expect(try large.sets.apply(Mutation(.addRoots(decks, others))).changed == 500)
        #expect(try small.sets.apply(Mutation(.removeRoots(decks, Array(roots.prefix(100))))).changed == 100)
        for member in [small, large] { #expect(member.follow(to: log.segments.count)) }
        #expect(small.contents == large.contents)
    }

    @Test("A full storage has room for the removals that fill the change log of its cluster, however long that is")
    func roomForChangeLog() throws {
        let log = MemoryLog()
        let surroundings = log.found(logRetentionBytes: 3 << 20)
        let lines = Shared<[String]>([])
        let member = try Member(log, surroundings, log: Log { line in lines.with { $0.append(line.text) } }) {
            ($0.sizeLimitBytes, $0.logRetentionBytes) = (8 << 20, 1 << 20)
        }
        #expect(member.follow(to: 1))
        #expect(becomesTrue { lines.value.contains { $0.contains("raise --storage-max to 16 MiB") } }, "\(lines.value)")
        let decks = try name("decks")
        _ = try member.sets.apply(Mutation(.createCollaboration(decks, .challenge)))
        var random = SeededGenerator(seed: runSeed)
        func roots(_ count: Int) -> [Digest] { (0..<count).map { _ in random.digest() } }
        var count = 0
        while member.sets.refusal(of: .addRoots(decks, roots(50))) == nil, count < 4000 { count += 1 }
        #expect(count > 0 && count < 4000)
        // Removals of what is not there make no room, and each has its record.
        for _ in 0..<240 { _ = try member.sets.apply(Mutation(.removeRoots(decks, roots(1000)))) }
        let records = try member.sets.read { snapshot throws(ServiceError) in try snapshot.statistics().logBytes }
        #expect(records > 5 << 19 && member.sets.sharingProblem == nil)
    }

    // MARK: Freshness

    @Test("A storage is fresh as of the question that found nothing newer, and no later while the log is silent")
    func freshness() throws {
        let log = MemoryLog()
        let member = try Member(log, log.found())
        #expect(becomesTrue { member.sets.freshAsOf != nil })
        let first = try #require(member.sets.freshAsOf)
        #expect(becomesTrue { member.sets.freshAsOf ?? 0 > first && member.sets.freshAsOf ?? .max <= log.now })
        log.isSilent = true
        #expect(becomesTrue { member.sets.sharingProblem == "the shared log does not answer: silent" })
        let last = member.sets.freshAsOf
        usleep(300_000)
        #expect(member.sets.freshAsOf == last)
        #expect(member.sets.refusal(of: .dropCollaboration(try name("decks"))) == .busy)
        log.isSilent = false
        #expect(becomesTrue { member.sets.freshAsOf ?? 0 > last ?? 0 && member.sets.sharingProblem == nil })
    }

    @Test(
        "A log that is another, has a hole or something else in it is not followed, and says why",
        arguments: [
            "the shared log has an entry that is none", "is founded twice", "does not follow the one that was applied",
            "has lost segment 2", "has lost segment 2, which was", "begins at 4, and this storage needs 3",
        ])
    func otherLogs(_ problem: String) throws {
        let log = MemoryLog()
        let surroundings = log.found()
        let member = try Member(log, surroundings)
        #expect(member.follow(to: 1))
        let decks = try name("decks")
        _ = try member.sets.apply(Mutation(.createCollaboration(decks, .challenge)))
        let contents = try #require(member.contents)
        let second = Segment.hash(log.segments[1])
        func next(after hash: Digest) -> [UInt8] {
            Segment(identifier: 7, after: hash, .mutations([Mutation(.dropCollaboration(decks))])).bytes
        }
        switch problem {
        case "the shared log has an entry that is none": log.segments.append([1, 2, 3])
        case "is founded twice": log.segments.append(log.segments[0])
        case "does not follow the one that was applied": log.segments.append(next(after: .zero))
        case "has lost segment 2": log.segments.removeLast()
        // A log that was restored, and has got another segment in its place.
        case "has lost segment 2, which was": log.segments[1] = next(after: Segment.hash(log.segments[0]))
        default:
            log.segments.append(next(after: second))
            log.segments.append(next(after: Segment.hash(next(after: second))))
            log.remove(before: 4)
        }
        #expect(
            becomesTrue { member.sets.sharingProblem?.contains(problem) == true }, "\(member.sets.sharingProblem ?? "")"
        )
        // A look that was under way may have ended with the log as it was.
        let fresh = member.sets.freshAsOf
        usleep(250_000)
        #expect(member.sets.freshAsOf == fresh)
        #expect(member.contents == contents)
        #expect(try member.sets.summary(of: decks) != nil)
    }

    // MARK: Whose storage

    /// The error of using a member's storage without its log, once the member has let go of it.
    private func failureAlone(_ member: Member) throws -> ServiceError? {
        let directory = member.scratch.path + "/data"
        try member.close()
        let alone = Shared<ServiceError?>(nil)
        #expect(
            becomesTrue {
                let failure = thrown(ServiceError.self) { _ = try RootSets(.init(directory: directory)) }
                alone.with { $0 = failure }
                return failure?.code != .storageInUse
            })
        return alone.value
    }

    @Test("A damaged storage that shares a log is not repaired, because it would come to differ from the others")
    func repair() throws {
        let log = MemoryLog()
        let member = try Member(log, log.found())
        #expect(member.follow(to: 1))
        var random = SeededGenerator(seed: runSeed)
        let (decks, root) = (try name("decks"), random.digest())
        try member.sets.apply(Mutation(.createCollaboration(decks, .challenge)))
        try member.sets.apply(Mutation(.addRoots(decks, [root])))
        #expect(try failureAlone(member) != nil)
        let directory = member.scratch.path + "/data"
        let file = URL(fileURLWithPath: directory + "/data.mdb")
        #expect(try StorageRepair.repair(directory) == ["nothing is damaged"])
        // The change log has the root hash as it is.
        var bytes = try Data(contentsOf: file)
        var found = 0
        while let range = bytes.range(of: Data(root.bytes)) {
            bytes[range.lowerBound] ^= 1
            found += 1
        }
        #expect(found > 0)
        try bytes.write(to: file)
        let failure = thrown(ServiceError.self) { _ = try StorageRepair.repair(directory) }
        #expect(failure?.code == .storageDamaged)
        #expect(failure?.reason.contains("it shares a log with others") == true, "\(failure?.reason ?? "")")
        #expect(try Data(contentsOf: file) == bytes)
    }

    @Test("A storage that shares a log can't be used alone, and one with changes of its own can't share one")
    func whose() throws {
        let log = MemoryLog()
        let member = try Member(log, log.found())
        #expect(member.follow(to: 1))
        let alone = try failureAlone(member)
        #expect(alone?.reason.contains("so it can't be used alone") == true, "\(alone?.reason ?? "")")
        let own = try Storage()
        _ = try own.create("decks")
        own.close()
        let shared = Shared<ServiceError?>(nil)
        #expect(
            becomesTrue {
                let failure = thrown(ServiceError.self) {
                    _ = try RootSets(.init(directory: own.directory), shared: MemoryLog())
                }
                shared.with { $0 = failure }
                return failure?.code != .storageInUse
            })
        #expect(shared.value?.reason.contains("has changes of its own") == true, "\(shared.value?.reason ?? "")")
    }

    @Test("While the log is silent, what waits is refused at once, and closing waits for no more of it")
    func closing() throws {
        let log = MemoryLog()
        let member = try Member(log, log.found())
        #expect(member.follow(to: 1))
        log.isSilent = true
        log.delay = 0.2
        let answered = Shared(0)
        let decks = try name("decks")
        // As groups of their own, they would wait for over a minute.
        let roots = (0..<3000).map { _ in Digest.zero }
        for _ in 0..<400 {
            member.sets.submit(Mutation(.addRoots(decks, roots))) { result in
                if case .failure(let error) = result, error.code == .busy || error.code == .shuttingDown {
                    answered.increment()
                }
            }
        }
        let began = MonotonicClock.nanoseconds
        try member.close()
        #expect(answered.value == 400)
        #expect(MonotonicClock.nanoseconds - began < 20_000_000_000)
    }

    @Test("A backup of a storage that shares a log is restored with its place, and goes on from there")
    func backup() throws {
        let log = MemoryLog()
        let surroundings = log.found()
        let members = try (0..<2).map { _ in try Member(log, surroundings) }
        for member in members { #expect(member.follow(to: 1)) }
        let decks = try name("decks")
        _ = try members[0].sets.apply(Mutation(.createCollaboration(decks, .challenge)))
        #expect(members[1].follow(to: 2))
        try members[1].close()
        let folder = members[1].scratch.path
        let environment = Shared<StorageEnvironment?>(nil)
        #expect(
            becomesTrue {
                let opened = try? StorageEnvironment(
                    directory: folder + "/data", bytesMax: 1 << 30, reserveBytes: 1 << 20)
                environment.with { $0 = opened }
                return opened != nil
            })
        try BackupScene.backUp(try #require(environment.value), to: folder + "/backup")
        environment.with { $0 = nil }
        let restored = folder + "/restored"
        // Changes of another log would be made beside those of the shared one.
        let refusal = thrown(ServiceError.self) {
            try BackupScene.restore(folder + "/backup", toDirectory: restored, logs: [folder + "/data"])
        }
        #expect(refusal?.reason.contains("shares a log with others") == true, "\(refusal?.reason ?? "")")
        try BackupScene.restore(folder + "/backup", toDirectory: restored)
        _ = try members[0].sets.apply(Mutation(.addRoots(decks, [.zero])))
        let late = try Member(log, surroundings) { $0.directory = restored }
        #expect(late.follow(to: 3) && late.contents == members[0].contents)
    }

    @Test("A storage whose names have other places does not begin with a log")
    func otherHashKey() throws {
        let log = MemoryLog()
        _ = log.found()
        let member = try Member(log, StorageSurroundings())
        #expect(becomesTrue { member.sets.sharingProblem?.contains("was not made for the shared log") == true })
        #expect(member.contents == nil && member.sets.freshAsOf == nil)
        #expect(member.sets.refusal(of: .createCollaboration(try name("decks"), .challenge)) == .busy)
    }

    // MARK: Bytes

    @Test(
        "A segment reads back as it was written, and its bytes cut, lengthened or changed are another segment or none")
    func bytes() throws {
        var steps = try Steps(seed: runSeed)
        var random = SeededGenerator(seed: runSeed)
        for _ in 0..<200 {
            let mutations = (0..<Int.random(in: 1...5, using: &random)).map { _ in steps.next(growth: 0.5) }
            let segment = Segment(identifier: UInt128(random.next()), after: random.digest(), .mutations(mutations))
            let bytes = segment.bytes
            #expect(Segment(bytes) == segment)
            #expect(Segment(Array(bytes.dropLast())) == nil && Segment(bytes + [0]) == nil)
            var changed = bytes
            changed[Int.random(in: changed.indices, using: &random)] ^= 1 << UInt8.random(in: 0..<8, using: &random)
            if let read = Segment(changed) {
                #expect(read != segment && read.bytes == changed, "ROOTGATE_TEST_SEED=\(runSeed)")
            }
        }
        let many = (0...Limits.mutationsPerCommitMax).map { _ in steps.next(growth: 0) }
        let most = Segment(identifier: 4, after: .zero, .mutations(Array(many.dropLast())))
        #expect(Segment(most.bytes) == most)
        #expect(Segment(Segment(identifier: 4, after: .zero, .mutations(many)).bytes) == nil)
        let founding = Segment(
            identifier: 3, after: .zero, .founding(.init(hashKey: random.bytes(16), logRetentionBytes: 77)))
        #expect(Segment(founding.bytes) == founding && Segment(founding.bytes + [0]) == nil && Segment([]) == nil)
    }
}
