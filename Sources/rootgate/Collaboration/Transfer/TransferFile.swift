import Core
import Foundation
import RootgateClient

/// Everything that a file of `rootgate collab export` has, once all of it was read and checked: the order and the
/// number of its lines, its SHA-256, and each value.
struct TransferFile {
    /// The collaboration, or a set of root hashes only.
    enum Subject {
        case collaboration(TransferredCollaboration)
        case rootSet(TransferredSet)
    }

    let subject: Subject
    /// In ascending order of their identities.
    private(set) var participants: [TransferredParticipant] = []
    /// In ascending order.
    private(set) var roots: [Digest] = []
    private(set) var shares: [TransferredShare] = []
    /// With the numbers of what is not imported.
    let end: TransferEnd

    /// Reads a file to its end; `-` is standard input. Throws a `UsageError` that names the line.
    init(_ path: String) throws {
        var lines = try TransferLines(path)
        let header = try lines.header()
        guard header == TransferLine.version else {
            throw UsageError(
                ofFile: "\(path) was written by a newer rootgate: its version is \(header), and this one reads "
                    + "\(TransferLine.version)")
        }
        guard let first = try lines.next() else { throw lines.cut }
        if let collaboration = first.collaboration {
            subject = .collaboration(collaboration)
        } else if let set = first.rootSet {
            subject = .rootSet(set)
        } else {
            throw lines.wrong("is neither a collaboration nor a set of root hashes")
        }
        var order = TransferOrder(subject)
        while let line = try lines.next() {
            if let end = line.end {
                guard end == lines.summaryBefore else { throw lines.wrong("has other counts or another SHA-256") }
                guard try lines.next() == nil else { throw lines.wrong("follows the end") }
                self.end = end
                return
            }
            if let reason = order.refusal(of: line) { throw lines.wrong(reason) }
            if let participant = line.participant { participants.append(participant) }
            if let root = line.root { roots.append(root) }
            if let share = line.share { shares.append(share) }
        }
        throw lines.cut
    }
}

/// Which line may follow the lines before it.
private struct TransferOrder {
    private let isLayered: Bool
    /// The part of the file that was reached: people, invitations, notices, shares.
    private var part = 0
    private var last: Digest?
    private var hasOwner = false

    init(_ subject: TransferFile.Subject) {
        if case .collaboration = subject { isLayered = true } else { isLayered = false }
    }

    /// What is wrong with the line; `nil`: nothing.
    mutating func refusal(of line: TransferLine) -> String? {
        let place: Int
        switch line {
        case _ where line.participant != nil || line.root != nil: place = 0
        case _ where line.invitation != nil: place = 1
        case _ where line.notice != nil: place = 2
        case _ where line.share != nil: place = 3
        default: return "stands at the wrong place"
        }
        guard place >= part, isLayered || line.root != nil else { return "stands at the wrong place" }
        part = place
        guard let identity = line.participant?.identity.rootHash ?? line.root else { return nil }
        guard last.map({ $0 < identity }) ?? true else { return "is not in ascending order of the root hashes" }
        last = identity
        return line.participant.flatMap { refusal(of: $0) }
    }

    private mutating func refusal(of participant: TransferredParticipant) -> String? {
        guard participant.state != .removed else { return "is a participant who was removed" }
        if participant.role == .owner {
            guard !hasOwner else { return "is a second owner" }
            hasOwner = true
        }
        let name = participant.displayName ?? ""
        guard name.utf8.count <= Limits.textBytesMax, !name.unicodeScalars.contains(where: \.isControl) else {
            return "has a displayName that is no text of at most \(Limits.textBytesMax) bytes"
        }
        return nil
    }
}

/// Reads the lines of a file, counts and hashes them.
private struct TransferLines {
    private let file: InputFile
    private var buffer: [UInt8] = []
    private var start = 0
    private var isAtEnd = false
    private var number = 0
    private var tally = TransferTally()
    /// The counts, and the hash of all bytes, before the line that was read last.
    private(set) var summaryBefore = TransferEnd()

    private static let pieceBytes = 1 << 20

    init(_ path: String) throws {
        file = try InputFile(path)
    }

    /// The error for a line that is not what it should be.
    func wrong(_ reason: String) -> UsageError {
        UsageError(ofFile: "line \(number) of \(file.path) \(reason)")
    }

    /// The error for a file without its end.
    var cut: UsageError {
        UsageError(ofFile: "\(file.path) was cut behind line \(number): it has no line with the end")
    }

    private struct Header: Decodable {
        let format: String
        let version: Int
    }

    /// Reads the first line. A newer version may have more in it.
    mutating func header() throws -> Int {
        let header: Header
        guard let bytes = try nextBytes() else { throw UsageError(ofFile: "\(file.path) is empty") }
        do throws(ServiceError) {
            header = try JSON.decode(Header.self, from: bytes)
        } catch {
            throw UsageError(
                ofFile: "\(file.path) was not written by rootgate collab export: its first line names no format")
        }
        guard header.format == TransferLine.format, header.version > 0 else {
            throw UsageError(
                ofFile: "\(file.path) was not written by rootgate collab export: its format is another one")
        }
        return header.version
    }

    /// The next line; `nil` at the end of the file.
    mutating func next() throws -> TransferLine? {
        guard let bytes = try nextBytes() else { return nil }
        let line: TransferLine
        do throws(ServiceError) {
            line = try JSON.decodeStrictly(TransferLine.self, from: bytes)
        } catch {
            throw wrong("can't be read: \(error.reason)")
        }
        let fields: [Any?] = [
            line.collaboration, line.rootSet, line.participant, line.root, line.invitation, line.notice, line.share,
            line.end,
        ]
        guard line.format == nil, line.version == nil, fields.count(where: { $0 != nil }) == 1 else {
            throw wrong("has not exactly one part")
        }
        tally.count(line)
        return line
    }

    /// The bytes of the next line without its line feed; `nil` at the end of the file.
    private mutating func nextBytes() throws -> [UInt8]? {
        var searched = start
        while true {
            if let end = buffer[searched...].firstIndex(of: UInt8(ascii: "\n")) {
                return take(upTo: end, andLineFeed: true)
            }
            searched = buffer.count
            guard !isAtEnd else { return start < buffer.count ? take(upTo: buffer.count, andLineFeed: false) : nil }
            guard buffer.count - start <= TransferLine.byteCountMax else {
                throw UsageError(ofFile: "line \(number + 1) of \(file.path) is longer than 1 MiB")
            }
            buffer.removeFirst(start)
            searched -= start
            start = 0
            let more = try file.next(bytesMax: TransferLines.pieceBytes)
            isAtEnd = more.isEmpty
            buffer += more
        }
    }

    private mutating func take(upTo end: Int, andLineFeed hasLineFeed: Bool) -> [UInt8] {
        summaryBefore = tally.summary
        let line = Array(buffer[start..<end])
        let next = hasLineFeed ? end + 1 : end
        tally.hash(buffer[start..<next])
        start = next
        number += 1
        return line
    }
}
