import Core
import Foundation
import Platform
import RootgateClient

/// A file that tells how far an import has come, so that another run goes on from there.
struct ImportRecord {
    private struct Fields: Codable {
        let collaboration: String
        let lines: Int
        let bytes: UInt64
        /// Of the input's first `bytes` bytes.
        let sha256: Digest
    }

    private let path: String
    private let collaboration: CollaborationIdentifier

    init(_ path: String, of collaboration: CollaborationIdentifier) {
        (self.path, self.collaboration) = (path, collaboration)
    }

    /// Where the import goes on; `nil` when there is no file. Throws when the file can't be read, or is that of another
    /// import.
    func position() throws -> RootLines.Position? {
        guard FileManager.default.fileExists(atPath: path) else { return nil }
        let data = try contents(of: path)
        let fields: Fields
        do throws(ServiceError) {
            fields = try JSON.decodeStrictly(Fields.self, from: Array(data))
        } catch {
            throw UsageError(ofFile: "\(path) tells of no import: \(error.reason)")
        }
        guard fields.collaboration == collaboration.description else {
            throw UsageError(ofFile: "\(path) tells of an import into another collaboration, \(fields.collaboration)")
        }
        guard fields.lines >= 0 else { throw UsageError(ofFile: "\(path) tells of no import: lines is negative") }
        return RootLines.Position(lines: fields.lines, bytes: fields.bytes, hash: fields.sha256)
    }

    /// Notes that all root hashes in front of the position are in the set. The file has the note before until it has
    /// this one. Throws when it can't be written.
    func note(_ position: RootLines.Position) throws {
        guard let hash = position.hash else {
            preconditionFailure("an import that is recorded does not hash its input")
        }
        let fields = Fields(
            collaboration: collaboration.description, lines: position.lines, bytes: position.bytes, sha256: hash)
        let encoder = JSONEncoder()
        encoder.outputFormatting = .sortedKeys
        let data = try encoder.encode(fields)
        do throws(SystemFailure) {
            close(try System.create(path + ".new", data))
            guard rename(path + ".new", path) == 0 else { throw SystemFailure("rename") }
        } catch {
            throw FileFailure("write", path, error)
        }
    }

    /// The import is whole: another run would begin anew.
    func remove() { unlink(path) }
}
