import Core
import Foundation
import RootSets
import TestSupport

/// Cuts the power of a storage in use, again and again, and compares what is left with a model:
///
///     PowerCuts COUNT SEED [--ignore-syncs]
///
/// A storage is used, and all that it writes and makes durable is recorded. From a recording images of the disk are
/// made: at any moment, with any part of the writes that were not durable yet (`DiskImage`). Each image is opened. What
/// was acknowledged before that moment must be there, nothing that was not sent, each change whole, and the change log
/// without a gap; then the storage must take a change. The last image of a recording is the storage of the next one.
///
/// With `--ignore-syncs` the disk says that it is done when it is not: then much must be lost.
///
/// Ends with 0 when nothing is wrong, or with 1, or with 2 when an argument is missing, wrong or too many. The folder
/// is made in `TMPDIR`.
@main
enum PowerCuts {
    static func main() throws {
        var words = Array(CommandLine.arguments.dropFirst())
        let ignoresSyncs = words.last == "--ignore-syncs"
        if ignoresSyncs { words.removeLast() }
        guard words.count == 2, let count = Int(words[0]), count >= 1, let seed = UInt64(words[1]) else {
            FileHandle.standardError.write(Data("usage: PowerCuts COUNT SEED [--ignore-syncs]\n".utf8))
            exit(2)
        }
        let scratch = ScratchDirectory()
        var trials = try CutTrials(folder: scratch.path, seed: seed, ignoresSyncs: ignoresSyncs)
        try trials.run(count)
        print(trials)
        fflush(nil)
        exit(trials.wrong == 0 ? 0 : 1)
    }
}
