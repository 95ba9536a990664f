import Core
import Transport
import Wire

extension FrameScanner {
    /// Calls `take` with every whole answer or error that was received, and its body.
    static func eachAnswer(
        _ buffer: ReceiveBuffer, _ range: Range<Int>, _ take: (FrameHeader, UnsafeRawBufferPointer) -> Void,
        orElse violated: (ServiceError) -> Void
    ) -> Transport.Progress {
        var start = range.lowerBound
        while true {
            switch scan(buffer.bytes(start..<range.upperBound), expecting: [.answer, .error]) {
            case .incomplete(let frameBytes):
                return Transport.Progress(consumed: start - range.lowerBound, nextFrameBytes: frameBytes)
            case .violation(let error, _):
                violated(error)
                return Transport.Progress(consumed: range.count, nextFrameBytes: 0)
            case .frame(let header):
                let end = start + Limits.frameHeaderBytes + header.bodyLength
                take(header, buffer.bytes(start + Limits.frameHeaderBytes..<end))
                start = end
            }
        }
    }
}
