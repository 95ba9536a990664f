/// Memory for a fixed number of elements, allocated by `init` and freed by `deinit`.
///
/// Elements can be written through a constant, as with `UnsafeMutableBufferPointer`. So a class can keep the buffer in
/// a `let`. A `var` would cost a run-time check of exclusive access at each use. Pointers into the buffer are valid as
/// long as it lives. Indices are checked in debug builds only.
///
/// The type is public and frozen because the compiler inlines only public functions in other modules, and loops over
/// proofs index it.
@frozen
public struct ScratchBuffer<Element: BitwiseCopyable>: ~Copyable {
    /// The first element.
    public let baseAddress: UnsafeMutablePointer<Element>
    /// Number of elements that the memory holds.
    public let count: Int

    /// `alignment`: in bytes, a power of two; at least that of `Element` is used.
    @inlinable
    public init(repeating element: Element, count: Int, alignment: Int = MemoryLayout<Element>.alignment) {
        self.init(uninitializedCount: count, alignment: alignment)
        baseAddress.initialize(repeating: element, count: count)
    }

    /// Allocates without initializing: the elements are undefined until they are written. Memory that is never touched
    /// is never committed.
    ///
    /// `alignment`: in bytes, a power of two; at least that of `Element` is used.
    @inlinable
    public init(uninitializedCount count: Int, alignment: Int = MemoryLayout<Element>.alignment) {
        precondition(count >= 0, "the count of a buffer is negative")
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
        // `_read` gives access to one field of a large element. A getter would copy the whole element.
        @inline(__always) _read {
            assert(index >= 0 && index < count, "an index is outside of the buffer")
            yield baseAddress[index]
        }
        @inline(__always) nonmutating _modify {
            assert(index >= 0 && index < count, "an index is outside of the buffer")
            // Not `baseAddress[index]`: ThreadSanitizer takes that for an access to the first element.
            yield &(baseAddress + index).pointee
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
