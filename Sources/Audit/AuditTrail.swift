package import Core
import Foundation
package import Hashing

/// The audit of a running service. One thread writes the lines, many at once, and makes them durable with one call.
///
/// A mutation first reserves room on the disk for its line. Its answer is sent after its line is
/// durable. So no change is answered without a line, and a full disk stops mutations before they are made. When the
/// disk is full, lines about removals use a reserve.
///
/// Other lines are written in order with the rest, and nobody waits for them. Those that find no room are counted, and
/// a later line tells their number. Lines about refusals are limited besides, because whoever reaches the port causes
/// them: by peer, over all, and by room that is left to changes. A line sums up the others.
package final class AuditTrail: Sendable {
    package struct Settings: Sendable {
        package var path: String
        /// Whether mutations go on without lines when the audit can't be written.
        package var isOptional = false
        /// Bytes after which the file is moved aside and another one begun.
        package var fileBytesMax = 64 << 20
        package var aheadBytes = Limits.auditAheadBytes
        package var reserveBytes = Limits.auditReserveBytes

        package init(path: String) {
            self.path = path
        }
    }

    /// The right to append one line.
    package struct Reservation: Sendable {
        fileprivate let bytes: Int
    }

    struct Entry: Sendable {
        let record: AuditRecord
        let at: UInt64
        let reservation: Reservation
        let completion: (@Sendable (ServiceError?) -> Void)?
    }

    private struct State {
        /// The first line, until `begin`.
        var start: AuditRecord?
        var waiting: [Entry] = []
        /// Bytes that are reserved and whose lines are not written.
        var promised = 0
        /// Bytes that the disk has for lines that are not written, as of the last look.
        var room = 0
        var lost: UInt64 = 0
        var isWriterAsleep = false
        /// How many of the waiting lines belong before a new file that is wanted; `nil` when none is.
        var linesBeforeNewFile: Int?
        /// Whether the writer shall look whether the disk has room again.
        var wantsRoom = false
        /// Whether the disk had less room, as of the last look, than the audit keeps.
        var isDiskShort = false
        /// Whether a change was refused for want of room since there was room for many.
        var isFull = false
        /// Whether the log was told that changes are refused for want of room.
        var isFullTold = false
        var fullPause = LinePause(seconds: Limits.fullnessSeconds)
        var removalPause = LinePause(seconds: Limits.fullnessSeconds)
        var isClosed = false
        /// Whether the log was told that refusals get no lines for want of room.
        var isShortTold = false
        /// Why the last lines could not be written; `nil` when they could.
        var failure: ServiceError?
    }

    /// The key of the lines, with the name of its generation.
    package struct Key: Sendable {
        package let name: String
        let authenticator: MessageAuthenticator

        package init(name: String, _ authenticator: MessageAuthenticator) {
            self.name = name
            self.authenticator = authenticator
        }
    }

    let settings: Settings
    private let key: Lock<Key>
    private let date: @Sendable () -> UInt64
    private let log: Log
    private let clock: MonotonicClock
    private let state = Lock(State())
    /// Its lock may be taken while that of `state` is held, not the other way round.
    private let refusals: Lock<RefusalLines>
    private let wake = DispatchSemaphore(value: 0)
    private let ended = DispatchSemaphore(value: 0)

    /// Opens the file, continues its chain, and starts the writer. `begin` follows once nothing keeps the service from
    /// starting.
    ///
    /// `sequence`: that of the last change; `nil` when others make changes, too, whose lines are elsewhere. `date`:
    /// milliseconds since 1970. `clock`: that of rates. `log` gets lines about failures.
    ///
    /// Throws when the file can't be opened or continued.
    package init(
        _ settings: Settings, key: Key, sequence: UInt64?, calls: AuditCalls = .system,
        date: @escaping @Sendable () -> UInt64, clock: MonotonicClock = .system,
        log: Log
    ) throws(AuditFailure) {
        self.settings = settings
        self.key = Lock(key)
        self.date = date
        self.log = log
        self.clock = clock
        refusals = Lock(RefusalLines(at: clock.milliseconds))
        let file = try AuditFile(path: settings.path, calls)
        var head = file.head
        if head?.sequence == nil {
            // The file may be a new one.
            let moved = try AuditFile.headOfMovedFile(of: settings.path)
            if head == nil { head = moved } else { head?.sequence = moved?.sequence }
        }
        if let head, !head.line.isEmpty { try AuditTrail.check(head, key, settings.path) }
        if file.tornBytes > 0 {
            log(.warning, "the last line of the audit \(settings.path) was unfinished: cut off \(file.tornBytes) bytes")
        }
        let writer = AuditWriter(file, head ?? AuditFile.Head(), settings, calls, log)
        var details = file.tornBytes > 0 ? ["cut off \(file.tornBytes) bytes of an unfinished line"] : []
        if let known = head?.sequence, let sequence, known > sequence {
            details.append("the storage is older than this audit, which has the change \(known)")
            log(
                .warning,
                "the storage is older than its audit \(settings.path): it has reached the change \(sequence) of "
                    + "\(known); if an older copy was restored, what was removed or revoked since is back")
        }
        let detail = details.isEmpty ? nil : details.joined(separator: "; ")
        state.withLock { $0.start = .ofService("start", sequence: sequence, detail: detail) }
        show(writer)
        let thread = Thread { self.run(writer) }
        thread.name = "rootgate audit"
        thread.start()
    }

    /// Throws when a file's last line was written under the present key and its tag is not genuine.
    private static func check(_ head: AuditFile.Head, _ key: Key, _ path: String) throws(AuditFailure) {
        let isGenuine = head.line.withUnsafeBytes { bytes in
            AuditLine(bytes).map { $0.key != key.name || $0.isGenuine(bytes, key.authenticator) } ?? false
        }
        guard isGenuine else { throw .damaged(path: path, reason: "its last line was changed") }
    }

    // MARK: From any thread

    /// Appends the first line: the service has started, with what the storage had reached. A start that fails before
    /// that leaves no line, so that the next one is compared with the same lines before.
    package func begin() {
        let line = state.withLock { state in
            defer { state.start = nil }
            return state.start
        }
        if let line { note(line, isForced: true) }
    }

    /// Reserves room for the record's line, which the mutation's completion appends.
    ///
    /// Returns `nil` when the audit is optional and there is no room. Throws `storageFull` when the disk is full or
    /// fails, and `busy` when too many lines wait.
    package func reserve(_ record: AuditRecord, isRemoval: Bool) throws(ServiceError) -> Reservation? {
        let bytes = AuditTrail.checkedBytes(of: record)
        let refusal = state.withLock { state -> ServiceError? in
            if state.isClosed { return ServiceError(.shuttingDown, "the audit is closed") }
            if let failure = state.failure { return failure }
            guard state.waiting.count < Limits.auditLinesWaitingMax else { return AuditTrail.busy }
            let kept = isRemoval ? 0 : settings.reserveBytes
            guard state.room - state.promised - kept >= bytes else {
                state.wantsRoom = true
                wakeWriter(&state)
                if !state.isDiskShort, state.promised > 0 { return AuditTrail.busy }
                state.isFull = true
                return isRemoval ? AuditTrail.fullOfRemovals : AuditTrail.full
            }
            state.promised += bytes
            return nil
        }
        guard let refusal else { return Reservation(bytes: bytes) }
        guard settings.isOptional else {
            if refusal.code == .storageFull { tellFull(isRemoval: isRemoval) }
            throw refusal
        }
        countLost(refusal.reason)
        return nil
    }

    /// Tells the log that changes are refused for want of room, or that a removal was: once a minute at most.
    private func tellFull(isRemoval: Bool) {
        let now = clock.milliseconds
        let (tellsFull, tellsRemoval) = state.withLock { state in
            let tellsFull = !state.isFullTold && state.fullPause.ends(at: now)
            if tellsFull { state.isFullTold = true }
            return (tellsFull, isRemoval && state.removalPause.ends(at: now))
        }
        if tellsFull { log(.warning, "the disk has no room for the audit \(settings.path): changes are refused") }
        if tellsRemoval {
            log(.critical, "a removal was refused: the disk has no room for the audit, and its reserve is used up")
        }
    }

    /// Why changes are refused, or will be soon, because their lines can't be written; `nil`: they are not.
    package var fault: String? {
        guard !settings.isOptional else { return nil }
        return state.withLock { state in
            if let failure = state.failure { return failure.reason }
            guard state.isFull else { return nil }
            // Perhaps there is room now, and nobody sends a change to a service that is not ready.
            state.wantsRoom = true
            wakeWriter(&state)
            return "changes were refused: the disk of the audit has too little room"
        }
    }

    /// The room that a record's line is given.
    private static func checkedBytes(of record: AuditRecord) -> Int {
        let bytes = record.lineBytesMax
        precondition(bytes > 0 && bytes <= Limits.auditLineBytesMax, "a line is longer than a line may be")
        return bytes
    }

    private static let busy = ServiceError(.busy, "too many lines wait for the audit: try again later")
    private static let full = ServiceError(
        .storageFull, "the disk has no room for the audit: changes are refused, removals still work")
    private static let fullOfRemovals = ServiceError(
        .storageFull, "the disk has no room for the audit, and what is kept for removals is used up")

    /// Appends a line. The writer's thread calls `completion` when the line is durable, or with the failure that keeps
    /// it from being so: then the change was made, and its line is written as soon as that is possible.
    package func append(
        _ record: AuditRecord, _ reservation: Reservation, completion: @escaping @Sendable (ServiceError?) -> Void
    ) {
        let entry = Entry(record: record, at: date(), reservation: reservation, completion: completion)
        guard !enqueue(entry) else { return }
        completion(settings.isOptional ? nil : ServiceError(.shuttingDown, "the audit is closed"))
    }

    /// Gives a reservation back: there is nothing to write.
    package func withdraw(_ reservation: Reservation) {
        state.withLock { state in
            state.promised -= reservation.bytes
            precondition(state.promised >= 0, "a reservation was given back twice")
        }
    }

    /// Appends a line for which nobody waits. Without room for it, it is only counted.
    package func note(_ record: AuditRecord) { note(record, isForced: false) }

    private func note(_ record: AuditRecord, isForced: Bool) {
        if !admit(record, leaving: 0, isForced: isForced) { countLost("there is no room for it") }
    }

    /// Appends the line of a change for which nobody waits, if there is room for it. Returns whether it does.
    package func noteIfRoom(_ record: AuditRecord) -> Bool {
        if admit(record, leaving: 0) { return true }
        state.withLock { state in
            state.wantsRoom = true
            wakeWriter(&state)
        }
        return false
    }

    /// Appends a line for which nobody waits if there is room for it besides what is left to others.
    private func admit(_ record: AuditRecord, leaving others: Int, isForced: Bool = false) -> Bool {
        let bytes = AuditTrail.checkedBytes(of: record)
        let isAdmitted = state.withLock { state in
            let hasRoom =
                state.waiting.count < Limits.auditLinesWaitingMax && hasRoom(for: bytes, leaving: others, state)
            guard !state.isClosed, hasRoom || isForced else { return false }
            state.promised += bytes
            return true
        }
        guard isAdmitted else { return false }
        _ = enqueue(Entry(record: record, at: date(), reservation: Reservation(bytes: bytes), completion: nil))
        return true
    }

    private func hasRoom(for bytes: Int, leaving others: Int = 0, _ state: State) -> Bool {
        state.failure == nil && state.room - state.promised - settings.reserveBytes - others >= bytes
    }

    /// Notes that the peer was refused something. A line that is above the limits, or that would take room from
    /// changes, is not made; a later one tells how many there were.
    package func noteRefusal(_ kind: RefusalLines.Kind, of peer: Holder, _ record: () -> AuditRecord) {
        let now = clock.milliseconds
        if refusals.withLock({ $0.admit(kind, of: peer, at: now) }) {
            if admit(record(), leaving: roomOfChanges) { return }
            let isTold = state.withLock { state in
                defer { state.isShortTold = true }
                return state.isShortTold
            }
            if !isTold {
                log(.warning, "the audit has no room for lines about refusals: they are counted until there is")
            }
        }
        guard refusals.withLock({ $0.leaveOut(kind, at: now, date: date()) }) else { return }
        // The writer sleeps until something is due.
        state.withLock { wakeWriter(&$0) }
    }

    /// Bytes that lines about refusals leave to changes.
    private var roomOfChanges: Int { settings.aheadBytes / Limits.auditChangesPart }

    private func enqueue(_ entry: Entry) -> Bool {
        state.withLock { state in
            guard !state.isClosed else { return false }
            state.waiting.append(entry)
            wakeWriter(&state)
            return true
        }
    }

    private func wakeWriter(_ state: inout State) {
        guard state.isWriterAsleep else { return }
        state.isWriterAsleep = false
        wake.signal()
    }

    /// Counts a line that can't be written, because what it would tell is not known. A later line tells the number.
    package func noteLost(_ reason: String) { countLost(reason) }

    private func countLost(_ reason: String) {
        let isFirst = state.withLock { state in
            state.lost += 1
            return state.lost == 1
        }
        // The number is told by the next line that can be written.
        if isFirst { log(.error, "the audit loses lines: \(reason)") }
    }

    /// Signs later lines with another key.
    package func use(_ key: Key) {
        self.key.withLock { $0 = key }
    }

    /// Moves the file aside and begins another one, or opens another one when somebody has moved the file. The lines
    /// that were appended before go to the file before, if they can be written. While a new file is wanted already,
    /// this adds nothing. Behind the last line none is begun unless somebody has moved the file.
    package func beginNewFile() {
        state.withLock { state in
            state.linesBeforeNewFile = state.linesBeforeNewFile ?? state.waiting.count
            wakeWriter(&state)
        }
    }

    /// Writes the lines that wait and a last one, and waits until the writer has ended. `sequence`: that of the last
    /// change; `nil` when it is not known, or when lines of changes may still come. Some changes have no lines, as
    /// notes of when a key was used: with the sequence nobody takes them for dropped lines. While lines are lost and no
    /// line has told it, the last one does not name the sequence: then the next start tells which changes have none.
    package func close(sequence: UInt64? = nil) {
        if let summary = refusals.withLock({ $0.takeSummary() }), !admit(summary, leaving: roomOfChanges) {
            log(.warning, "the audit has no room for its last line about refusals: \(summary.detail ?? "")")
        }
        let (isWhole, hasBegun) = state.withLock { ($0.lost == 0, $0.start == nil) }
        if hasBegun {
            note(.ofService("stop", sequence: isWhole ? sequence : nil), isForced: true)
        }
        let wasClosed = state.withLock { state in
            defer { state.isClosed = true }
            wakeWriter(&state)
            return state.isClosed
        }
        if !wasClosed { ended.wait() }
    }

    // MARK: The writer

    private struct Turn {
        var entries: [Entry] = []
        var lost: UInt64 = 0
        /// What sums up refusals without lines.
        var summary: AuditRecord?
        var wantsNewFile = false
        /// Whether the last line was written before.
        var isEnd = false
    }

    private func run(_ writer: AuditWriter) {
        writer.thread.bind()
        while let turn = nextTurn(isRetrying: writer.isFailing) {
            // Behind the last line only a file that somebody has moved needs another one, whose chain goes on.
            if turn.wantsNewFile, !turn.isEnd || writer.isMoved {
                writer.beginNewFile(at: date(), key.withLock { $0 })
            }
            let lost = turn.lost > 0 ? AuditRecord.ofService("lost-lines", detail: "\(turn.lost)") : nil
            // The last of the entries may be the end of the audit.
            let entries = [lost].map(entryWithoutRoom) + turn.entries + [turn.summary].map(entryWithoutRoom)
            let written = writer.write(entries.compactMap { $0 }, key.withLock { $0 }, now: date)
            settle(written, writer)
        }
        writer.close()
        writer.thread.unbind()
        ended.signal()
    }

    /// An entry of a line that was not reserved; `nil` without a line.
    private func entryWithoutRoom(_ record: AuditRecord?) -> Entry? {
        record.map { Entry(record: $0, at: date(), reservation: Reservation(bytes: 0), completion: nil) }
    }

    /// Takes the lines that wait. Returns `nil` once the trail is closed and nothing waits. While writing fails, or
    /// while refusals wait for their summary, it returns at intervals although nothing new waits.
    private func nextTurn(isRetrying: Bool) -> Turn? {
        var hasWaited = false
        while true {
            let (turn, isClosed, wait) = state.withLock { state -> (Turn?, Bool, UInt64?) in
                let untilSummary = refusals.withLock { $0.wait(at: clock.milliseconds) }
                let wait = isRetrying ? 1000 : untilSummary.map { $0 == 0 ? Limits.auditSummaryMilliseconds : $0 }
                let turn = takeTurn(&state, sumsUp: untilSummary == 0, isDue: wait != nil && hasWaited)
                if turn == nil { state.isWriterAsleep = !state.isClosed }
                return (turn, state.isClosed, wait)
            }
            if let turn { return turn }
            if isClosed { return nil }
            let isTimeOver = wake.wait(timeout: .now() + .milliseconds(Int(wait ?? 3_600_000))) == .timedOut
            hasWaited = isTimeOver && wait != nil
            state.withLock { $0.isWriterAsleep = false }
        }
    }

    /// What is to be done; `nil`: nothing, unless something `isDue`.
    private func takeTurn(_ state: inout State, sumsUp: Bool, isDue: Bool) -> Turn? {
        let tellsLost = state.lost > 0 && hasRoom(for: Limits.auditLineFrameBytesMax, state)
        let summaryBytes = Limits.auditLineFrameBytesMax + Limits.auditTextBytesMax
        let hasRoomToSumUp = sumsUp && hasRoom(for: summaryBytes, leaving: roomOfChanges, state)
        let wantsNewFile = state.linesBeforeNewFile != nil
        let hasWork = !state.waiting.isEmpty || wantsNewFile || state.wantsRoom || tellsLost || hasRoomToSumUp
        guard hasWork || isDue else { return nil }
        var turn = Turn()
        if let before = state.linesBeforeNewFile, before > 0 {
            turn.entries = Array(state.waiting.prefix(before))
            state.waiting.removeFirst(before)
            state.linesBeforeNewFile = 0
        } else {
            (turn.entries, state.waiting) = (state.waiting, [])
            (turn.wantsNewFile, state.linesBeforeNewFile) = (wantsNewFile, nil)
        }
        state.wantsRoom = false
        turn.isEnd = state.isClosed && turn.entries.isEmpty
        if tellsLost { (turn.lost, state.lost) = (state.lost, 0) }
        if hasRoomToSumUp {
            turn.summary = refusals.withLock { $0.takeSummary() }
            state.isShortTold = false
        }
        return turn
    }

    /// Tells those who wait for lines what has come of them.
    private func settle(_ result: AuditWriter.Result, _ writer: AuditWriter) {
        let failure = result.failure.map { failure in
            ServiceError(
                [ENOSPC, EDQUOT, EFBIG].contains(failure.number) ? .storageFull : .storageFailed,
                detail: UInt32(bitPattern: failure.number), "the audit can't be written: \(failure)")
        }
        state.withLock { state in
            state.failure = failure
            state.promised -= result.settled.reduce(0) { $0 + $1.reservation.bytes }
            precondition(state.promised >= 0, "a line was written twice")
        }
        show(writer)
        let answer = settings.isOptional ? nil : failure
        for entry in result.settled + result.unanswered { entry.completion?(answer) }
    }

    /// Reserves room on the disk and shows it to `reserve`.
    private func show(_ writer: AuditWriter) {
        let wanted = state.withLock { $0.promised } + settings.aheadBytes + settings.reserveBytes
        writer.reserve(wanted)
        let room = writer.room
        let hasRoomAgain = state.withLock { state in
            (state.room, state.isDiskShort) = (room, room < wanted / 4 * 3)
            guard room - state.promised - settings.reserveBytes >= roomOfChanges else { return false }
            defer { (state.isFull, state.isFullTold) = (false, false) }
            return state.isFullTold
        }
        if hasRoomAgain { log(.info, "the disk has room for the audit again") }
    }
}
