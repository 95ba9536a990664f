import Core
import Dispatch
import Foundation
import Synchronization

/// Checks what a start has left of the file's structure and walks over the whole storage, each time that it was opened,
/// on a thread of its own. Reports the damage that it finds. Who reads a database meanwhile waits until the walk has
/// left it (`DatabaseTrust`).
///
/// Later it walks over a snapshot again and again, and nobody waits for it. So it also finds what a disk has damaged
/// while the service runs, although buckets of root hashes are checked only once when they are read.
final class StorageCheck: Sendable {
    private struct State {
        var next: StorageEnvironment?
        /// What is walked over now.
        var current: StorageEnvironment?
        /// What was walked over last. It is closed when nobody else uses it.
        weak var last: StorageEnvironment?
        /// Whether it is to be walked over again now.
        var isHurried = false
        /// From the last check to the next one.
        var pause: Duration
        var isStarted = false
        var isStopped = false
    }

    /// How a later check has ended.
    private enum Ending {
        case done
        /// It was given up, because it would have left the service without room.
        case tooCostly
        /// It was interrupted, or something was missing for it.
        case failed
    }

    private let interval: CheckInterval
    private let log: Log
    private let walks = Atomic<Int>(0)
    /// How long after a hurried check that was given up the next one begins.
    private static let hurriedPause = Duration.seconds(10)
    private let state: Lock<State>
    private let walker = ThreadConfinement()
    private let wake = DispatchSemaphore(value: 0)
    private let ended = DispatchSemaphore(value: 0)

    /// `interval`: how long after a check the next one of the same environment begins. `log` gets a line when a later
    /// check was given up.
    init(interval: CheckInterval, log: Log = .none) {
        (self.interval, self.log) = (interval, log)
        state = Lock(State(pause: interval.least))
    }

    /// Starts the thread. Must be called once.
    func start() {
        state.withLock { state in
            precondition(!state.isStarted, "a check was started twice")
            state.isStarted = true
        }
        let thread = Thread { [self] in
            walker.bind()
            while walkNext() {}
            walker.unbind()
            // One that came too late is not checked, and nobody waits for it.
            state.withLock { $0.next.take() }?.trust.endCheck()
            ended.signal()
        }
        thread.name = "rootgate check"
        thread.start()
    }

    /// Begins the check of an environment that nobody uses yet.
    func begin(_ environment: StorageEnvironment) {
        environment.trust.beginCheck()
        environment.health.note(isChecked: false)
        let isStopped = state.withLock { state in
            if !state.isStopped { state.next = environment }
            return state.isStopped
        }
        if isStopped { environment.trust.endCheck() }
        wake.signal()
    }

    /// Walks over everything again as soon as possible: something was damaged after the check of the start, or behind a
    /// walk that goes on. What a walk has found need not be looked for again: then the call does nothing.
    func hurry() {
        guard !walker.isCurrent else { return }
        state.withLock { $0.isHurried = true }
        wake.signal()
    }

    /// Ends the walk if one goes on. A second call does nothing.
    func stop() {
        let isRunning = state.withLock { state in
            defer { state.isStopped = true }
            state.current?.stopChecking()
            return state.isStarted && !state.isStopped
        }
        guard isRunning else { return }
        wake.signal()
        ended.wait()
    }

    private var isStopped: Bool { state.withLock { $0.isStopped } }

    /// Waits for an environment and walks over it; when none comes for a while, over the last one again. Returns false
    /// when the check was stopped.
    private func walkNext() -> Bool {
        let pause = state.withLock { $0.isHurried ? min($0.pause, StorageCheck.hurriedPause) : $0.pause }
        let isDue = wake.wait(timeout: .now() + pause / .seconds(1)) == .timedOut
        typealias Task = (environment: StorageEnvironment?, isNew: Bool, isHurried: Bool)
        let task = state.withLock { state -> Task in
            let next = state.next.take()
            let isAgain = next == nil && (isDue || state.isHurried)
            state.current = next ?? (isAgain ? state.last : nil)
            return (state.current, next != nil, state.isHurried)
        }
        if let environment = task.environment {
            var ending = Ending.done
            let wasDamaged = environment.health.level != .intact
            let start = ContinuousClock.now
            if task.isNew {
                walk(environment)
                environment.trust.endCheck()
            } else {
                ending = walkAgain(environment, isHurried: task.isHurried)
            }
            let isDamaged = environment.health.level != .intact
            state.withLock { state in
                (state.current, state.last) = (nil, environment)
                switch ending {
                case .done: state.pause = interval.pause(after: ContinuousClock.now - start)
                case .tooCostly: state.pause = interval.most
                case .failed: state.pause = interval.least
                }
                // One that was hurried while this walk went on may be about what it had left.
                if ending == .done, task.isHurried { state.isHurried = false }
                // This one has found damage and was given up, so there may be more.
                if ending != .done, isDamaged, !wasDamaged { state.isHurried = true }
            }
            if ending == .done { walks.add(1, ordering: .releasing) }
        }
        return !isStopped
    }

    /// How many walks have ended, for tests.
    var walkCount: Int { walks.load(ordering: .acquiring) }

    /// Whether one goes on, for tests.
    var isWalking: Bool { state.withLock { $0.current != nil } }

    private func walk(_ environment: StorageEnvironment) {
        let (health, trust) = (environment.health, environment.trust)
        let guarded = StorageGuard()
        do throws(StorageFailure) {
            var walk = try StorageWalk(
                environment, isInterrupted: { [self] in isStopped || trust.isRetired || trust.fault != nil },
                report: { finding in
                    guard trust.fault == nil, !guarded.hasFault, environment.cut == nil else { return }
                    for name in finding.distrusted { trust.distrust(name) }
                    health.report(.damaged, finding.line)
                },
                beforeWalk: { name throws(StorageFailure) in try environment.checkStructure(of: name) },
                whenWalked: { name in
                    if trust.fault == nil, !guarded.hasFault { trust.noteChecked(name) }
                })
            let isDone = try walk.run()
            if let fault = trust.fault ?? guarded.fault ?? environment.cut { throw fault }
            if isDone { health.note(isChecked: true) }
        } catch {
            if reportFault(error, guarded, environment) { return }
            if error.isDamage {
                health.note(error)
                // What the walk has left was whole.
                for name in DatabaseName.allCases where trust.isUnchecked(name) { trust.distrust(name) }
                // The rest of a damaged file is not walked over.
                health.note(isChecked: true)
            } else if !isStopped, !trust.isRetired {
                health.report(.failed, "it could not be checked, \(error.text)")
            }
        }
    }

    /// Judges the pages of a snapshot of a storage that was checked before, and walks over it. Others read and write
    /// meanwhile. Gives up when the snapshot costs too much, or when there is no memory for it: the next check tries it
    /// again.
    ///
    /// `isHurried`: whether damage was met, so that this is to find soon what can't be believed.
    private func walkAgain(_ environment: StorageEnvironment, isHurried: Bool) -> Ending {
        let (health, trust) = (environment.health, environment.trust)
        // What has failed is opened and checked anew.
        guard health.isChecked, health.level != .failed else { return .done }
        let guarded = StorageGuard()
        let pace = isHurried ? nil : Pace()
        do throws(StorageFailure) {
            let transaction = try ReadTransaction(environment)
            let page = try environment.renew(transaction)
            defer { transaction.reset() }
            let cost = SnapshotCost(of: .check, environment, transaction)
            let isInterrupted: @Sendable () -> Bool = { [self] in
                pace?.rest()
                return isStopped || trust.isRetired || trust.fault != nil || cost.isTooMuch
            }
            let structure = try environment.structureFault(of: page, isStopped: isInterrupted)
            if let structure, !isInterrupted() { throw .damaged(structure) }
            var walk = try StorageWalk(
                environment, in: transaction, readsAnew: true, isInterrupted: isInterrupted,
                report: { finding in
                    guard trust.fault == nil, !guarded.hasFault, environment.cut == nil else { return }
                    for name in finding.distrusted { trust.distrust(name) }
                    environment.directories.drop()
                    health.report(.damaged, finding.line)
                })
            let isDone = try walk.run()
            if let fault = trust.fault ?? guarded.fault ?? environment.cut { throw fault }
            if !isDone, cost.isTooMuch {
                log(.warning, "what is stored was not checked again: its pages would leave the service without room")
            }
            return isDone ? .done : cost.isTooMuch ? .tooCostly : .failed
        } catch {
            if error.isDamage {
                for name in DatabaseName.allCases { trust.distrust(name) }
                environment.directories.drop()
                health.note(error)
                return .done
            }
            if !reportFault(error, guarded, environment), !isStopped, !trust.isRetired {
                log(.warning, "what is stored could not be checked again: \(error.text)")
            }
            return .failed
        }
    }

    /// Reports what could not be read, which is no damage: the storage is opened and checked again. Returns false
    /// when everything could be read.
    private func reportFault(
        _ error: StorageFailure, _ guarded: StorageGuard, _ environment: StorageEnvironment
    ) -> Bool {
        guard
            let fault = environment.trust.fault ?? guarded.fault ?? environment.cut ?? (error.isFault ? error : nil)
        else { return false }
        environment.health.report(.failed, fault.action)
        return true
    }
}

/// Lets a thread work for a short time and rest for a longer one, in turn.
private final class Pace: Sendable {
    private let end = Lock(ContinuousClock.now + .microseconds(Limits.checkWorkMicroseconds))

    /// Rests when it is time to.
    func rest() {
        end.withLock { end in
            guard ContinuousClock.now >= end else { return }
            Thread.sleep(forTimeInterval: Double(Limits.checkRestMicroseconds) / 1e6)
            end = ContinuousClock.now + .microseconds(Limits.checkWorkMicroseconds)
        }
    }
}
