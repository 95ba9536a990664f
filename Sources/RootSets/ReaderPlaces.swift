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

    /// Maps the table of a directory, which is made when it is missing. Must be called before LMDB opens the directory,
    /// as `ReaderTable.prepare`. `nil` when the table is not one of LMDB 0.9 on a 64-bit system, or can't be written.
    ///
    /// Throws when it can't be read.
    init?(in directory: String) throws(StorageFailure) {
        let file = open(directory + "/" + ReaderTable.fileName, O_RDWR | O_CREAT | O_CLOEXEC, 0o600)
        guard file >= 0 else { return nil }
        defer { close(file) }
        let layout = ReaderTable.beginning
        let start = try readBytes(of: file, at: 0, bytesMax: layout.count, "reading the reader table")
        guard start.isEmpty || start == layout || start.allSatisfy({ $0 == 0 }),
            let length = fileBytes(file),
            length >= ReaderTable.bytes || System.reserveSpace(file, bytes: ReaderTable.bytes) == 0,
            let table = mmap(nil, ReaderTable.bytes, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0), table != MAP_FAILED
        else { return nil }
        self.table = table
    }

    deinit { munmap(table, ReaderTable.bytes) }

    /// Marks this process as one that lets go of its snapshots. It must read that one, and keep the place until it has
    /// ended all its readings. Returns false when the process has no such place in this table.
    func mark(reading snapshot: Int) -> Bool {
        let own = places.filter { $0.isOwn && $0.snapshot == UInt64(clamping: snapshot) }
        for place in own { place.thread.pointee.store(ReaderPlaces.mark, ordering: .sequentiallyConsistent) }
        return !own.isEmpty
    }

    /// Whether this process reads that snapshot and nobody has taken it back: what was read of it before is as it was
    /// written.
    func holds(_ snapshot: Int) -> Bool {
        atomicMemoryFence(ordering: .sequentiallyConsistent)
        return places.contains { $0.isOwn && $0.snapshot == UInt64(clamping: snapshot) }
    }

    /// Whether a process has marked itself.
    func letsGo(_ process: Int) -> Bool {
        places.contains { Int($0.process) == process && $0.isMarked }
    }

    /// Takes the snapshots that are older than this one back from all other processes that have marked themselves.
    /// Returns which ones had any.
    func takeBack(before snapshot: Int) -> [Int] {
        var taken: [Int] = []
        let others = places.filter { !$0.isOwn && !$0.isFree }
        let marked = Set(others.filter(\.isMarked).map(\.process))
        for place in others where marked.contains(place.process) {
            let (present, process) = (place.snapshot, Int(place.process))
            guard present < UInt64(clamping: snapshot) else { continue }
            // A reader that has begun anew meanwhile has a newer number, so it keeps it.
            let (exchanged, _) = place.number.pointee.compareExchange(
                expected: present, desired: ReaderPlaces.idle, ordering: .sequentiallyConsistent)
            if exchanged, !taken.contains(process) { taken.append(process) }
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
        let countMax = (ReaderTable.bytes - ReaderTable.headerBytes) / ReaderTable.slotBytes
        return (0..<min(Int(count), countMax)).map { index in
            Place(start: table + ReaderTable.headerBytes + index * ReaderTable.slotBytes)
        }
    }
}
