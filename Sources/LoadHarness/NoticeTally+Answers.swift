import Core
import Transport
import Wire

extension NoticeTally {
    /// Calls `take` with every whole answer or error that was received, and its body. A frame that can't be read fails
    /// the run and closes the connection.
    func forEachAnswer(
        in bytes: UnsafeRawBufferPointer, on connection: Connection,
        _ take: (FrameHeader, UnsafeRawBufferPointer) -> Void
    ) -> Transport.Progress {
        var frames = FrameReader(bytes, expecting: [.answer, .error])
        while let frame = frames.next() { take(frame.header, frame.body) }
        if let violation = frames.violation {
            fail(violation.error)
            connection.close()
        }
        return Transport.Progress(consumed: frames.consumed, nextFrameBytes: frames.nextFrameBytes)
    }
}
