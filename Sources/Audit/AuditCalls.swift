import Foundation
import Platform

/// The system calls by which lines reach the disk. Tests replace them with failing ones.
package struct AuditCalls: Sendable {
    /// Writes bytes at an offset of a file. Returns how many were written, or -1 and sets errno.
    package var write: @Sendable (CInt, UnsafeRawBufferPointer, Int) -> Int
    /// Makes the written bytes durable. Returns 0, or -1 and sets errno.
    package var synchronize: @Sendable (CInt) -> CInt
    /// Reserves blocks behind an offset without making the file longer. Returns 0 or an errno.
    package var reserve: @Sendable (CInt, Int, Int) -> CInt

    package static let system = AuditCalls(
        write: { pwrite($0, $1.baseAddress, $1.count, off_t($2)) },
        synchronize: { fsync($0) },
        reserve: { System.reserveSpace($0, behind: $1, bytes: $2) })
}
