#if os(Linux)
import Foundation
import TestSupport
import Testing

@testable import Platform

/// Runs a program of classic BPF as the kernel does, written from the kernel's documentation of socket filters.
private func run(
    _ program: [SystemCallFilter.Instruction], number: UInt32, architecture: UInt32, arguments: [UInt64] = []
) throws -> UInt32 {
    let arguments = arguments + [UInt64](repeating: 0, count: 6 - arguments.count)
    // struct seccomp_data: the number, the architecture, the address of the instruction, six arguments.
    var data: [UInt8] = []
    func add(_ value: some FixedWidthInteger) { withUnsafeBytes(of: value.littleEndian) { data += $0 } }
    add(number)
    add(architecture)
    add(UInt64(0x1234))
    for argument in arguments { add(argument) }
    var accumulator: UInt32 = 0
    var place = 0
    while place < program.count {
        let step = program[place]
        place += 1
        switch step.code {
        case 0x20:
            let start = Int(step.operand)
            try #require(start % 4 == 0 && start + 4 <= data.count)
            accumulator = data[start..<start + 4].reversed().reduce(0) { $0 << 8 | UInt32($1) }
        case 0x54: accumulator &= step.operand
        case 0x15: place += Int(accumulator == step.operand ? step.whenTrue : step.whenFalse)
        case 0x35: place += Int(accumulator >= step.operand ? step.whenTrue : step.whenFalse)
        case 0x06: return step.operand
        default: Issue.record("no such instruction: \(step)")
        }
    }
    Issue.record("the program runs past its end")
    return 0
}

@Suite("The filter of system calls")
struct SystemCallFilterTests {
    typealias Architecture = SystemCallFilter.Architecture
    private static let allow: UInt32 = 0x7fff_0000
    private static let kill: UInt32 = 0x8000_0000
    private static let refuse: UInt32 = 0x5_0001
    private static let unsupported: UInt32 = 0x5_0026

    private let process: UInt32 = 4242

    func outcome(
        _ architecture: Architecture, _ number: UInt32, _ arguments: [UInt64] = [],
        _ groups: [SystemCallFilter.Group] = SystemCallTable.groups
    ) throws -> UInt32 {
        try run(
            SystemCallFilter(groups, for: architecture, ownProcess: process).program, number: number,
            architecture: architecture.identifier, arguments: arguments)
    }

    func number(_ name: String, _ architecture: Architecture) throws -> UInt32 {
        let call = try #require(SystemCallTable.groups(connecting: true).flatMap(\.calls).first { $0.name == name })
        return try #require(architecture == .x86 ? call.x86 : call.arm)
    }

    @Test("Every number is the kernel's own for the call's name", arguments: Architecture.allCases)
    func numbers(architecture: Architecture) throws {
        let headers =
            architecture == .x86
            ? ["/usr/include/x86_64-linux-gnu/asm/unistd_64.h", "/usr/include/asm/unistd_64.h"]
            : ["/usr/include/asm-generic/unistd.h"]
        guard let text = headers.lazy.compactMap({ try? String(contentsOfFile: $0, encoding: .utf8) }).first else {
            print("SKIPPED: this system has no header with the numbers of \(architecture)")
            return
        }
        var values: [Substring: Substring] = [:]
        for line in text.split(separator: "\n") {
            let words = line.split(whereSeparator: { $0 == " " || $0 == "\t" })
            if words.count >= 3, words[0] == "#define", values[words[1]] == nil { values[words[1]] = words[2] }
        }
        for call in SystemCallTable.groups(connecting: true).flatMap(\.calls) {
            var value = values["__NR_\(call.name)"]
            while let name = value, UInt32(name) == nil { value = values[name] }
            let expected = value.flatMap { UInt32($0) }
            #expect((architecture == .x86 ? call.x86 : call.arm) == expected, "\(call.name)")
        }
    }

    @Test("No call is listed twice, and every group has a reason")
    func groups() {
        let calls = SystemCallTable.groups(connecting: true).flatMap(\.calls)
        for numbers in [calls.map(\.name), calls.compactMap { $0.x86 }.map(String.init)] {
            #expect(Set(numbers).count == numbers.count)
        }
        #expect(Set(calls.compactMap(\.arm)).count == calls.compactMap(\.arm).count)
        #expect(SystemCallTable.groups.allSatisfy { $0.reason.count > 10 && !$0.calls.isEmpty })
    }

    @Test(
        "Every call has the outcome of its group, and what is not listed is refused",
        arguments: Architecture.allCases, [false, true])
    func everyNumber(architecture: Architecture, isConnecting: Bool) throws {
        let groups = SystemCallTable.groups(connecting: isConnecting)
        var decisions: [UInt32: SystemCallFilter.Decision] = [:]
        for group in groups {
            for call in group.calls {
                if let number = architecture == .x86 ? call.x86 : call.arm { decisions[number] = group.decision }
            }
        }
        for number in 0..<UInt32(700) {
            let found = try outcome(architecture, number, [], groups)
            switch decisions[number] {
            case .allow: #expect(found == Self.allow, "\(number)")
            case .kill: #expect(found == Self.kill, "\(number)")
            case .unsupported: #expect(found == Self.unsupported, "\(number)")
            case .allowWhen: #expect(found == Self.allow || found == Self.refuse, "\(number)")
            case nil: #expect(found == (number > 450 ? Self.unsupported : Self.refuse), "\(number)")
            }
        }
    }

    @Test("Calls of another architecture and of x32 end the process")
    func otherArchitectures() throws {
        let program = SystemCallFilter(for: .x86, ownProcess: process).program
        let i386: UInt32 = 0x4000_0003
        for architecture in [i386, Architecture.arm.identifier, 0] {
            #expect(try run(program, number: 0, architecture: architecture) == Self.kill)
        }
        for number: UInt32 in [0, 1, 39, 59] {
            #expect(try outcome(.x86, 0x4000_0000 + number) == Self.kill)
        }
        let arm = SystemCallFilter(for: .arm, ownProcess: process).program
        #expect(try run(arm, number: 63, architecture: Architecture.x86.identifier) == Self.kill)
        #expect(try outcome(.arm, 63) == Self.allow)
    }

    @Test(
        "Executing a program, other processes, mounts, keys and modules end the process",
        arguments: Architecture.allCases)
    func killed(architecture: Architecture) throws {
        for name in [
            "execve", "execveat", "ptrace", "process_vm_readv", "process_vm_writev", "mount", "bpf", "keyctl",
            "unshare", "setns", "kexec_load", "init_module", "finit_module", "io_uring_setup", "setuid", "chroot",
        ] {
            #expect(try outcome(architecture, number(name, architecture)) == Self.kill, "\(name)")
        }
    }

    @Test("New sockets and processes are not listed")
    func unlisted() {
        let allowed = SystemCallTable.groups.filter { $0.decision != .kill }.flatMap(\.calls).map(\.name)
        for name in [
            "socket", "socketpair", "bind", "listen", "connect", "kill", "tkill", "memfd_create", "link", "linkat",
            "symlink", "symlinkat", "mkdir", "mknod", "chmod", "chown", "wait4", "seccomp", "shmget", "msgget",
            "pkey_mprotect", "remap_file_pages", "process_mrelease", "pidfd_open", "pidfd_send_signal",
        ] {
            #expect(!allowed.contains(name), "\(name)")
        }
    }

    @Test(
        "Arguments decide about memory, threads, signals, limits, terminals and prctl", arguments: Architecture.allCases
    )
    func conditions(architecture: Architecture) throws {
        let (own, high) = (UInt64(process), UInt64(1) << 32)
        let cases: [(name: String, arguments: [UInt64], isAllowed: Bool)] = [
            ("mmap", [0, 4096, 3], true), ("mmap", [0, 4096, 0], true), ("mmap", [0, 4096, 4], false),
            ("mmap", [0, 4096, 7], false), ("mprotect", [0, 4096, 3], true), ("mprotect", [0, 4096, 5], false),
            // The kernel reads the whole argument here: what is above 32 bits is no protection that it knows.
            ("mprotect", [0, 4096, 4 | high], false),
            ("clone", [0x3d0f00], true), ("clone", [17], false), ("clone", [0x100 | 17], false),
            ("tgkill", [own, 7, 6], true), ("tgkill", [own + 1, 7, 6], false), ("tgkill", [0, 7, 6], false),
            ("prlimit64", [0, 3], true), ("prlimit64", [1, 3], false),
            ("ioctl", [1, 0x5401], true), ("ioctl", [1, 0x541b], true), ("ioctl", [1, 0x5412], false),
            ("prctl", [15], true), ("prctl", [29], true), ("prctl", [38], false), ("prctl", [4], false),
            ("prctl", [22], false), ("prctl", [24], false),
        ]
        for (name, arguments, isAllowed) in cases {
            let found = try outcome(architecture, number(name, architecture), arguments)
            #expect(found == (isAllowed ? Self.allow : Self.refuse), "\(name) \(arguments)")
        }
    }

    @Test("A program fits the kernel's limit of 4,096 instructions and jumps forward to instructions of its own")
    func shape() {
        for architecture in Architecture.allCases {
            let program = SystemCallFilter(for: architecture, ownProcess: process).program
            #expect(program.count <= 4096)
            for (place, step) in program.enumerated() where step.code & 7 == 5 {
                #expect(place + 1 + Int(max(step.whenTrue, step.whenFalse)) < program.count)
            }
        }
    }
}
#endif
