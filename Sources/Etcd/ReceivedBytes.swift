/// Bytes that have arrived and were not read yet. Each is looked at once for the end of a line.
struct ReceivedBytes {
    /// A line is longer than it may be.
    struct TooLong: Error {}

    private var bytes: [UInt8] = []
    /// Where the bytes begin that were not read.
    private var start = 0
    /// No line ends between the start and this place.
    private var searched = 0

    var isEmpty: Bool { start == bytes.count }

    mutating func append(_ more: some Collection<UInt8>) {
        if start > 0 {
            bytes.removeFirst(start)
            searched = max(0, searched - start)
            start = 0
        }
        bytes += more
    }

    /// Up to `count` bytes; `nil` when there are none.
    mutating func take(atMost count: Int) -> [UInt8]? {
        let end = min(bytes.count, start + count)
        guard end > start else { return nil }
        defer { start = end }
        return Array(bytes[start..<end])
    }

    /// The next line without its end; `nil` until it is there.
    mutating func line(bytesMax: Int) throws(TooLong) -> [UInt8]? {
        let end = bytes[max(start, searched)...].firstIndex(of: UInt8(ascii: "\n"))
        searched = end ?? bytes.count
        guard searched - start <= bytesMax else { throw TooLong() }
        guard let end else { return nil }
        var line = bytes[start..<end]
        if line.last == UInt8(ascii: "\r") { line.removeLast() }
        start = end + 1
        return Array(line)
    }
}
