import Core

/// Requests that are ready to be sent, and the verdicts or statuses that they must get. The frames stand one behind the
/// other, so that one call sends several without a copy. A request's id is its position.
struct Workload: Sendable {
    private let frames: [UInt8]
    private let results: [UInt8]
    private let kinds: [LoadKind]
    /// Where each request's frame and expected results begin; one more entry each, for the end.
    private let frameStarts: [Int]
    private let resultStarts: [Int]

    init(_ requests: [LoadRequest]) {
        var frames: [UInt8] = []
        var results: [UInt8] = []
        frames.reserveCapacity(requests.reduce(0) { $0 + $1.frame.count })
        results.reserveCapacity(requests.reduce(0) { $0 + $1.expected.count })
        var frameStarts = [0]
        var resultStarts = [0]
        for (number, request) in requests.enumerated() {
            precondition(request.frame.count >= Limits.frameHeaderBytes, "a request has no header")
            let start = frames.count
            frames.append(contentsOf: request.frame)
            // The request id, the last 8 bytes of the header.
            withUnsafeBytes(of: UInt64(number).littleEndian) { id in
                for index in 0..<8 { frames[start + Limits.frameHeaderBytes - 8 + index] = id[index] }
            }
            results.append(contentsOf: request.expected)
            frameStarts.append(frames.count)
            resultStarts.append(results.count)
        }
        self.frames = frames
        self.results = results
        self.frameStarts = frameStarts
        self.resultStarts = resultStarts
        kinds = requests.map(\.kind)
    }

    var count: Int { frameStarts.count - 1 }

    /// Where the frames of `requests` are.
    func bytes(of requests: Range<Int>) -> Range<Int> {
        frameStarts[requests.lowerBound]..<frameStarts[requests.upperBound]
    }

    /// Calls `body` with the bytes in `range` of all frames. `body` must not keep them.
    func withFrames<R>(_ range: Range<Int>, _ body: (UnsafeRawBufferPointer) -> R) -> R {
        frames.withUnsafeBytes { body(UnsafeRawBufferPointer(rebasing: $0[range])) }
    }

    func kind(of number: Int) -> LoadKind { kinds[number] }

    /// Calls `body` with the results that request `number` must get. `body` must not keep them.
    func withResults<R>(of number: Int, _ body: (UnsafeRawBufferPointer) -> R) -> R {
        let range = resultStarts[number]..<resultStarts[number + 1]
        return results.withUnsafeBytes { body(UnsafeRawBufferPointer(rebasing: $0[range])) }
    }
}
