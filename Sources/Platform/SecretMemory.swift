import Foundation

/// Memory for keys and for what can be computed from them only with a key.
///
/// It has pages of its own, so that what holds for these pages holds for nothing else. They are kept out of core dumps
/// where the system can do so. They are locked, so that they never reach a swap area; a system that refuses this, as
/// with a low RLIMIT_MEMLOCK, is tolerated. `deinit` overwrites them before it returns them.
///
/// Sendable without the compiler's proof: it is filled before other threads see it, or it belongs to an object that one
/// thread uses at a time. The address and the size never change.
package final class SecretMemory: @unchecked Sendable {
    /// The first byte, at the beginning of a page.
    package let baseAddress: UnsafeMutableRawPointer
    /// How many bytes were asked for.
    package let count: Int
    /// Whether the pages are left out of core dumps. False on systems that can't do so.
    package let isExcludedFromDumps: Bool
    /// Whether the pages never reach a swap area.
    package let isLocked: Bool
    private let mappedBytes: Int

    /// Maps at least `count` bytes of zeros. Traps when the system has no memory, as every allocation does.
    package init(count: Int) {
        precondition(count >= 0, "the count of a secret is negative")
        let page = Int(getpagesize())
        let bytes = max(1, (count + page - 1) / page) * page
        guard let pages = mmap(nil, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANON, -1, 0), pages != MAP_FAILED
        else { preconditionFailure("the system has no memory for a secret") }
        baseAddress = pages
        self.count = count
        mappedBytes = bytes
        isExcludedFromDumps = System.excludeFromDumps(pages, bytes: bytes)
        isLocked = mlock(pages, bytes) == 0
    }

    deinit {
        System.cleanse(baseAddress, bytes: mappedBytes)
        let isUnmapped = munmap(baseAddress, mappedBytes)
        assert(isUnmapped == 0, "the pages of a secret were not mapped")
    }

    /// The bytes that were asked for.
    package var bytes: UnsafeMutableRawBufferPointer {
        UnsafeMutableRawBufferPointer(start: baseAddress, count: count)
    }

    /// Calls `body` with the bytes, which must not be kept.
    package func withBytes<R, E>(_ body: (UnsafeRawBufferPointer) throws(E) -> R) throws(E) -> R {
        defer { withExtendedLifetime(self) {} }
        return try body(UnsafeRawBufferPointer(bytes))
    }
}
