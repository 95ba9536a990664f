#if os(Linux)
import CLinux
import Foundation

extension System {
    /// Gives up, for all threads of this process and for good, what `rules` don't allow: new privileges, capabilities,
    /// other files, new sockets, other programs and processes, and the system calls that `SystemCallFilter` does not
    /// list. What the kernel does not have is reported as missing, and the rest is applied.
    ///
    /// Nothing of the process may depend on what is given up. Must be called once.
    package static func enterSandbox(_ rules: SandboxRules) -> SandboxReport {
        var report = SandboxReport()
        var landlock: Landlock?
        do throws(SystemFailure) {
            landlock = try Landlock(rules)
        } catch {
            report.missing.append("restricted files (Landlock: \(error.reason))")
        }
        let hasCapabilities = capabilities(0) != 0
        let dropsCapabilities = hasCapabilities && !needsCapabilities(rules)
        do throws(SystemFailure) {
            try restrictThreads(landlock?.descriptor ?? -1, dropsCapabilities: dropsCapabilities)
            report.inForce.append("no new privileges")
            if dropsCapabilities || !hasCapabilities { report.inForce.append("no capabilities") }
            if let landlock {
                report.inForce.append("restricted files (Landlock \(landlock.version))")
                let ports = rules.connectionPorts.sorted().map { String($0) }.joined(separator: ", ")
                let sockets = "no new TCP sockets" + (ports.isEmpty ? "" : " but to \(ports) and 53")
                if landlock.restrictsNetwork {
                    report.inForce.append(sockets)
                } else {
                    report.missing.append("\(sockets) (Landlock \(landlock.version) is too old)")
                }
            }
        } catch {
            report.missing.append("restrictions of every thread (\(error))")
        }
        if hasCapabilities && !dropsCapabilities {
            report.missing.append(
                "no capabilities (without them the user \(geteuid()) could not use its files: run as their owner)")
        }
        do throws(SystemFailure) {
            guard let architecture = SystemCallFilter.Architecture.own else {
                throw SystemFailure("seccomp", number: ENOTSUP, reason: "no table for this architecture")
            }
            let groups = SystemCallTable.groups(connecting: !rules.connectionPorts.isEmpty)
            try SystemCallFilter(groups, for: architecture, ownProcess: UInt32(getpid())).install()
            report.inForce.append("filtered system calls")
        } catch {
            report.missing.append("filtered system calls (\(error))")
        }
        return report
    }

    /// Whether the process could not use the files of the rules without its capabilities, as when root serves files of
    /// another user.
    private static func needsCapabilities(_ rules: SandboxRules) -> Bool {
        let effective = capabilities(1)
        guard set_capabilities(0, 0) == 0 else { return true }
        let isAble =
            (rules.writableFolders + rules.removalFolders).allSatisfy { isAllowed(W_OK | X_OK, $0) }
            && rules.readableFiles.allSatisfy { isAllowed(R_OK, $0) }
        let isRestored = set_capabilities(effective, 0)
        precondition(isRestored == 0, "capabilities that were effective can't be again")
        return !isAble
    }

    private static func isAllowed(_ mode: CInt, _ path: String) -> Bool {
        faccessat(AT_FDCWD, path, mode, AT_EACCESS) == 0
    }

    /// Applies what the kernel applies to single threads, to each thread: first to the others, until a look at the list
    /// of threads shows none that was not asked, then to the calling one. A thread that is made meanwhile has the
    /// restrictions of the thread that made it, or is asked.
    private static func restrictThreads(_ ruleset: CInt, dropsCapabilities: Bool) throws(SystemFailure) {
        guard begin_restrictions(ruleset, dropsCapabilities ? 1 : 0) == 0 else { throw SystemFailure("sigaction") }
        defer { _ = end_restrictions() }
        var done: Set<CInt> = [CInt(system_call(Int(SYS_gettid), 0, 0, 0, 0, 0, 0))]
        while true {
            guard let names = try? FileManager.default.contentsOfDirectory(atPath: "/proc/self/task") else {
                throw SystemFailure("listing the threads in /proc")
            }
            let waiting = Set(names.compactMap { CInt($0) }).subtracting(done)
            if waiting.isEmpty { break }
            for thread in waiting {
                let number = restrict_other_thread(thread, threadMilliseconds)
                guard number == 0 else { throw SystemFailure("thread \(thread)", number: number) }
                done.insert(thread)
            }
        }
        guard restrict_thread() == 0 else { throw SystemFailure("the starting thread") }
    }

    /// How long a thread may take to answer.
    private static let threadMilliseconds: CInt = 2000
}
#endif
