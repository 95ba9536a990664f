import Core
import Foundation
import Hashing
import Kernels
import LoadHarness
import RootgateClient
import Server
import Signatures

let versionCommand = Command("version", "show the version", options: [.json]) { arguments in
    let features = ProcessorFeatures.permitted
    let signatures = SignatureEngine(SignatureEngine.Configuration()).kernelNames
    let hashing = BatchHashing.standard.kernelNames
    if arguments.isOn("json") {
        printNow(
            try json([
                "version": Service.version, "protocol": 1,
                "cpu": ProcessorFeatures.names.filter { !$0.features.isEmpty && features.isSuperset(of: $0.features) }
                    .map(\.name),
                "signatures": signatures.isEmpty ? ["openssl"] : signatures,
                "hashing": hashing.isEmpty ? ["openssl"] : hashing,
            ]))
    } else {
        printNow("rootgate \(Service.version)")
    }
    return .success
}
