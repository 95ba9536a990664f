import Core
import Foundation
import Platform
import Synchronization

/// The places of LMDB's table of readers, `ReaderTable`.
///
/// LMDB keeps the pages of a snapshot as long as the place of a reader has its number. A process that was stopped does
/// not end its reading. So a process that reads beside a service marks itself (`mark`): the service may take the
/// snapshots of that process back, and the process relies on what it has read only while it holds the snapshot
/// (`holds`). The mark is where LMDB writes the number of a thread, which it only prints.
///
/// Sendable without the compiler's proof: all access to the table, which other processes change, is atomic, and where
/// it is mapped is constant after `init`.
final class ReaderPlaces: @unchecked Sendable {
    private static let mark = UInt64(littleEndian: 0x6574_6167_746f_6f72)
    /// What LMDB writes for a reader that reads nothing now.
    private static let idle = UInt64.max

    private let table: UnsafeMutableRawPointer
    private let bytes: Int

    /// Maps the table of a directory. Must be called before LMDB opens the directory, as `ReaderTable.prepare`. `nil`
    /// when there is no table, or none of LMDB 0.9 on a 64-bit system.
    init?(in directory: String) {
        let file = open(directory + "/" + ReaderTable.fileName, O_RDWR | O_CLOEXEC)
        guard file >= 0 else { return nil }
        defer { close(file) }
        let layout = ReaderTable.beginning
        guard let start = try? readBytes(of: file, at: 0, bytesMax: layout.count, "reading the reader table"),
            start.isEmpty || start == layout || start.allSatisfy({ $0 == 0 }), let length = fileBytes(file)
        else { return nil }
        bytes = min(length, ReaderTable.bytes)
        guard bytes >= ReaderTable.headerBytes,
            let table = mmap(nil, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0), table != MAP_FAILED
        else { return nil }
        self.table = table
    }

    deinit { munmap(table, bytes) }

    /// Marks this process as one that lets go of its snapshots. It must read that one, and keep the place until it has
    /// ended all its readings.
    func mark(reading snapshot: Int) {
        for place in places where place.isOwn && place.snapshot == UInt64(snapshot) {
            place.thread.pointee.store(ReaderPlaces.mark, ordering: .sequentiallyConsistent)
        }
    }

    /// Whether this process reads that snapshot and nobody has taken it back: what was read of it before is as it was
    /// written.
    func holds(_ snapshot: Int) -> Bool {
        atomicMemoryFence(ordering: .sequentiallyConsistent)
        return places.contains { $0.isOwn && $0.snapshot == UInt64(clamping: snapshot) }
    }

    /// Takes the snapshots that are older than this one back from all other processes that have marked themselves.
    /// Returns which ones had any.
    func takeBack(before snapshot: Int) -> [Int] {
        let marked = Set(places.filter { !$0.isOwn && !$0.isFree && $0.isMarked }.map(\.process))
        var taken: [Int] = []
        for place in places where marked.contains(place.process) {
            let present = place.snapshot
            guard present < UInt64(clamping: snapshot) else { continue }
            // A reader that has begun anew meanwhile has a newer number, so it keeps it.
            let (exchanged, _) = place.number.pointee.compareExchange(
                expected: present, desired: ReaderPlaces.idle, ordering: .sequentiallyConsistent)
            if exchanged, !taken.contains(Int(place.process)) { taken.append(Int(place.process)) }
        }
        return taken
    }

    private struct Place {
        let start: UnsafeMutableRawPointer

        var number: UnsafeMutablePointer<Atomic<UInt64>> { start.assumingMemoryBound(to: Atomic<UInt64>.self) }
        var thread: UnsafeMutablePointer<Atomic<UInt64>> {
            (start + ReaderTable.threadOffset).assumingMemoryBound(to: Atomic<UInt64>.self)
        }
        var snapshot: UInt64 { number.pointee.load(ordering: .sequentiallyConsistent) }
        var isMarked: Bool { thread.pointee.load(ordering: .sequentiallyConsistent) == ReaderPlaces.mark }
        var process: UInt32 {
            (start + ReaderTable.processOffset).assumingMemoryBound(to: Atomic<UInt32>.self).pointee
                .load(ordering: .sequentiallyConsistent)
        }
        var isOwn: Bool { process == UInt32(bitPattern: getpid()) }
        var isFree: Bool { process == 0 }
    }

    /// The places that were ever taken.
    private var places: [Place] {
        let count = (table + ReaderTable.countOffset).assumingMemoryBound(to: Atomic<UInt32>.self).pointee
            .load(ordering: .sequentiallyConsistent)
        // The header may be as long as a place more.
        let end = min(bytes, ReaderTable.headerBytes + (min(Int(count), bytes) + 1) * ReaderTable.slotBytes)
        return stride(from: ReaderTable.headerBytes, through: end - ReaderTable.slotBytes, by: ReaderTable.slotBytes)
            .map { Place(start: table + $0) }
    }
}
