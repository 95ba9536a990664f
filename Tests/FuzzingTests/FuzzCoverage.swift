import Foundation

/// The program's counters of coverage, and which of them libFuzzer gets to know.
///
/// libFuzzer reads all counters after each input, and the program has 400,000 of them. That took half of the time of a
/// small subject. So it gets those that the inputs reach with which it begins, and those of the code around them.
enum FuzzCoverage {
    /// Counters that are taken together, and how many such pieces around one that is reached.
    private static let pieceCount = 512
    private static let piecesAround = 4

    /// A counter for each place of the program.
    ///
    /// Both are written once, before `main`, by the constructors that the compiler adds.
    fileprivate nonisolated(unsafe) static var counters: UnsafeMutableBufferPointer<UInt8>?
    /// Two words for each place: its address, and whether a function begins there.
    fileprivate nonisolated(unsafe) static var places: UnsafeMutableBufferPointer<UInt>?

    /// Runs the subject with the files of the folders, and tells libFuzzer of the counters around those that count.
    /// Returns how many these are.
    ///
    /// Throws what the subject throws, and when a folder can't be read.
    static func begin(_ subject: FuzzSubject, with folders: [String]) throws -> Int {
        guard let counters, let places, places.count == 2 * counters.count else { return 0 }
        counters.update(repeating: 0)
        for folder in folders {
            for name in try FileManager.default.contentsOfDirectory(atPath: folder) {
                let input = try Data(contentsOf: URL(fileURLWithPath: folder).appendingPathComponent(name))
                try Array(input.prefix(subject.bytesMax)).withUnsafeBytes { try subject.run($0) }
            }
        }
        var count = 0
        for range in ranges(counters) {
            addCounters(
                counters.baseAddress.map { $0 + range.lowerBound }, counters.baseAddress.map { $0 + range.upperBound })
            addPlaces(
                places.baseAddress.map { $0 + 2 * range.lowerBound },
                places.baseAddress.map { $0 + 2 * range.upperBound })
            count += range.count
        }
        return count
    }

    /// The parts of the counters that are around those that are not zero.
    private static func ranges(_ counters: UnsafeMutableBufferPointer<UInt8>) -> [Range<Int>] {
        var ranges: [Range<Int>] = []
        for start in stride(from: 0, to: counters.count, by: pieceCount) {
            let piece = start..<min(counters.count, start + pieceCount)
            guard counters[piece].contains(where: { $0 != 0 }) else { continue }
            let around = piecesAround * pieceCount
            let first = max(ranges.last?.upperBound ?? 0, max(around, piece.lowerBound) - around)
            let range = first..<max(first, min(counters.count, piece.upperBound + around))
            if let last = ranges.last, last.upperBound == range.lowerBound {
                ranges[ranges.count - 1] = last.lowerBound..<range.upperBound
            } else {
                ranges.append(range)
            }
        }
        return ranges
    }
}

/// What the constructors call instead of libFuzzer's function (`--wrap` of the linker).
@_cdecl("__wrap___sanitizer_cov_8bit_counters_init")
func keepCounters(_ start: UnsafeMutablePointer<UInt8>?, _ end: UnsafeMutablePointer<UInt8>?) {
    guard let start, let end else { return }
    FuzzCoverage.counters = UnsafeMutableBufferPointer(start: start, count: end - start)
}

/// What the constructors call instead of libFuzzer's function (`--wrap` of the linker).
@_cdecl("__wrap___sanitizer_cov_pcs_init")
func keepPlaces(_ start: UnsafeMutablePointer<UInt>?, _ end: UnsafeMutablePointer<UInt>?) {
    guard let start, let end else { return }
    FuzzCoverage.places = UnsafeMutableBufferPointer(start: start, count: end - start)
}

/// libFuzzer's own function.
@_silgen_name("__real___sanitizer_cov_8bit_counters_init")
private func addCounters(_ start: UnsafeMutablePointer<UInt8>?, _ end: UnsafeMutablePointer<UInt8>?)

/// libFuzzer's own function.
@_silgen_name("__real___sanitizer_cov_pcs_init")
private func addPlaces(_ start: UnsafeMutablePointer<UInt>?, _ end: UnsafeMutablePointer<UInt>?)
