import Foundation
import Platform

/// A file that can't be read or written, by its path.
struct FileFailure: Error, CustomStringConvertible {
    let text: String
    var description: String { text }

    init(_ action: String, _ path: String, _ failure: SystemFailure) {
        text = "can't \(action) \(path): \(failure.reason)"
    }
}

/// The contents of a file; `-` is standard input.
///
/// Throws a `FileFailure`.
func contents(of path: String) throws(FileFailure) -> Data {
    do throws(SystemFailure) {
        return path == "-" ? try System.contents(of: STDIN_FILENO) : try System.contents(of: path)
    } catch {
        throw FileFailure("read", path, error)
    }
}

/// Writes a file, replacing what it held.
///
/// Throws a `FileFailure`.
func write(_ text: String, to path: String) throws(FileFailure) {
    do throws(SystemFailure) {
        close(try System.create(path, Data(text.utf8)))
    } catch {
        throw FileFailure("write", path, error)
    }
}
