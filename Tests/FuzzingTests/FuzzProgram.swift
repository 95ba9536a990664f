import Core
import Foundation

/// What the bundle of the tests does when deploy/fuzz runs it, with ROOTGATE_TEST_FUZZING set: libFuzzer chooses the
/// bytes.
///
///     --list               prints the names of the subjects
///     --seeds FOLDER       writes the seeds and the corpora as files, a folder for each subject
///     --hexadecimal FILE   prints a file in the form of the corpora
///     [options and folders of libFuzzer]   fuzzes the subject that ROOTGATE_TEST_SUBJECT names
enum FuzzProgram {
    /// Written once, before libFuzzer starts. libFuzzer calls back from this thread.
    private nonisolated(unsafe) static var subject: FuzzSubject?

    fileprivate static func main() throws {
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

    fileprivate static func say(_ line: String) {
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

/// The entry of the bundle instead of the tests' (`--wrap` of the linker).
@_cdecl("__wrap_main")
func fuzzOrTest(_ count: CInt, _ words: UnsafeMutablePointer<UnsafeMutablePointer<CChar>?>?) -> CInt {
    guard ProcessInfo.processInfo.environment["ROOTGATE_TEST_FUZZING"] != nil else { return runTests(count, words) }
    do {
        try FuzzProgram.main()
        return 0
    } catch {
        FuzzProgram.say("\(error)")
        return 1
    }
}

/// The tests' own entry.
@_silgen_name("__real_main")
private func runTests(_ count: CInt, _ words: UnsafeMutablePointer<UnsafeMutablePointer<CChar>?>?) -> CInt

/// libFuzzer's entry for programs with a `main` of their own. It takes pointers and a function, which Swift and C pass
/// in the same way.
@_silgen_name("LLVMFuzzerRunDriver")
private func runLibFuzzer(
    _ count: UnsafeMutablePointer<CInt>,
    _ words: UnsafeMutablePointer<UnsafeMutablePointer<UnsafeMutablePointer<CChar>?>?>,
    _ tryOne: @convention(c) (UnsafePointer<UInt8>?, Int) -> CInt
) -> CInt
