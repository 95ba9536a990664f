package import Foundation

extension System {
    /// Reads a whole file.
    package static func contents(of path: String) throws(SystemFailure) -> Data {
        let descriptor = open(path, O_RDONLY | O_CLOEXEC)
        guard descriptor >= 0 else { throw SystemFailure("open") }
        defer { close(descriptor) }
        var contents = Data()
        while case let piece = try nextBytes(of: descriptor, bytesMax: 1 << 20), !piece.isEmpty {
            contents.append(piece)
        }
        return contents
    }

    /// Reads what an open file has next, at most so many bytes. The result is empty at the end.
    package static func nextBytes(of descriptor: CInt, bytesMax: Int) throws(SystemFailure) -> Data {
        var buffer = [UInt8](repeating: 0, count: bytesMax)
        while true {
            let count = Foundation.read(descriptor, &buffer, bytesMax)
            if count >= 0 { return Data(buffer[..<count]) }
            guard errno == EINTR else { throw SystemFailure("read") }
        }
    }

    /// Writes a file, replacing what it held, and returns its open descriptor.
    package static func create(_ path: String, _ contents: Data) throws(SystemFailure) -> CInt {
        let descriptor = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0o666)
        guard descriptor >= 0 else { throw SystemFailure("open") }
        do throws(SystemFailure) {
            try writeAll(contents, to: descriptor)
        } catch {
            close(descriptor)
            throw error
        }
        return descriptor
    }

    /// Writes all the bytes to an open file.
    package static func writeAll(_ contents: Data, to descriptor: CInt) throws(SystemFailure) {
        var rest = Array(contents)[...]
        while !rest.isEmpty {
            let count = rest.withUnsafeBytes { Foundation.write(descriptor, $0.baseAddress, $0.count) }
            if count < 0, errno == EINTR { continue }
            guard count > 0 else { throw SystemFailure("write", number: count == 0 ? ENOSPC : errno) }
            rest = rest.dropFirst(count)
        }
    }
}
