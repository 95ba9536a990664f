import Core

/// Unpacks a file of Tests/StoredFormats to a new file. It is packed by gzip and in base64, behind lines with `#`.
///
/// Throws `internalFault` when it can't be unpacked.
package func unpackStoredFile(_ name: String, to path: String) throws {
    let command = "grep -v '^#' \"$0\" | base64 -d | gzip -d >\"$1\""
    let packed = packageFile("Tests/StoredFormats/\(name)")
    let result = try runProgram("/bin/sh", ["-c", command, packed, path])
    guard result.code == 0 else {
        throw ServiceError(.internalFault, "\(packed) can't be unpacked: \(result.errors)")
    }
}
