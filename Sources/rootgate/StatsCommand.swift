import Core
import Foundation
import Hashing
import Kernels
import LoadHarness
import RootgateClient
import Server
import Signatures

let statsCommand = Command(
    "stats", "show the service's figures", options: [.server, .timeout, .json]
) { arguments in
    let client = try connect(arguments)
    defer { client.close() }
    let figures = try await client.statistics()
    if arguments.isOn("json") {
        printNow(try json(Dictionary(uniqueKeysWithValues: figures.map { ($0.name, $0.value) })))
    } else {
        for (name, value) in figures {
            printNow("\(name.escapingControls.padding(toLength: 34, withPad: " ", startingAt: 0))\(value)")
        }
    }
    return .success
}
