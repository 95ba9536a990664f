import Core
import Foundation
import LoadHarness
import Platform
import Server

let backupCommand = Command(
    "backup", "write everything that a service has stored to a file, while it runs",
    options: [
        Option("data", "DIR", "the service's data directory (required)"),
        Option("output", "FILE", "where to write the backup, a new file; -: standard output (required)"),
        Option("rate", "BYTES", "bytes a second at most (default: as fast as it goes)"), .json, .quiet,
    ]
) { arguments in
    let (directory, path) = (try arguments.required("data"), try arguments.required("output"))
    let rate = arguments.text("rate") == nil ? nil : try arguments.number("rate", in: 1024...1 << 40)
    if path == "-", isatty(STDOUT_FILENO) == 1 {
        throw UsageError("a backup is not for a terminal: let --output name a file, or redirect standard output")
    }
    let output = path == "-" ? nil : try UnfinishedFile(path)
    let progress = progressMeter(arguments)
    defer { progress.end() }
    let begun = ContinuousClock.now
    progress.begin("writing the backup", share: 0...1)
    let backup = try OfflineStorage.backUp(
        directory, to: output?.descriptor ?? STDOUT_FILENO, rate: rate,
        progress: { progress.show("", done: $0) })
    try output?.finish()
    progress.end()
    let seconds = (ContinuousClock.now - begun) / .seconds(1)
    let text =
        arguments.isOn("json")
        ? try json(
            summary(of: backup).merging(["bytes": backup.bytes, "seconds": seconds]) { _, new in new })
        : "backed up \(backup.collaborations) collaborations with \(backup.roots) root hashes, changes up to "
            + "\(backup.sequence), \(backup.bytes) bytes, in \(String(format: "%.3f", seconds)) s\n"
            + "SHA-256 \(backup.digest)"
    // Standard output has the backup.
    if path == "-" {
        if arguments.isOn("json") {
            try? FileHandle.standardError.write(contentsOf: Data((text + "\n").utf8))
        } else {
            for line in text.split(separator: "\n") { complain(String(line)) }
        }
    } else {
        printNow(text)
    }
    return .success
}

let restoreCommand = Command(
    "restore", operands: "BACKUP", operandsMax: 1,
    "make a new data directory from a backup (-: standard input)",
    options: [
        Option("data", "DIR", "the new directory; it does not exist yet, or is empty"),
        Option(
            "log", "DIR|BACKUP", isRepeatable: true,
            "a data directory or a later backup whose log has changes after the backup; several times, in order"),
        Option("until", "SEQUENCE", "with --log: the last change to restore (default: all in the logs)"),
        Option(switch: "check", "check the backup only, restore nothing"), .json, .quiet,
    ]
) { arguments in
    guard let path = arguments.operands.first else { throw UsageError("restore takes a backup") }
    let descriptor = path == "-" ? STDIN_FILENO : open(path, O_RDONLY | O_CLOEXEC)
    guard descriptor >= 0 else { throw FileFailure("read", path, SystemFailure("open")) }
    let progress = progressMeter(arguments)
    defer { progress.end() }
    let begun = ContinuousClock.now
    func seconds() -> Double { (ContinuousClock.now - begun) / .seconds(1) }
    if arguments.isOn("check") {
        if let other = ["data", "log", "until"].first(where: { arguments.isGiven($0) }) {
            throw UsageError("--check restores nothing, so it takes no --\(other)")
        }
        progress.begin("checking the backup")
        let backup = try OfflineStorage.checkBackup(descriptor)
        progress.end()
        if arguments.isOn("json") {
            // The collaborations are not counted.
            printNow(try json(summary(of: backup).filter { !["collaborations", "roots"].contains($0.key) }))
        } else {
            printNow(
                "the backup is whole: made at \(backup.date.formatted(.iso8601)), changes up to \(backup.sequence)\n"
                    + "SHA-256 \(backup.digest)")
        }
        return .success
    }
    let directory = try arguments.required("data")
    let until =
        arguments.text("until") == nil ? nil : try UInt64(arguments.number("until", in: 0...Int.max))
    progress.begin("restoring the backup", share: 0...1)
    let restored = try OfflineStorage.restore(
        descriptor, to: directory, logs: arguments.texts("log"), until: until,
        progress: { progress.show("", done: $0) })
    progress.end()
    let backup = restored.backup
    if arguments.isOn("json") {
        var object = summary(of: backup)
        object["restored"] = restored.sequence
        object["seconds"] = seconds()
        printNow(try json(object))
    } else {
        printNow(
            "restored \(backup.collaborations) collaborations with \(backup.roots) root hashes, changes up to "
                + "\(restored.sequence), in \(String(format: "%.3f", seconds())) s")
    }
    complain(
        "the backup was made at \(backup.date.formatted(.iso8601)): what was removed or revoked after change "
            + "\(restored.sequence) is back; see the handbook before clients reach the service")
    return .success
}

private func summary(of backup: OfflineStorage.Backup) -> [String: Any] {
    [
        "time": backup.date.formatted(.iso8601), "sequence": backup.sequence, "firstSequence": backup.firstSequence,
        "collaborations": backup.collaborations, "roots": backup.roots, "sha256": backup.digest.description,
    ]
}
