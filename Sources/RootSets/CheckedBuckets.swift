import Core
import Foundation
import Synchronization

/// Remembers which buckets were found intact since the start, so that a look-up need not read a whole bucket again.
///
/// A bucket is known by its address, and by its checksum and key: LMDB writes no page that a reader may see, so another
/// value at the same address has another checksum. There is a slot for each 1,024 bytes of the map. Memory is taken
/// only for those that are used. Buckets that share a slot are checked again each time.
///
/// Sendable without the compiler's proof: the slots are atomic, and where they are is constant after `init`.
final class CheckedBuckets: @unchecked Sendable {
    private let slots: UnsafeMutablePointer<Atomic<UInt64>>?
    private let mask: UInt
    /// One for each 1,024 bytes of 16 GiB. In a larger map, buckets share them.
    private static let slotsMax: UInt = 1 << 24

    /// `mapBytes`: the size of LMDB's map.
    init(mapBytes: Int) {
        var count: UInt = 1
        while count < UInt(max(0, mapBytes)) >> 10, count < CheckedBuckets.slotsMax { count *= 2 }
        mask = count - 1
        // Zeros, which the system makes when they are used. Without memory every bucket is checked each time.
        slots = calloc(Int(count), MemoryLayout<Atomic<UInt64>>.stride)?
            .bindMemory(to: Atomic<UInt64>.self, capacity: Int(count))
    }

    deinit { free(slots) }

    /// Returns the contents of a bucket in the map. Checks them unless they were found intact before.
    ///
    /// Throws `damaged` when they are not what was written.
    @inline(__always)
    func contents(
        of value: UnsafeRawBufferPointer, at key: UnsafeRawBufferPointer, in database: Database
    ) throws(StorageFailure) -> UnsafeRawBufferPointer {
        guard let sealed = genuine(value, at: key, in: database) else { throw database.damage(at: key) }
        return sealed.contents
    }

    /// Does the same, but returns `nil` for a bucket that is not what was written.
    @inline(__always)
    func genuine(
        _ value: UnsafeRawBufferPointer, at key: UnsafeRawBufferPointer, in database: Database
    ) -> SealedValue? {
        guard let sealed = SealedValue(value) else { return nil }
        let seed = database.seed(of: key)
        let slot = slots.map { $0 + Int(UInt(bitPattern: value.baseAddress) >> 10 & mask) }
        let token = sealed.checksum &+ seed
        if token != 0, slot?.pointee.load(ordering: .relaxed) == token { return sealed }
        guard sealed.isGenuine(seed: seed) else { return nil }
        slot?.pointee.store(token, ordering: .relaxed)
        return sealed
    }

    /// Reads the whole bucket, also when it was found intact before. Returns `nil` when it is not what was written:
    /// then each later reader checks it, too.
    func readAnew(
        _ value: UnsafeRawBufferPointer, at key: UnsafeRawBufferPointer, in database: Database
    ) -> SealedValue? {
        if let sealed = SealedValue(value), sealed.isGenuine(seed: database.seed(of: key)) { return sealed }
        slots?[Int(UInt(bitPattern: value.baseAddress) >> 10 & mask)].store(0, ordering: .relaxed)
        return nil
    }
}
