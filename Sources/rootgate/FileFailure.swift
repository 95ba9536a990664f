import Foundation

/// A file that can't be read or written, by its path.
struct FileFailure: Error {
    let text: String

    init(_ action: String, _ path: String, _ error: any Error) {
        text = "can't \(action) \(path): \(error.localizedDescription)"
    }
}

/// The contents of a file; `-` is standard input.
///
/// Throws a `FileFailure`.
func contents(of path: String) throws -> Data {
    guard path != "-" else { return FileHandle.standardInput.readDataToEndOfFile() }
    do {
        return try Data(contentsOf: URL(fileURLWithPath: path))
    } catch {
        throw FileFailure("read", path, error)
    }
}

/// Writes a file, replacing what it held.
///
/// Throws a `FileFailure`.
func write(_ text: String, to path: String) throws {
    do {
        try Data(text.utf8).write(to: URL(fileURLWithPath: path))
    } catch {
        throw FileFailure("write", path, error)
    }
}
