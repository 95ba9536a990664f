import Core
import Foundation
import Secrets

/// Where the secret is.
let secretFileOptions = [
    Option("data", "DIR", "the service's data directory, whose secret is meant"),
    Option("secret-file", "FILE", "a file with a secret instead"),
]

/// The file with the secret that the arguments name.
///
/// Throws a `UsageError` unless exactly one is named.
func secretFile(_ arguments: Arguments) throws -> SecretFile {
    switch (arguments.text("data"), arguments.text("secret-file")) {
    case (let directory?, nil): return SecretFile(dataDirectory: directory)
    case (nil, let path?): return SecretFile(path: path)
    default: throw UsageError("either --data or --secret-file is needed")
    }
}

/// `rootgate keys rotate-secret`: adds a fresh generation, and makes the file when it is missing.
func rotateSecret(_ arguments: Arguments) throws -> ExitCode {
    let file = try secretFile(arguments)
    let now = UInt64(max(0, Date().timeIntervalSince1970 * 1000))
    do throws(SecretFailure) {
        let secret = try file.rotate(at: now, dropsPrevious: arguments.isOn("drop-previous"))
        printNow("generation \(secret.current.name) is the present one in \(file.path)")
        if let previous = secret.previous {
            printNow("generation \(previous.name) stays valid for \(Limits.validitySecondsMax / 3600) hours")
        } else {
            printNow("no other generation is valid")
        }
    } catch {
        complain("\(error)")
        return .failure
    }
    complain("a running service takes it when it gets the signal SIGHUP")
    return .success
}
