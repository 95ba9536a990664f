import Foundation

/// Kinds of machines whose results are kept beside each other: by what verifies their signatures.
enum MachineKind: String, CaseIterable {
    case avx512ifma = "avx512-ifma"
    case openSSL = "openssl"

    /// What verifies signatures on such a machine.
    var description: String {
        switch self {
        case .avx512ifma: "vector kernels for AVX-512 IFMA"
        case .openSSL: "OpenSSL verifies signatures"
        }
    }

    /// The kind of a machine with these kernels.
    init(kernels: [String]) {
        self = kernels.contains { $0.hasPrefix("p256-avx512ifma") } ? .avx512ifma : .openSSL
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
