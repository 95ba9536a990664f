import Core
import Foundation
import Hashing
import Kernels
import LoadHarness
import RootgateClient
import Server
import Signatures

let versionCommand = Command(
    "version", "show the version",
    options: [
        Option("kernel", "NAME,...", "with --json: kernels to use (default: the quickest)"), .json,
    ]
) { arguments in
    let features = ProcessorFeatures.permitted
    KernelChoice.current = try KernelChoice(arguments)
    if arguments.isOn("json") {
        let engine = SignatureEngine(SignatureEngine.Configuration())
        let (signatures, hashing) = (engine.kernelNames, BatchHashing.standard.kernelNames)
        let rates = (engine.kernelRates + BatchHashing.standard.rates).map { rate in
            [
                "name": rate.name, "work": rate.work.rawValue, "perSecond": Int(rate.perSecond), "batches": rate.sizes,
            ] as [String: Any]
        }
        printNow(
            try json([
                "version": Service.version, "protocol": 1,
                "cpu": ProcessorFeatures.names.filter { !$0.features.isEmpty && features.isSuperset(of: $0.features) }
                    .map(\.name),
                "signatures": signatures.isEmpty ? ["openssl"] : signatures,
                "hashing": hashing.isEmpty ? ["openssl"] : hashing, "rates": rates,
            ]))
    } else {
        printNow("rootgate \(Service.version)")
    }
    return .success
}
