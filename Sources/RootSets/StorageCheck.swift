import Core
import Dispatch
import Foundation

/// Checks what a start has left of the file's structure and walks over the whole storage, each time that it was opened,
/// on a thread of its own. Reports the damage that it finds. Who reads a database meanwhile waits until the walk has
/// left it (`DatabaseTrust`).
final class StartCheck: Sendable {
    private struct State {
        var next: StorageEnvironment?
        /// What is walked over now.
        var current: StorageEnvironment?
        var isStarted = false
        var isStopped = false
    }

    private let state = Lock(State())
    private let wake = DispatchSemaphore(value: 0)
    private let ended = DispatchSemaphore(value: 0)

    /// Starts the thread. Must be called once.
    func start() {
        state.withLock { state in
            precondition(!state.isStarted, "a check was started twice")
            state.isStarted = true
        }
        let thread = Thread { [self] in
            while walkNext() {}
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

    /// Waits for an environment and walks over it. Returns false when the check was stopped.
    private func walkNext() -> Bool {
        wake.wait()
        let next = state.withLock { state in
            defer { state.next = nil }
            state.current = state.next
            return state.next
        }
        if let next {
            walk(next)
            state.withLock { $0.current = nil }
            next.trust.endCheck()
        }
        return !isStopped
    }

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
            // What could not be read is no damage: the storage is opened again, and checked again.
            if let fault = trust.fault ?? guarded.fault ?? environment.cut ?? (error.isFault ? error : nil) {
                health.report(.failed, fault.action)
            } else if error.isDamage {
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
}
