import Core
import Foundation
import TestSupport

/// Something that reads bytes from outside, with the properties that hold for all bytes.
///
/// The same subjects run in two ways. The tests replay the seeds, the files of `Corpora` and random changes of both.
/// With `deploy/fuzz` libFuzzer chooses the bytes.
struct FuzzSubject: Sendable {
    /// The subject's folder in `Corpora`, and its name on the command line.
    let name: String
    /// The longest input that is worth trying.
    let bytesMax: Int
    /// Inputs that our own encoders make, and others that lead far into the code.
    let seeds: @Sendable () throws -> [[UInt8]]
    /// Reads the bytes and checks the properties. Throws a `Finding` when one does not hold; every other error that it
    /// throws is a finding, too.
    let run: @Sendable (UnsafeRawBufferPointer) throws -> Void

    init(
        _ name: String, bytesMax: Int, seeds: @escaping @Sendable () throws -> [[UInt8]],
        run: @escaping @Sendable (UnsafeRawBufferPointer) throws -> Void
    ) {
        self.name = name
        self.bytesMax = bytesMax
        self.seeds = seeds
        self.run = run
    }

    /// All subjects, in the order in which `deploy/fuzz` runs them.
    static let all: [FuzzSubject] = [
        FuzzedFrames.subject, FuzzedRequests.subject, FuzzedAnswers.subject, FuzzedSignatures.subject,
        FuzzedKeys.subject, FuzzedVerification.subject, FuzzedJSON.subject, FuzzedLayerRequests.subject,
        FuzzedLayerAnswers.subject, FuzzedLinks.subject, FuzzedTexts.subject, FuzzedProofLines.subject,
        FuzzedAudit.subject, FuzzedEdits.subject, FuzzedStorage.subject, FuzzedRecords.subject, FuzzedTokens.subject,
        FuzzedServerTLS.subject, FuzzedClientTLS.subject, FuzzedArguments.subject, FuzzedHTTP.subject,
        FuzzedBackups.subject, FuzzedEtcd.subject, FuzzedCluster.subject, FuzzedEtcdJSON.subject, FuzzedFiles.subject,
    ]

    /// The inputs in the subject's folder of `Corpora`, by names. A file has hexadecimal digits, and comments that
    /// begin with `#`. It is one input, but in the file `reached` each line is one.
    func corpus() throws -> [(name: String, bytes: [UInt8])] {
        let folder = FuzzSubject.corpora.appendingPathComponent(name)
        let names = (try? FileManager.default.contentsOfDirectory(atPath: folder.path)) ?? []
        return try names.sorted().flatMap { name -> [(name: String, bytes: [UInt8])] in
            let text = try String(contentsOf: folder.appendingPathComponent(name), encoding: .utf8)
            let lines = text.split(separator: "\n").map { $0.prefix { $0 != "#" }.filter { $0 != " " } }
            let inputs = name == reached ? lines.filter { !$0.isEmpty } : [lines.joined()]
            return try inputs.enumerated().map { place, digits -> (name: String, bytes: [UInt8]) in
                guard let bytes = [UInt8](hexadecimal: digits) else {
                    throw Finding("\(self.name)/\(name) is not hexadecimal")
                }
                return (inputs.count == 1 ? name : "\(name)-\(place + 1)", bytes)
            }
        }
    }

    /// The file of inputs that fuzzing has kept because they reach most of what all of them have reached.
    var reached: String { "\(name)-reached.hex" }

    static let corpora = URL(fileURLWithPath: #filePath).deletingLastPathComponent().appendingPathComponent("Corpora")
}

/// A property that does not hold.
struct Finding: Error, CustomStringConvertible {
    let description: String

    init(_ description: String) {
        self.description = description
    }
}

/// Throws a finding unless the property holds.
func demand(_ holds: Bool, _ property: @autoclosure () -> String) throws {
    guard holds else { throw Finding(property()) }
}

/// Reads the parts of an input, little-endian. Shares no code with what is tested.
struct InputParts {
    private(set) var rest: ArraySlice<UInt8>

    init(_ bytes: some Collection<UInt8>) {
        rest = Array(bytes)[...]
    }

    var isAtEnd: Bool { rest.isEmpty }

    /// A number of so many bytes; `nil` behind the end.
    mutating func number(_ count: Int) -> UInt64? {
        take(count)?.reversed().reduce(0) { $0 << 8 | UInt64($1) }
    }

    /// The next bytes; `nil` when there are fewer.
    mutating func take(_ count: Int) -> [UInt8]? {
        guard count >= 0, rest.count >= count else { return nil }
        defer { rest = rest.dropFirst(count) }
        return Array(rest.prefix(count))
    }

    /// Bytes behind a byte of length.
    mutating func short() -> [UInt8]? { number(1).flatMap { take(Int($0)) } }
}

/// The bytes that `append` appends.
func appended(_ append: (inout [UInt8]) throws -> Void) rethrows -> [UInt8] {
    var bytes: [UInt8] = []
    try append(&bytes)
    return bytes
}
