import CKernels
import Kernels
import Testing

struct KernelChoiceTests {
    private static let hashing: [Kernel] = {
        let functions = UnsafeMutablePointer<rg_sha256_functions>.allocate(capacity: 1)
        functions.initialize(to: rg_sha256_functions(width: 1, nodes: nil, messages: nil))
        return ["sha256-a", "sha256-b"].map { Kernel(name: $0, needs: .sha, sha256: functions) }
    }()
    private static let kernels = hashing + [Kernel(name: "p256-a", needs: .avx2), Kernel(name: "p256-b", needs: .neon)]

    private func choice(_ names: String) throws -> KernelChoice {
        try KernelChoice(names, features: [.sha, .avx2], kernels: Self.kernels)
    }

    @Test("One kernel of each kind can be chosen")
    func choices() throws {
        let both = try choice("sha256-b, p256-a")
        #expect(both[.hashing]?.name == "sha256-b" && both[.signatures]?.name == "p256-a")
        let one = try choice("p256-a")
        #expect(one[.hashing] == nil && one[.signatures]?.name == "p256-a")
        #expect(one.candidates(.signatures, with: []).map(\.name) == ["p256-a"])
        let hashing = Kernel.runnable(with: .detected).filter { $0.kind == .hashing }.map(\.name)
        #expect(one.candidates(.hashing, with: .detected).map(\.name) == hashing)
    }

    @Test(
        "A name that is unknown, can't run here, or is the second of its kind is refused with what can run",
        arguments: [
            ("p256-c", "p256-c", "sha256-a, sha256-b, p256-a"), ("p256-b", "p256-b", "sha256-a, sha256-b, p256-a"),
            ("", "", "p256-a"), ("p256-a,", "", "p256-a"), ("sha256-a,sha256-b", "sha256-b", "sha256-a are both"),
            ("p256-a,p256-a", "p256-a", "p256-a are both"),
        ])
    func refusals(names: String, name: String, part: String) throws {
        let error = #expect(throws: KernelChoice.NotRunnable.self) { try choice(names) }
        #expect(error?.name == name)
        #expect(error?.text.contains(part) == true, "\(error?.text ?? "")")
    }

    @Test("Where nothing can run, the refusal says so")
    func nothing() {
        let error = #expect(throws: KernelChoice.NotRunnable.self) {
            try KernelChoice("p256-a", features: [], kernels: Self.kernels)
        }
        #expect(error?.text.hasSuffix("none") == true)
    }
}
