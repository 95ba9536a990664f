import Kernels
import LoadHarness
import Signatures

let selfTestCommand = Command(
    "selftest", "compare the signature kernels with OpenSSL",
    options: [
        Option("count", "N", standard: "100000", "signatures, random and spoiled, that both verify"),
        Option("seed", "N", standard: "1", "where the random numbers begin"),
        Option("kernel", "NAME", "one kernel (default: all that run here)"),
        .quiet, .json,
    ]
) { arguments in
    let count = try arguments.number("count", in: 1...1_000_000_000)
    let seed = try arguments.number("seed", in: 0...Int.max)
    // ROOTGATE_CPU does not matter here: kernels that are not used can be compared, too.
    let kernel = try KernelChoice(arguments, features: .detected)[.signatures]
    if kernel == nil, let names = arguments.text("kernel") {
        throw UsageError("--kernel \(names.escapingControls) has no kernel for signatures")
    }
    let progress = progressMeter(arguments)
    defer { progress.end() }
    progress.begin("comparing \(count) signatures", share: 0...1)
    let result = KernelTrial.run(kernel: kernel?.name, count: count, seed: UInt64(seed)) { state in
        progress.show(state.text, done: Double(state.checked) / Double(count))
    }
    progress.end()
    if arguments.isOn("json") {
        printNow(
            try json([
                "checked": result.checked, "disagreements": result.disagreements, "undecided": result.undecided,
                "first": result.firstDisagreement ?? "",
            ]))
    } else {
        printNow(
            "\(result.checked) checked, \(result.disagreements) disagreements, \(result.undecided) left to OpenSSL")
        if let first = result.firstDisagreement { complain(first) }
    }
    if result.checked == 0 { return .failure }
    return result.disagreements == 0 ? .success : .refused
}
