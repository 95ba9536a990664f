import Core
import Synchronization

/// Memory that received bytes are in, shared by the loop that fills it and the
/// requests whose frames lie in it.
///
/// Sendable without the compiler's proof: the loop writes only behind `filled`,
/// readers read only before it.
package final class ReceiveBuffer: @unchecked Sendable {
    let storage: UnsafeMutableRawBufferPointer
    /// Bytes received so far; touched by the loop only.
    var filled = 0
    private let pool: ReceiveBufferPool

    fileprivate init(_ storage: UnsafeMutableRawBufferPointer, _ pool: ReceiveBufferPool) {
        self.storage = storage
        self.pool = pool
    }

    deinit {
        pool.take(back: storage)
    }

    /// Lends a part of the received bytes.
    package func bytes(_ range: Range<Int>) -> UnsafeRawBufferPointer {
        UnsafeRawBufferPointer(rebasing: storage[range])
    }
}

/// The bytes of a received frame, for a request that reads them later: a copy when they are few, so that the
/// large buffer can be used again at once; otherwise the buffer itself, which is then not used again before.
///
/// Sendable without the compiler's proof: nothing writes to the bytes after `init`.
package final class FrameBytes: @unchecked Sendable {
    private let buffer: ReceiveBuffer?
    private let copy: UnsafeMutableRawBufferPointer?
    /// The bytes, which stay where they are as long as this object lives.
    package let bytes: UnsafeRawBufferPointer

    package init(_ buffer: ReceiveBuffer, _ range: Range<Int>) {
        let received = buffer.bytes(range)
        if range.count <= Limits.copiedFrameBytesMax {
            let copy = UnsafeMutableRawBufferPointer.allocate(byteCount: range.count, alignment: 8)
            copy.copyMemory(from: received)
            (self.buffer, self.copy, bytes) = (nil, copy, UnsafeRawBufferPointer(copy))
        } else {
            (self.buffer, copy, bytes) = (buffer, nil, received)
        }
    }

    deinit {
        copy?.deallocate()
    }
}

/// Makes receive buffers, keeps free ones, and bounds the bytes of all that live.
package final class ReceiveBufferPool: Sendable {
    /// Memory that nobody else knows: Sendable for that reason.
    private struct Free: @unchecked Sendable {
        let storage: UnsafeMutableRawBufferPointer
    }

    private struct State {
        var free: [Free] = []
        var liveBytes = 0
    }

    private let state = Mutex(State())
    private let bytesMax: Int

    /// `bytesMax`: bytes of all buffers that live at once.
    package init(bytesMax: Int) {
        self.bytesMax = bytesMax
    }

    deinit {
        state.withLock { state in
            for free in state.free { free.storage.deallocate() }
        }
    }

    /// A buffer of at least `capacity` bytes; `nil` when that would be over the bound.
    func buffer(capacity: Int) -> ReceiveBuffer? {
        let found = state.withLock { state -> Free? in
            let wanted = max(capacity, Limits.receiveBufferBytes)
            if wanted == Limits.receiveBufferBytes, let free = state.free.popLast() { return free }
            while state.liveBytes + wanted > bytesMax, let free = state.free.popLast() {
                state.liveBytes -= free.storage.count
                free.storage.deallocate()
            }
            guard state.liveBytes + wanted <= bytesMax else { return nil }
            state.liveBytes += wanted
            return Free(storage: .allocate(byteCount: wanted, alignment: 64))
        }
        return found.map { ReceiveBuffer($0.storage, self) }
    }

    fileprivate func take(back storage: UnsafeMutableRawBufferPointer) {
        let free = Free(storage: storage)
        state.withLock { state in
            if free.storage.count == Limits.receiveBufferBytes, state.free.count < Limits.receiveBuffersPooledMax {
                state.free.append(free)
            } else {
                state.liveBytes -= free.storage.count
                free.storage.deallocate()
            }
        }
    }
}
