import Core
import Foundation
import Hashing
import Kernels
import LoadHarness
import RootgateClient
import Server
import Signatures

let challengeCommand = Command(
    "challenge", "get challenges for devices to sign, in base64",
    options: [.server, .timeout, Option("count", "N", standard: "1", "how many"), .json]
) { arguments in
    let count = try arguments.number("count", in: 1...Limits.challengesPerRequestMax)
    let client = try connect(arguments)
    defer { client.close() }
    let issued = try await client.challenges(count)
    for challenge in issued.challenges {
        let text = Data(challenge).base64EncodedString()
        printNow(
            arguments.isOn("json")
                ? try json(["challenge": text, "validMilliseconds": issued.validMilliseconds]) : text)
    }
    return .success
}
