import Foundation
import Hashing

// Runs the service in a simulated world, seed after seed:
//
//     Simulation [--seed N] [--count N] [--steps N] [--seconds N] [--twice]
//
// --seed: the first seed (default: a random one). --count: how many seeds (default 1; with --seconds, as many as there
// is time for). --steps: steps of each (default 8000). --twice: runs each seed again, and compares the traces.
// Prints a failing seed with what went wrong, and ends with status 1. An argument that is wrong, or there twice, gets a
// line on standard error and status 2.

Libcrypto.stayUntilExit()

// The order of sets and dictionaries belongs to the run. The library decides that it is fixed before the first line.
if ProcessInfo.processInfo.environment["SWIFT_DETERMINISTIC_HASHING"] == nil {
    setenv("SWIFT_DETERMINISTIC_HASHING", "1", 1)
    let path = Bundle.main.executablePath ?? CommandLine.arguments[0]
    var arguments: [UnsafeMutablePointer<CChar>?] = CommandLine.arguments.map { strdup($0) } + [nil]
    execv(path, &arguments)
    fatalError("the program can't start itself again")
}

exit(SimulationCommand(Array(CommandLine.arguments.dropFirst())).run())
