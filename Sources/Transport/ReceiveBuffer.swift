import Core

/// Memory for received bytes. The loop fills it, and requests read their frames in it.
///
/// Each loop has one for all of its connections. A connection has one of its own while it holds a long frame that is
/// not finished; its bytes are charged until the last request has let go of it.
///
/// Sendable without the compiler's proof: the loop writes only behind `filled`, and readers read only before it.
package final class ReceiveBuffer: @unchecked Sendable {
    /// All bytes of the buffer, valid as long as this object.
    var storage: UnsafeMutableRawBufferPointer { memory.bytes }
    /// Number of bytes received so far. Only the loop uses it.
    var filled = 0
    private let memory: ScratchBuffer<UInt8>
    /// `nil`: the buffer is the loop's.
    private let account: MemoryAccount?
    private let charge: MemoryCharge

    /// The buffer of a loop.
    init() {
        memory = ScratchBuffer(uninitializedCount: Limits.receiveBufferBytes, alignment: 64)
        account = nil
        charge = MemoryCharge()
    }

    /// The buffer of a connection. It gives `charge` back to `account` at its end.
    init(capacity: Int, _ account: MemoryAccount, _ charge: MemoryCharge) {
        memory = ScratchBuffer(uninitializedCount: capacity, alignment: 64)
        self.account = account
        self.charge = charge
    }

    deinit {
        account?.giveBack(charge)
    }

    /// Whether a request may keep the buffer.
    fileprivate var mayBeKept: Bool { account != nil }

    /// A part of the received bytes, valid as long as this object, or until the handler that got the buffer returns
    /// when the buffer is the loop's.
    package func bytes(_ range: Range<Int>) -> UnsafeRawBufferPointer {
        UnsafeRawBufferPointer(rebasing: storage[range])
    }

    /// Bytes that keeping the frame at `range` takes besides those that are charged already.
    package func bytesToKeep(_ range: Range<Int>) -> Int { isCopied(range) ? range.count : 0 }

    fileprivate func isCopied(_ range: Range<Int>) -> Bool {
        !mayBeKept || range.count <= Limits.copiedFrameBytesMax
    }
}

/// The bytes of a received frame, which it copies out of a loop's buffer. For a long frame in a connection's own
/// buffer, this object keeps the buffer as long as it lives.
///
/// Sendable without the compiler's proof: nothing writes to the bytes after `init`.
package final class FrameBytes: @unchecked Sendable {
    private let buffer: ReceiveBuffer?
    /// The copied frame; empty when the buffer is kept.
    private let copy: ScratchBuffer<UInt8>
    /// The bytes of the frame. Their address does not change while this object lives.
    package let bytes: UnsafeRawBufferPointer

    package init(_ buffer: ReceiveBuffer, _ range: Range<Int>) {
        let received = buffer.bytes(range)
        let isCopied = buffer.isCopied(range)
        copy = ScratchBuffer(uninitializedCount: isCopied ? range.count : 0, alignment: 8)
        if isCopied {
            copy.bytes.copyMemory(from: received)
            (self.buffer, bytes) = (nil, UnsafeRawBufferPointer(copy.bytes))
        } else {
            (self.buffer, bytes) = (buffer, received)
        }
    }
}
