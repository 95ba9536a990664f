import Core
import Synchronization

/// Memory for received bytes. The loop fills it, and requests read their frames in it.
///
/// Sendable without the compiler's proof: the loop writes only behind `filled`, and readers read only before it.
package final class ReceiveBuffer: @unchecked Sendable {
    /// All bytes of the buffer, valid as long as this object.
    var storage: UnsafeMutableRawBufferPointer { memory.buffer.bytes }
    /// Number of bytes received so far. Only the loop uses it.
    var filled = 0
    private let memory: ReceiveMemory
    private let pool: ReceiveBufferPool

    fileprivate init(_ memory: ReceiveMemory, _ pool: ReceiveBufferPool) {
        self.memory = memory
        self.pool = pool
    }

    deinit {
        pool.take(back: memory)
    }

    /// A part of the received bytes, valid as long as this object.
    package func bytes(_ range: Range<Int>) -> UnsafeRawBufferPointer {
        UnsafeRawBufferPointer(rebasing: storage[range])
    }
}

/// Memory that the pool reuses for one receive buffer after another.
///
/// Sendable without the compiler's proof: either the pool or one buffer holds it. The pool hands it to a buffer under
/// its lock.
private final class ReceiveMemory: @unchecked Sendable {
    let buffer: ScratchBuffer<UInt8>
    var byteCount: Int { buffer.count }

    init(byteCount: Int) {
        buffer = ScratchBuffer(uninitializedCount: byteCount, alignment: 64)
    }
}

/// The bytes of a received frame. A short frame is copied, so that the large receive buffer can be reused at once. For
/// a longer frame, this object keeps the receive buffer as long as it lives.
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
        let isCopied = range.count <= Limits.copiedFrameBytesMax
        copy = ScratchBuffer(uninitializedCount: isCopied ? range.count : 0, alignment: 8)
        if isCopied {
            copy.bytes.copyMemory(from: received)
            (self.buffer, bytes) = (nil, UnsafeRawBufferPointer(copy.bytes))
        } else {
            (self.buffer, bytes) = (buffer, received)
        }
    }
}

/// Makes receive buffers, reuses free ones, and limits the bytes of all buffers together.
package final class ReceiveBufferPool: Sendable {
    private struct State {
        var free: [ReceiveMemory] = []
        /// Bytes of the buffers in use and of those in `free`.
        var liveBytes = 0
    }

    private let state = Mutex(State())
    private let bytesMax: Int

    /// `bytesMax`: the most bytes of all buffers together.
    package init(bytesMax: Int) {
        self.bytesMax = bytesMax
    }

    /// Returns a buffer of at least `capacity` bytes; `nil` when all buffers together would exceed the limit.
    func buffer(capacity: Int) -> ReceiveBuffer? {
        let found = state.withLock { state -> ReceiveMemory? in
            let wanted = max(capacity, Limits.receiveBufferBytes)
            if wanted == Limits.receiveBufferBytes, let free = state.free.popLast() { return free }
            while state.liveBytes + wanted > bytesMax, let free = state.free.popLast() {
                state.liveBytes -= free.byteCount
            }
            guard state.liveBytes + wanted <= bytesMax else { return nil }
            state.liveBytes += wanted
            return ReceiveMemory(byteCount: wanted)
        }
        return found.map { ReceiveBuffer($0, self) }
    }

    fileprivate func take(back memory: ReceiveMemory) {
        state.withLock { state in
            if memory.byteCount == Limits.receiveBufferBytes, state.free.count < Limits.receiveBuffersPooledMax {
                state.free.append(memory)
            } else {
                state.liveBytes -= memory.byteCount
            }
            precondition(
                state.liveBytes >= state.free.count * Limits.receiveBufferBytes,
                "more bytes were given back than were taken")
        }
    }
}
