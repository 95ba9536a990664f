import Core
import Foundation
import Secrets

/// Where the secret is.
let secretFileOptions = [
    Option("data", "DIR", "the service's data directory, whose secret is meant"),
    Option("secret-file", "FILE", "a file with a secret instead"),
]

/// How a secret is rotated, unless a fresh generation is used at once.
let rotationOptions = [
    Option(
        switch: "prepare",
        "rotate-secret: only accept the fresh generation, until every service that shares the file has read it"),
    Option(switch: "use-prepared", "rotate-secret: use the prepared generation; the one before stays valid"),
    Option(
        switch: "drop-previous",
        "rotate-secret: make everything invalid that was authenticated before, as when the secret has leaked"),
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

/// `rootgate keys rotate-secret`: adds a fresh generation, and makes the file when it is missing. Or does one step of a
/// rotation in steps: prepares a generation, or uses the prepared one.
func rotateSecret(_ arguments: Arguments) throws -> ExitCode {
    let file = try secretFile(arguments)
    let given = rotationOptions.map(\.name).filter { arguments.isOn($0) }
    guard given.count <= 1 else { throw UsageError("--\(given[0]) and --\(given[1]) exclude each other") }
    if let step = given.first, step != "drop-previous", arguments.text("secret-file") == nil {
        throw UsageError("--\(step) is for a file that several services share: name it with --secret-file")
    }
    let now = UInt64(max(0, Date().timeIntervalSince1970 * 1000))
    do throws(SecretFailure) {
        switch given.first {
        case "prepare": tell(try file.prepare(at: now), of: file, at: now)
        case "use-prepared": tell(try file.usePrepared(at: now), of: file, at: now)
        default: tell(try file.rotate(at: now, dropsPrevious: given.first != nil), of: file, at: now)
        }
    } catch {
        complain("\(error)")
        return .failure
    }
    complain("a running service takes it when it gets the signal SIGHUP")
    switch given.first {
    case "prepare": complain("when every service has read the file: rotate-secret --use-prepared")
    case "use-prepared":
        complain("let every service read the file within \(Limits.secretSpreadSeconds / 3600) hours")
    default: break
    }
    return .success
}

/// Prints which generations a file has, and for how long.
private func tell(_ secret: RootSecret, of file: SecretFile, at now: UInt64) {
    printNow("generation \(secret.current.name) is the present one in \(file.path)")
    if let previous = secret.previous {
        let hours = (secret.previousEnd - now) / 3_600_000
        printNow("generation \(previous.name) stays valid for \(hours) hours")
    } else if let next = secret.next {
        printNow("generation \(next.name) is prepared: it is valid, and not used yet")
    } else {
        printNow("no other generation is valid")
    }
}
