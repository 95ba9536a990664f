#if os(Linux)
import CLinux

/// A filter of system calls: a program in the kernel's classic BPF, made from a table. The kernel runs it before every
/// system call of a thread. For calls that are allowed whatever their arguments are, newer kernels remember the outcome
/// and don't run it.
struct SystemCallFilter {
    /// A call on both architectures.
    struct Call {
        let name: String
        let x86: UInt32?
        let arm: UInt32?

        init(_ name: String, _ x86: UInt32?, _ arm: UInt32?) {
            (self.name, self.x86, self.arm) = (name, x86, arm)
        }
    }

    /// Calls that are treated alike.
    struct Group {
        let reason: String
        let decision: Decision
        let calls: [Call]

        init(_ reason: String, _ decision: Decision, _ calls: [Call]) {
            (self.reason, self.decision, self.calls) = (reason, decision, calls)
        }
    }

    enum Decision: Equatable {
        case allow
        /// Allowed when one of the conditions holds, and refused otherwise.
        case allowWhen([Condition])
        /// Fails with ENOSYS, as on a kernel that does not have the call.
        case unsupported
        /// Ends the process.
        case kill
    }

    /// A condition on the lower 32 bits of an argument. The kernel itself reads no more of these arguments.
    struct Condition: Equatable {
        enum Value: Equatable {
            case number(UInt32)
            /// The number of the process that makes the filter.
            case ownProcess
        }

        /// From 0 to 5.
        let argument: Int
        /// Bits that are compared.
        let mask: UInt32
        let value: Value

        init(_ argument: Int, _ mask: UInt32, _ value: Value) {
            (self.argument, self.mask, self.value) = (argument, mask, value)
        }

        init(_ argument: Int, _ mask: UInt32, _ value: UInt32) {
            self.init(argument, mask, .number(value))
        }
    }

    enum Architecture: CaseIterable {
        case x86, arm

        /// AUDIT_ARCH_X86_64 and AUDIT_ARCH_AARCH64.
        var identifier: UInt32 { self == .x86 ? 0xc000_003e : 0xc000_00b7 }

        /// The architecture that this code is compiled for; `nil` when there is no table for it.
        static var own: Architecture? {
            #if arch(x86_64)
            .x86
            #elseif arch(arm64)
            .arm
            #else
            nil
            #endif
        }
    }

    /// One instruction of classic BPF.
    struct Instruction: Equatable {
        let code: UInt16
        /// How many instructions are skipped when a comparison holds, and when it does not.
        let whenTrue, whenFalse: UInt8
        let operand: UInt32
    }

    /// What a program returns, as the kernel has it.
    enum Outcome {
        static let allow: UInt32 = 0x7fff_0000
        static let killProcess: UInt32 = 0x8000_0000
        static func failure(_ number: CInt) -> UInt32 { 0x0005_0000 | UInt32(number) }
    }

    /// What the kernel tells a program: the number of the call, the architecture, and the lower halves of arguments.
    /// Both architectures are little-endian.
    private enum Offset {
        static let number: UInt32 = 0
        static let architecture: UInt32 = 4
        static func argument(_ index: Int) -> UInt32 { 16 + 8 * UInt32(index) }
    }

    private(set) var program: [Instruction] = []

    /// The filter for the processor's architecture `architecture` and the process `ownProcess`.
    init(_ groups: [Group] = SystemCallTable.groups, for architecture: Architecture, ownProcess: UInt32) {
        load(Offset.architecture)
        compare(.isEqual, architecture.identifier, whenTrue: 1, whenFalse: 0)
        finish(Outcome.killProcess)
        load(Offset.number)
        if architecture == .x86 {
            // The calls of x32, a second set of numbers for 32-bit pointers.
            compare(.isAtLeast, 0x4000_0000, whenTrue: 0, whenFalse: 1)
            finish(Outcome.killProcess)
        }
        for group in groups {
            for call in group.calls {
                guard let number = architecture == .x86 ? call.x86 : call.arm else { continue }
                append(number, group.decision, ownProcess: ownProcess)
            }
        }
        compare(.isAtLeast, SystemCallTable.newestNumber + 1, whenTrue: 0, whenFalse: 1)
        finish(Outcome.failure(ENOSYS))
        finish(Outcome.failure(EPERM))
    }

    /// Decides the call `number`, and goes on behind that for all others.
    private mutating func append(_ number: UInt32, _ decision: Decision, ownProcess: UInt32) {
        var body = SystemCallFilter()
        switch decision {
        case .allow: body.finish(Outcome.allow)
        case .unsupported: body.finish(Outcome.failure(ENOSYS))
        case .kill: body.finish(Outcome.killProcess)
        case .allowWhen(let conditions):
            for condition in conditions {
                body.load(Offset.argument(condition.argument))
                body.keep(condition.mask)
                let value = condition.value == .ownProcess ? ownProcess : condition.value.number
                body.compare(.isEqual, value, whenTrue: 0, whenFalse: 1)
                body.finish(Outcome.allow)
            }
            body.finish(Outcome.failure(EPERM))
        }
        compare(.isEqual, number, whenTrue: 0, whenFalse: UInt8(body.program.count))
        program += body.program
    }

    private init() {}

    private enum Comparison: UInt16 {
        // BPF_JMP | BPF_JEQ | BPF_K and BPF_JMP | BPF_JGE | BPF_K.
        case isEqual = 0x15
        case isAtLeast = 0x35
    }

    /// BPF_LD | BPF_W | BPF_ABS.
    private mutating func load(_ offset: UInt32) {
        program.append(Instruction(code: 0x20, whenTrue: 0, whenFalse: 0, operand: offset))
    }

    /// BPF_ALU | BPF_AND | BPF_K.
    private mutating func keep(_ mask: UInt32) {
        program.append(Instruction(code: 0x54, whenTrue: 0, whenFalse: 0, operand: mask))
    }

    private mutating func compare(_ comparison: Comparison, _ value: UInt32, whenTrue: UInt8, whenFalse: UInt8) {
        program.append(
            Instruction(code: comparison.rawValue, whenTrue: whenTrue, whenFalse: whenFalse, operand: value))
    }

    /// BPF_RET | BPF_K.
    private mutating func finish(_ outcome: UInt32) {
        program.append(Instruction(code: 0x06, whenTrue: 0, whenFalse: 0, operand: outcome))
    }

    /// Installs the filter for all threads of this process, and for those that they make. It can't be taken off. The
    /// calling thread must have given up new privileges.
    ///
    /// Throws when the kernel has no filters, or not what this one needs.
    func install() throws(SystemFailure) {
        guard has_filter_action(Outcome.killProcess) != 0 else { throw SystemFailure("seccomp") }
        let instructions = program.map {
            sock_filter(code: $0.code, jt: $0.whenTrue, jf: $0.whenFalse, k: $0.operand)
        }
        let outcome = install_filter(instructions, UInt16(instructions.count))
        guard outcome <= 0 else {
            throw SystemFailure("seccomp", number: EBUSY, reason: "thread \(outcome) can't have the filter")
        }
        guard outcome == 0 else { throw SystemFailure("seccomp") }
    }
}

extension SystemCallFilter.Condition.Value {
    /// The number; 0 for the own process, which is no number of the table.
    fileprivate var number: UInt32 {
        guard case .number(let number) = self else { return 0 }
        return number
    }
}
#endif
