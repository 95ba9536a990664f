import Foundation
import Platform

/// LMDB's table of readers, the file `lock.mdb`. LMDB tells processes apart by their numbers alone, and processes in
/// different process namespaces, as of two containers, may have the same number.
///
/// It must be used before LMDB opens the file: closing a descriptor of it ends all locks that the process has on it.
enum ReaderTable {
    static let fileName = "lock.mdb"
    /// 1,024 readers take 64 bytes each.
    static let slotBytes = 64
    static let bytes = 68 << 10
    #if canImport(Darwin)
    /// The name of a semaphore takes the place of a mutex.
    private static let mutexBytes = 32
    #else
    private static let mutexBytes = MemoryLayout<pthread_mutex_t>.size
    #endif
    /// Where in the header it is how many places were ever taken: behind the layout, a mutex, and the number of the
    /// newest commit.
    static let countOffset = 16 + mutexBytes
    /// The header, and another mutex, have places of their own length.
    static let headerBytes = (countOffset + 4 + 63) / 64 * 64 + (mutexBytes + 63) / 64 * 64
    /// What the file of LMDB 0.9 begins with on a 64-bit system.
    static let beginning: [UInt8] = [0xde, 0xc0, 0xef, 0xbe, 1, 0, 1, 0]
    /// Where in a slot, behind the number of the snapshot, the numbers of the process and of the thread are.
    static let processOffset = 8
    static let threadOffset = 16

    /// Reserves disk blocks for the table, which LMDB writes through a map. On a full disk, writing to a page of it
    /// without a block would be a bus error. Then frees the places of an earlier process that had this one's number:
    /// LMDB would take them for this process's own, and keep the pages of what they read for ever.
    ///
    /// Throws `conflicting` when another process that has the storage open has this one's number.
    static func prepare(in directory: String) throws(StorageFailure) {
        let file = open(directory + "/" + fileName, O_RDWR | O_CREAT | O_CLOEXEC, 0o600)
        guard file >= 0 else { throw StorageFailure(errno, "opening the reader table") }
        defer { close(file) }
        try check(System.reserveSpace(file, bytes: bytes), "reserving space for the reader table")
        try checkNumber(file)
        try forget(getpid(), in: file)
    }

    /// Throws when another process that reads the storage has this process's number in a namespace of its own. Does
    /// nothing when there is no table.
    static func checkNumber(in directory: String) throws(StorageFailure) {
        let file = open(directory + "/" + fileName, O_RDWR | O_CLOEXEC)
        guard file >= 0 else { return }
        defer { close(file) }
        try checkNumber(file)
    }

    private static func checkNumber(_ file: CInt) throws(StorageFailure) {
        // A process that reads holds a lock on the byte of its number.
        var lock = flock()
        lock.l_type = Int16(F_WRLCK)
        lock.l_whence = Int16(SEEK_SET)
        lock.l_start = off_t(getpid())
        lock.l_len = 1
        guard fcntl(file, F_GETLK, &lock) == 0, lock.l_type != Int16(F_UNLCK) else { return }
        throw .conflicting(
            "another process that has the storage open has this one's number, \(getpid()), in a process namespace of "
                + "its own, and LMDB can't tell them apart: run one of them in the namespace of the other, as docker "
                + "exec and kubectl exec do")
    }

    /// Frees all places of a process that has none. Does nothing when the table has another layout.
    static func forget(_ process: pid_t, in file: CInt) throws(StorageFailure) {
        let table = try readBytes(of: file, at: 0, bytesMax: bytes, "reading the reader table")
        guard table.starts(with: beginning) else { return }
        let number = withUnsafeBytes(of: UInt32(bitPattern: process)) { Array($0) }
        for slot in stride(from: headerBytes, through: table.count - slotBytes, by: slotBytes) {
            let place = slot + processOffset
            // Another process may have taken the place meanwhile.
            guard table[place..<place + 4].elementsEqual(number),
                try readBytes(of: file, at: place, bytesMax: 4, "reading the reader table") == number
            else { continue }
            guard pwrite(file, [UInt8](repeating: 0, count: 4), 4, off_t(place)) == 4 else {
                throw StorageFailure(errno, "freeing places of the reader table")
            }
        }
    }
}
