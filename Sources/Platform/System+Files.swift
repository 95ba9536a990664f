package import Foundation

extension System {
    /// Makes the process's table of descriptors large enough for `count` of them, if the limit allows that many.
    ///
    /// Linux doubles the table when it is full. In a process with threads that takes some 20 ms, and whoever needs a
    /// descriptor waits.
    package static func growDescriptorTable(to count: Int) {
        var ends: [CInt] = [-1, -1]
        guard pipe(&ends) == 0 else { return }
        let last = fcntl(ends[0], F_DUPFD_CLOEXEC, CInt(clamping: count - 1))
        if last >= 0 { close(last) }
        for end in ends { close(end) }
    }

    /// Reads a whole file.
    package static func contents(of path: String) throws(SystemFailure) -> Data {
        let descriptor = open(path, O_RDONLY | O_CLOEXEC)
        guard descriptor >= 0 else { throw SystemFailure("open") }
        defer { close(descriptor) }
        return try contents(of: descriptor)
    }

    /// Reads a whole plain file. Throws for what is none, such as a pipe: nobody knows when that ends.
    package static func contents(ofFile path: String) throws(SystemFailure) -> Data {
        let descriptor = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK)
        guard descriptor >= 0 else { throw SystemFailure("open") }
        defer { close(descriptor) }
        var status = stat()
        guard fstat(descriptor, &status) == 0 else { throw SystemFailure("stat") }
        guard status.st_mode & S_IFMT == S_IFREG else {
            throw SystemFailure("open", number: EINVAL, reason: "it is no plain file")
        }
        return try contents(of: descriptor)
    }

    /// Reads what an open file or pipe has left.
    package static func contents(of descriptor: CInt) throws(SystemFailure) -> Data {
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

    /// Reads what an open file has at `offset`, as many bytes as `buffer` takes. Returns how many: fewer only at the
    /// end of the file. One call of pread(2) may return fewer although there are more.
    package static func fill(
        _ buffer: UnsafeMutableRawBufferPointer, from descriptor: CInt, at offset: Int
    ) throws(SystemFailure) -> Int {
        var done = 0
        while done < buffer.count {
            let rest = UnsafeMutableRawBufferPointer(rebasing: buffer[done...])
            let count = pread(descriptor, rest.baseAddress, rest.count, off_t(offset + done))
            if count < 0, errno == EINTR { continue }
            guard count >= 0 else { throw SystemFailure("read") }
            guard count > 0 else { break }
            done += count
        }
        return done
    }

    /// Reads what an open file has at `offset`, at most so many bytes: fewer only at the end of the file.
    package static func bytes(
        of descriptor: CInt, at offset: Int, bytesMax: Int
    ) throws(SystemFailure) -> [UInt8] {
        var bytes = [UInt8](repeating: 0, count: bytesMax)
        // A closure of the standard library loses the type of the error.
        var outcome: Result<Int, SystemFailure> = .success(0)
        bytes.withUnsafeMutableBytes { buffer in
            do throws(SystemFailure) {
                outcome = .success(try fill(buffer, from: descriptor, at: offset))
            } catch {
                outcome = .failure(error)
            }
        }
        bytes.removeLast(bytesMax - (try outcome.get()))
        return bytes
    }

    /// The names in a folder, without `.` and `..`.
    package static func names(in folder: String) throws(SystemFailure) -> [String] {
        guard let stream = opendir(folder) else { throw SystemFailure("opening the folder \(folder)") }
        defer { closedir(stream) }
        var names: [String] = []
        while true {
            // A failure and the end differ in `errno` only.
            errno = 0
            guard let entry = readdir(stream) else {
                guard errno == 0 else { throw SystemFailure("reading the folder \(folder)") }
                return names
            }
            let name = withUnsafePointer(to: &entry.pointee.d_name) { name in
                name.withMemoryRebound(to: CChar.self, capacity: MemoryLayout.size(ofValue: name.pointee)) {
                    String(cString: $0)
                }
            }
            if name != ".", name != ".." { names.append(name) }
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
