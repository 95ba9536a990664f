/// Memory for a fixed number of elements, allocated by `init` and freed by `deinit`.
///
/// Like `UnsafeMutableBufferPointer` it is written through a constant, so that a class can keep it in a `let`: a `var`
/// would cost a run-time check of exclusive access at each use. Pointers into it are valid as long as it lives.
/// Indices are checked in debug builds only.
///
/// Public and frozen, because only public functions are inlined in other modules, and loops over proofs index it.
@frozen
public struct ScratchBuffer<Element: BitwiseCopyable>: ~Copyable {
    /// The first element.
    public let baseAddress: UnsafeMutablePointer<Element>
    /// Elements that there is memory for.
    public let count: Int

    /// `alignment`: in bytes, a power of two; at least that of `Element` is used.
    @inlinable
    public init(repeating element: Element, count: Int, alignment: Int = MemoryLayout<Element>.alignment) {
        self.init(uninitializedCount: count, alignment: alignment)
        baseAddress.initialize(repeating: element, count: count)
    }

    /// The elements are undefined until they are written, and memory that is never touched is never committed.
    ///
    /// `alignment`: in bytes, a power of two; at least that of `Element` is used.
    @inlinable
    public init(uninitializedCount count: Int, alignment: Int = MemoryLayout<Element>.alignment) {
        precondition(count >= 0, "a buffer has no negative count")
        baseAddress = UnsafeMutableRawPointer.allocate(
            byteCount: count * MemoryLayout<Element>.stride, alignment: max(alignment, MemoryLayout<Element>.alignment)
        ).bindMemory(to: Element.self, capacity: count)
        self.count = count
    }

    @inlinable
    deinit {
        UnsafeMutableRawPointer(baseAddress).deallocate()
    }

    @inlinable
    public subscript(index: Int) -> Element {
        // `_read`: a getter would copy large elements of which one field is wanted.
        @inline(__always) _read {
            assert(index >= 0 && index < count, "an index is outside of the buffer")
            yield baseAddress[index]
        }
        @inline(__always) nonmutating _modify {
            assert(index >= 0 && index < count, "an index is outside of the buffer")
            yield &baseAddress[index]
        }
    }

    /// All elements.
    @inlinable
    public var elements: UnsafeMutableBufferPointer<Element> {
        @inline(__always) get { UnsafeMutableBufferPointer(start: baseAddress, count: count) }
    }

    /// The first `count` elements.
    @inlinable @inline(__always)
    public func prefix(_ count: Int) -> UnsafeMutableBufferPointer<Element> {
        precondition(count >= 0 && count <= self.count, "a prefix is longer than its buffer")
        return UnsafeMutableBufferPointer(start: baseAddress, count: count)
    }

    /// All bytes.
    @inlinable
    public var bytes: UnsafeMutableRawBufferPointer {
        @inline(__always) get { UnsafeMutableRawBufferPointer(elements) }
    }
}
