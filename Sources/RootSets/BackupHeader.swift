import Core

// A backup is a stream of records, with numbers in little-endian. It does not depend on LMDB's pages.
//
//     header    see `BackupHeader`, 80 bytes
//     entries   database (1)  zero (1)  bytes of the key (2)  bytes of the value (4)  key  value
//     end       0xff (1)  zeros (7)  number of entries (8)  bytes before the end (8)
//     SHA-256   of everything before it (32)
//
// The databases come in the order of `StorageWalk`, each with its keys in ascending order. A value is as it is stored,
// with its seal. Nothing follows the digest.

/// What a backup says of itself:
///
///      0  "rootgate backup\n" (16)
///     16  version of the stream (4): 1
///     20  format of the data (4)
///     24  when it was made, in milliseconds since 1970 (8)
///     32  sequence of the last change (8)
///     40  sequence of the first change in its log; one more than the last when the log is empty (8)
///     48  checksum of the log's last record (8)
///     56  bytes of the pages that held the data (8)
///     64  zeros (8)
///     72  checksum of the bytes before it (8)
package struct BackupHeader: Equatable, Sendable {
    static let byteCount = 80
    static let version: UInt32 = 1
    static let magic = Array("rootgate backup\n".utf8)
    /// The first byte of the end.
    static let end: UInt8 = 0xff
    static let endBytes = 24
    static let entryBytes = 8
    /// Larger data are no data of this service.
    private static let usedBytesMax: UInt64 = 1 << 46

    /// When the backup was made, in milliseconds since 1970.
    package let time: UInt64
    /// The sequence of the last change.
    package let sequence: UInt64
    /// The sequence of the first change in the log; one more than `sequence` when the log is empty.
    package let firstSequence: UInt64
    /// The checksum of the log's last record; 0 when there was none.
    let chainHead: UInt64
    /// Bytes of the pages that held the data.
    package let usedBytes: UInt64

    init(time: UInt64, _ totals: Totals, usedBytes: Int) {
        self.time = time
        (sequence, firstSequence, chainHead) = (totals.sequence, totals.firstSequence, totals.chainHead)
        self.usedBytes = UInt64(max(0, usedBytes))
    }

    /// `bytes`: exactly `byteCount`. Throws why this version can't read the backup.
    init(reading bytes: [UInt8]) throws(StorageFailure) {
        precondition(bytes.count == BackupHeader.byteCount, "a header has another length")
        func number<T: FixedWidthInteger>(_ offset: Int, _: T.Type) -> T {
            T(littleEndian: bytes.withUnsafeBytes { $0.loadUnaligned(fromByteOffset: offset, as: T.self) })
        }
        guard Array(bytes[..<16]) == BackupHeader.magic else {
            throw .refused("the file is no backup that rootgate has written")
        }
        guard number(16, UInt32.self) == BackupHeader.version else {
            throw .refused(
                "the backup has version \(number(16, UInt32.self)) of the stream, and this version of rootgate reads "
                    + "version \(BackupHeader.version): restore it with the version that wrote it, or a newer one")
        }
        let format = number(20, UInt32.self)
        guard format == StorageFormat.current else {
            throw .refused(
                "the data in the backup have format \(format), and this version of rootgate restores format "
                    + "\(StorageFormat.current): restore them with the version that wrote them, or a newer one")
        }
        (time, sequence, firstSequence) = (number(24, UInt64.self), number(32, UInt64.self), number(40, UInt64.self))
        (chainHead, usedBytes) = (number(48, UInt64.self), number(56, UInt64.self))
        guard number(64, UInt64.self) == 0, number(72, UInt64.self) == BackupHeader.checksum(of: bytes),
            sequence < SealedValue.versionMax, firstSequence > 0, firstSequence <= sequence + 1,
            usedBytes <= BackupHeader.usedBytesMax
        else { throw .refused("the beginning of the backup is damaged") }
    }

    var bytes: [UInt8] {
        var bytes = BackupHeader.magic
        bytes.appendInteger(BackupHeader.version)
        bytes.appendInteger(StorageFormat.current)
        for word in [time, sequence, firstSequence, chainHead, usedBytes, 0] { bytes.appendInteger(word) }
        bytes.appendInteger(BackupHeader.checksum(of: bytes))
        assert(bytes.count == BackupHeader.byteCount, "a header has another length")
        return bytes
    }

    private static func checksum(of bytes: [UInt8]) -> UInt64 {
        bytes.withUnsafeBytes { Checksum.of(UnsafeRawBufferPointer(rebasing: $0[..<72]), seed: 0) }
    }
}
