import Foundation
import Platform

/// A file that a command reads from its beginning to its end, or standard input.
final class InputFile {
    private let handle: FileHandle
    let path: String
    /// Of the file; 0 when it is not known, as for a pipe.
    private let bytes: UInt64
    private(set) var bytesRead: UInt64 = 0

    /// `path`: `-` is standard input. Throws when the file can't be opened.
    init(_ path: String) throws(FileFailure) {
        self.path = path
        if path == "-" {
            handle = .standardInput
        } else {
            let descriptor = open(path, O_RDONLY | O_CLOEXEC)
            guard descriptor >= 0 else { throw FileFailure("read", path, SystemFailure("open")) }
            handle = FileHandle(fileDescriptor: descriptor, closeOnDealloc: true)
        }
        var status = stat()
        let isFile = fstat(handle.fileDescriptor, &status) == 0 && status.st_mode & S_IFMT == S_IFREG
        bytes = isFile ? UInt64(max(0, status.st_size)) : 0
    }

    /// The part of the file that its first `count` bytes are, from 0 to 1; `nil` when its size is not known.
    func share(of count: UInt64) -> Double? { bytes > 0 ? Double(count) / Double(bytes) : nil }

    /// What the file has next, at most so many bytes; empty at its end. Throws when it can't be read.
    func next(bytesMax: Int) throws(FileFailure) -> Data {
        do throws(SystemFailure) {
            let more = try System.nextBytes(of: handle.fileDescriptor, bytesMax: bytesMax)
            bytesRead += UInt64(more.count)
            return more
        } catch {
            throw FileFailure("read", path, error)
        }
    }
}
