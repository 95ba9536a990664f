import Core
import Foundation

/// The program in which libFuzzer chooses the bytes; deploy/fuzz builds and runs it.
///
///     rootgate-fuzz --list               prints the names of the subjects
///     rootgate-fuzz --seeds FOLDER       writes the seeds and the corpora as files, a folder for each subject
///     rootgate-fuzz --hexadecimal FILE   prints a file in the form of the corpora
///     ROOTGATE_TEST_SUBJECT=NAME rootgate-fuzz [options and folders of libFuzzer]
@main
enum FuzzProgram {
    /// Written once, before libFuzzer starts. libFuzzer calls back from this thread.
    private nonisolated(unsafe) static var subject: FuzzSubject?

    static func main() throws {
        let arguments = CommandLine.arguments
        let name = ProcessInfo.processInfo.environment["ROOTGATE_TEST_SUBJECT"] ?? ""
        switch arguments.dropFirst().first {
        case "--list": print(FuzzSubject.all.map(\.name).joined(separator: "\n"))
        case "--seeds" where arguments.count == 3: try writeSeeds(to: arguments[2])
        case "--hexadecimal" where arguments.count == 3: try printHexadecimal(of: arguments[2])
        default:
            guard let chosen = FuzzSubject.all.first(where: { $0.name == name }) else {
                say("ROOTGATE_TEST_SUBJECT is no subject: “\(name)”")
                exit(2)
            }
            subject = chosen
            let folders = arguments.dropFirst().filter { !$0.hasPrefix("-") }
            var isFolder: ObjCBool = false
            let existing = folders.filter {
                FileManager.default.fileExists(atPath: $0, isDirectory: &isFolder) && isFolder.boolValue
            }
            say("\(try FuzzCoverage.begin(chosen, with: existing)) counters are looked at")
            exit(run(arguments + ["-max_len=\(chosen.bytesMax)"]))
        }
    }

    private static func say(_ line: String) {
        FileHandle.standardError.write(Data((line + "\n").utf8))
    }

    private static func run(_ arguments: [String]) -> CInt {
        var count = CInt(arguments.count)
        // libFuzzer keeps the arguments as long as the process lives.
        var words: [UnsafeMutablePointer<CChar>?] = arguments.map { strdup($0) } + [nil]
        return words.withUnsafeMutableBufferPointer { words in
            var start = words.baseAddress
            return runLibFuzzer(&count, &start) { bytes, count in
                FuzzProgram.tryOne(UnsafeRawBufferPointer(start: bytes, count: count))
                return 0
            }
        }
    }

    /// Ends the process when the subject finds something, so that libFuzzer keeps the input.
    private static func tryOne(_ input: UnsafeRawBufferPointer) {
        do {
            try subject?.run(input)
        } catch {
            say("FINDING: \(error)")
            abort()
        }
    }

    private static func writeSeeds(to folder: String) throws {
        for subject in FuzzSubject.all {
            let place = URL(fileURLWithPath: folder).appendingPathComponent(subject.name)
            try FileManager.default.createDirectory(at: place, withIntermediateDirectories: true)
            for (index, seed) in try subject.seeds().enumerated() {
                try Data(seed).write(to: place.appendingPathComponent("seed-\(index)"))
            }
            for (name, bytes) in try subject.corpus() { try Data(bytes).write(to: place.appendingPathComponent(name)) }
        }
    }

    private static func printHexadecimal(of path: String) throws {
        let bytes = Array(try Data(contentsOf: URL(fileURLWithPath: path)))
        for start in stride(from: 0, to: bytes.count, by: 32) {
            print(bytes[start..<min(start + 32, bytes.count)].map { [$0].hexadecimal }.joined(separator: " "))
        }
    }
}

/// libFuzzer's entry for programs with a `main` of their own. It takes pointers and a function, which Swift and C pass
/// in the same way.
@_silgen_name("LLVMFuzzerRunDriver")
private func runLibFuzzer(
    _ count: UnsafeMutablePointer<CInt>,
    _ words: UnsafeMutablePointer<UnsafeMutablePointer<UnsafeMutablePointer<CChar>?>?>,
    _ tryOne: @convention(c) (UnsafePointer<UInt8>?, Int) -> CInt
) -> CInt
