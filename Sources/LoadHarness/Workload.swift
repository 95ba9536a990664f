import Core

/// Requests that are ready to be sent, and the verdicts that they must get. The frames stand one behind the other, so
/// that one call sends several without a copy. A request's id is its position.
struct Workload: Sendable {
    private let frames: [UInt8]
    private let verdicts: [UInt8]
    /// Where each request's frame and verdicts begin; one more entry each, for the end.
    private let frameStarts: [Int]
    private let verdictStarts: [Int]

    init(_ requests: [LoadRequest]) {
        var frames: [UInt8] = []
        var verdicts: [UInt8] = []
        frames.reserveCapacity(requests.reduce(0) { $0 + $1.frame.count })
        verdicts.reserveCapacity(requests.reduce(0) { $0 + $1.expected.count })
        var frameStarts = [0]
        var verdictStarts = [0]
        for (number, request) in requests.enumerated() {
            precondition(request.frame.count >= Limits.frameHeaderBytes, "a request has no header")
            let start = frames.count
            frames.append(contentsOf: request.frame)
            // The request id, the last 8 bytes of the header.
            withUnsafeBytes(of: UInt64(number).littleEndian) { id in
                for index in 0..<8 { frames[start + Limits.frameHeaderBytes - 8 + index] = id[index] }
            }
            verdicts.append(contentsOf: request.expected.lazy.map(\.rawValue))
            frameStarts.append(frames.count)
            verdictStarts.append(verdicts.count)
        }
        self.frames = frames
        self.verdicts = verdicts
        self.frameStarts = frameStarts
        self.verdictStarts = verdictStarts
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

    /// Calls `body` with the verdicts that request `number` must get. `body` must not keep them.
    func withVerdicts<R>(of number: Int, _ body: (UnsafeRawBufferPointer) -> R) -> R {
        let range = verdictStarts[number]..<verdictStarts[number + 1]
        return verdicts.withUnsafeBytes { body(UnsafeRawBufferPointer(rebasing: $0[range])) }
    }
}
