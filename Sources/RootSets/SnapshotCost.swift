import Core

/// What a snapshot costs the service while it is read: pages that commits free meanwhile can't be used again. It is
/// judged again and again, so that a long reading is given up before removals lack room.
final class SnapshotCost: Sendable {
    enum Level {
        case little
        /// The reading should end soon.
        case much
        /// The reading is to be given up.
        case tooMuch
    }

    /// What is read, and what to do when it was given up.
    struct Reading {
        let name: String
        let remedy: String

        static let backup = Reading(
            name: "the backup", remedy: "write to a file on a local disk, without --rate, while fewer changes are made")
        static let check = Reading(
            name: "the check", remedy: "check what a backup restores, or try it again while fewer changes are made")
        static let log = Reading(name: "reading the log", remedy: "take the log of a backup")
    }

    private struct State {
        var level = Level.little
        var isAwaited = false
        var due = ContinuousClock.now
        /// When it is looked again whether the writer waits.
        var awaitedDue = ContinuousClock.now
    }

    private static let pause = Duration.milliseconds(Limits.snapshotCostMilliseconds)

    private let reading: Reading
    private let isHeld: @Sendable () -> Bool
    private let isAwaited: @Sendable () -> Bool
    private let judge: @Sendable () throws(StorageFailure) -> Level
    private let state = Lock(State())

    /// The cost of the snapshot that `transaction` reads. It may be a quarter of the pages that the snapshot leaves
    /// free. It is too much as soon as a writer waits for the reading's end.
    convenience init(of reading: Reading, _ environment: StorageEnvironment, _ transaction: ReadTransaction) {
        let number = transaction.number
        self.init(
            of: reading, isHeld: { environment.holds(snapshot: number) },
            isAwaited: { (try? environment.isAwaited(number)) ?? false }
        ) { () throws(StorageFailure) in
            let keptMax = try environment.freePages(transaction.handle) / Limits.snapshotRoomPart
            let kept = try environment.pagesKept(for: number)
            return kept > keptMax ? .tooMuch : kept > keptMax / 2 ? .much : .little
        }
    }

    /// `isHeld`: whether the snapshot was not taken back. `isAwaited`: whether the writer waits for the reading to end.
    init(
        of reading: Reading, isHeld: @escaping @Sendable () -> Bool = { true },
        isAwaited: @escaping @Sendable () -> Bool = { false },
        _ judge: @escaping @Sendable () throws(StorageFailure) -> Level
    ) {
        (self.reading, self.isHeld, self.isAwaited, self.judge) = (reading, isHeld, isAwaited, judge)
    }

    /// The present cost. Judging reads a list that may be long, so it is done for a tenth of the time at most: the
    /// level may be a moment old.
    func present() throws(StorageFailure) -> Level {
        try state.withLock { state throws(StorageFailure) in
            let begin = ContinuousClock.now
            // What is to be given up stays so.
            guard state.level != .tooMuch else { return .tooMuch }
            if begin >= state.awaitedDue {
                if !isHeld() || isAwaited() { (state.level, state.isAwaited) = (.tooMuch, true) }
                state.awaitedDue = begin + SnapshotCost.pause
            }
            guard begin >= state.due, state.level != .tooMuch else { return state.level }
            do throws(StorageFailure) {
                state.level = try judge()
            } catch {
                // What can't be read any more is no damage.
                guard !isHeld() else { throw error }
                (state.level, state.isAwaited) = (.tooMuch, true)
            }
            let end = ContinuousClock.now
            state.due = end + max(SnapshotCost.pause, (end - begin) * 9)
            return state.level
        }
    }

    /// Whether the reading is to be given up. It goes on when that can't be judged: a damaged list of free pages keeps
    /// nobody from saying what is damaged, or from saving the log.
    var isTooMuch: Bool { (try? present()) == .tooMuch }

    /// Returns what `body` has read. Throws `givenUp` instead, or in place of what `body` throws, when the service has
    /// taken the snapshot back meanwhile: what was read then means nothing.
    func whileHeld<R>(_ body: () throws(StorageFailure) -> R) throws(StorageFailure) -> R {
        try readWhileHeld(reading.name, isHeld, body)
    }

    /// Throws `givenUp` when the reading is to be given up.
    func check() throws(StorageFailure) {
        guard isTooMuch else { return }
        if state.withLock({ $0.isAwaited }) { throw .awaited(reading.name) }
        throw .givenUp(
            "\(reading.name) was given up: the service changes so much meanwhile that the pages kept for it would "
                + "leave it without room; \(reading.remedy)")
    }
}

/// See `SnapshotCost.whileHeld`. `reading`: its name.
func readWhileHeld<R>(
    _ reading: String, _ isHeld: () -> Bool, _ body: () throws(StorageFailure) -> R
) throws(StorageFailure) -> R {
    let outcome: Result<R, StorageFailure>
    do throws(StorageFailure) {
        outcome = .success(try body())
    } catch {
        outcome = .failure(error)
    }
    guard isHeld() else { throw .awaited(reading) }
    return try outcome.get()
}

extension StorageFailure {
    /// A reading has ended because a change needs the pages of its snapshot.
    static func awaited(_ reading: String) -> StorageFailure {
        .givenUp(
            "\(reading) was given up: the storage is full, and a change that must pass needs the pages kept for it; "
                + "try it again")
    }
}
