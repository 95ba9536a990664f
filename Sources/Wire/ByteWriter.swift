import Core

/// Writes little-endian integers and bytes one after the other to memory whose size was computed before. Writing more
/// than it holds traps.
struct ByteWriter {
    private let memory: UnsafeMutableRawBufferPointer
    private(set) var count = 0

    init(_ memory: UnsafeMutableRawBufferPointer) {
        self.memory = memory
    }

    private mutating func reserve(_ bytes: Int) -> UnsafeMutableRawBufferPointer {
        precondition(bytes <= memory.count - count, "more is written than was computed")
        defer { count += bytes }
        return UnsafeMutableRawBufferPointer(rebasing: memory[count..<count + bytes])
    }

    mutating func append(_ byte: UInt8) { reserve(1)[0] = byte }
    mutating func append(_ value: UInt16) { reserve(2).storeBytes(of: value.littleEndian, as: UInt16.self) }
    mutating func append(_ value: UInt64) { reserve(8).storeBytes(of: value.littleEndian, as: UInt64.self) }

    mutating func append(_ bytes: [UInt8]) {
        bytes.withUnsafeBytes { reserve($0.count).copyMemory(from: $0) }
    }

    mutating func append(_ digests: [Digest]) {
        digests.withUnsafeBytes { reserve($0.count).copyMemory(from: $0) }
    }
}
