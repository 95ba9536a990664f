import Foundation

/// Kinds of machines whose results are kept beside each other: by what verifies their signatures.
enum MachineKind: String, CaseIterable {
    case avx512ifma = "avx512-ifma"
    case avx512ifmaInHalves = "avx512-ifma-halves"
    case avx512fma = "avx512-fma"
    case avx2
    case neon
    case portable
    case openSSL = "openssl"

    /// What verifies signatures on such a machine.
    var description: String {
        switch self {
        case .avx512ifma: "vector kernels for AVX-512 IFMA"
        case .avx512ifmaInHalves: "vector kernels for AVX-512 IFMA, on a processor that computes 256 bits at a time"
        case .avx512fma: "vector kernels for AVX-512 without IFMA"
        case .avx2: "vector kernels for AVX2"
        case .neon: "vector kernels for NEON"
        case .portable: "kernels in portable C"
        case .openSSL: "OpenSSL verifies signatures"
        }
    }

    /// The kind of a machine with these kernels: by the widest vectors among them, and by `processor` where that
    /// computes such vectors in two halves.
    init(kernels: [String], processor: String = Machine.processor) {
        let widest =
            MachineKind.allCases.first { kind in
                let prefix = "p256-" + kind.rawValue.filter { $0 != "-" }
                return kind != .openSSL && kernels.contains { $0.hasPrefix(prefix) }
            } ?? .openSSL
        // AMD's Zen 4; Zen 3, of the same family, has no such instructions.
        let isInHalves = processor.hasPrefix("AMD ") && processor.contains("(family 25,")
        self = widest == .avx512ifma && isInHalves ? .avx512ifmaInHalves : widest
    }

    /// Where the results of such machines are, below the repository's folder.
    var folder: String { "Benchmarks/results/\(rawValue)" }
}

/// The results of one kind of machine.
struct MachineResults {
    let kind: MachineKind
    let document: ResultsDocument

    /// Of the document, below the repository's folder.
    var path: String { "\(kind.folder)/RESULTS.md" }

    /// The results that a repository has, in the order of the kinds.
    static func all(in repository: URL) -> [MachineResults] {
        MachineKind.allCases.compactMap { kind in
            let file = repository.appendingPathComponent("\(kind.folder)/RESULTS.md")
            guard let text = try? String(contentsOf: file, encoding: .utf8) else { return nil }
            return MachineResults(kind: kind, document: ResultsDocument(parsing: text))
        }
    }
}
