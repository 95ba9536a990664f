package import Core
package import Foundation
package import Hashing

/// Reads the files of an audit and finds what was changed, dropped or moved in them.
///
/// The hashes find every change before the last line. Tags find changes that somebody has made who could compute the
/// hashes anew but did not have the secret. Nobody can tell from the files alone that lines were dropped at the very
/// end, unless a later start of the service tells the sequence that the storage had reached, or the caller knows the
/// hash of a line.
package struct AuditVerification {
    /// What was found, each in one line for people.
    package private(set) var findings: [String] = []
    /// What can't be told, or is worth knowing.
    package private(set) var notes: [String] = []
    /// Lines that were read.
    package private(set) var lineCount = 0
    /// The number and the hash of the last line; `nil` when there is none.
    package private(set) var last: (number: UInt64, hash: Digest)?
    /// The number of the last line whose tag is genuine; lines behind it are covered by hashes alone.
    package private(set) var coveredBy: UInt64?

    private struct Line {
        let place: String
        let isFirstOfFile: Bool
        let content: AuditLine
        /// `nil` when the key of the tag is not known.
        let isGenuine: Bool?
    }

    /// `paths`: the files, in any order. `keys`: the audit keys by the names of their generations; none: tags are not
    /// checked. `known`: the hash of a line that must be there. `contents` reads a file; one at a time is in memory.
    ///
    /// Throws what `contents` throws.
    package init<Failure: Error>(
        _ paths: [String], keys: [String: MessageAuthenticator], known: Digest? = nil,
        contents: (String) throws(Failure) -> Data
    ) throws(Failure) {
        var lines: [(first: UInt64, lines: [Line])] = []
        for path in paths {
            let read = read(try contents(path), of: path, keys)
            lineCount += read.count
            if let first = read.first { lines.append((first.content.number, read)) }
        }
        lines.sort { $0.first < $1.first }
        let ordered = judgeOrder(lines.flatMap(\.lines))
        judgeChain(ordered)
        judgeSequences(ordered)
        if let known, !ordered.contains(where: { $0.content.hash == known }) {
            findings.append("no line has the hash \(known): lines were dropped, or changed")
        }
        judgeEnds(ordered, hasKeys: !keys.isEmpty)
    }

    private mutating func read(
        _ contents: Data, of path: String, _ keys: [String: MessageAuthenticator]
    ) -> [Line] {
        var lines: [Line] = []
        var pieces = contents.split(separator: 10, omittingEmptySubsequences: false)
        if let rest = pieces.popLast(), !rest.isEmpty {
            findings.append("\(path): the last line is unfinished (\(rest.count) bytes)")
        }
        for (index, piece) in pieces.enumerated() {
            let place = "\(path), line \(index + 1)"
            let line = Array(piece).withUnsafeBytes { bytes -> Line? in
                guard let content = AuditLine(bytes) else { return nil }
                return Line(
                    place: place, isFirstOfFile: lines.isEmpty && index == 0, content: content,
                    isGenuine: keys[content.key].map { content.isGenuine(bytes, $0) })
            }
            if let line {
                lines.append(line)
            } else {
                findings.append("\(place) was changed: it is no line of an audit")
            }
        }
        return lines
    }

    /// Finds lines that stand in another place than their numbers say, and lines that are missing. Returns the lines in
    /// the order of their numbers, each once.
    private mutating func judgeOrder(_ lines: [Line]) -> [Line] {
        let staying = AuditVerification.longestAscent(lines.map(\.content.number))
        var byNumber: [UInt64: Line] = [:]
        for line in staying.map({ lines[$0] }) { byNumber[line.content.number] = line }
        let stays = Set(staying)
        for (index, line) in lines.enumerated() where !stays.contains(index) {
            if byNumber[line.content.number] != nil {
                findings.append("\(line.place) was inserted: number \(line.content.number) stands elsewhere")
            } else {
                findings.append("\(line.place) was moved: its number is \(line.content.number)")
                byNumber[line.content.number] = line
            }
        }
        let ordered = byNumber.values.sorted { $0.content.number < $1.content.number }
        for (line, next) in zip(ordered, ordered.dropFirst())
        where next.content.number - line.content.number > 1 {
            let (first, end) = (line.content.number + 1, next.content.number - 1)
            findings.append(
                "\(first == end ? "line number \(first) was" : "lines number \(first) to \(end) were") dropped before "
                    + next.place)
        }
        return ordered
    }

    /// The indices of the longest run of numbers, not necessarily neighbours, that ascends strictly. What is outside of
    /// it is the least that must have been moved.
    private static func longestAscent(_ numbers: [UInt64]) -> [Int] {
        /// By length minus one: the index of the least number that ends an ascent of this length.
        var ends: [Int] = []
        var previous = [Int?](repeating: nil, count: numbers.count)
        for index in numbers.indices {
            var (low, high) = (0, ends.count)
            while low < high {
                let middle = (low + high) / 2
                if numbers[ends[middle]] < numbers[index] { low = middle + 1 } else { high = middle }
            }
            previous[index] = low > 0 ? ends[low - 1] : nil
            if low == ends.count { ends.append(index) } else { ends[low] = index }
        }
        var ascent: [Int] = []
        var index = ends.last
        while let current = index {
            ascent.append(current)
            index = previous[current]
        }
        return ascent.reversed()
    }

    /// Compares each line with the hash that the next one names, and the tags.
    private mutating func judgeChain(_ lines: [Line]) {
        for (index, line) in lines.enumerated() {
            let next = lines.dropFirst(index + 1).first.flatMap {
                $0.content.number == line.content.number + 1 ? $0 : nil
            }
            if line.isGenuine == true { coveredBy = line.content.number }
            if line.isGenuine == false {
                findings.append("\(line.place) was changed: its tag is not genuine")
            } else if let next, next.content.before != line.content.hash, next.isGenuine != false {
                // When the next line's own hash does not fit either, that one may be the changed one.
                let isNextWrong =
                    line.isGenuine == true
                    || lines.dropFirst(index + 2).first.map {
                        next.isGenuine != true && $0.content.number == next.content.number + 1
                            && $0.content.before != next.content.hash
                    } ?? false
                findings.append(
                    isNextWrong
                        ? "\(next.place) was changed: it does not name the hash of the line before"
                        : "\(line.place) was changed: the line behind it names another hash")
            }
            if line.content.number == 1, line.content.before != .zero {
                findings.append("\(line.place) was changed: it is the first line and names one before")
            }
        }
    }

    /// Finds changes of the storage that have no line, which the start of a service behind them tells. Notes starts at
    /// which the storage was older than its audit.
    private mutating func judgeSequences(_ lines: [Line]) {
        var reached: UInt64?
        for line in lines {
            guard let sequence = line.content.sequence else { continue }
            guard line.content.operation == "start", let known = reached else {
                reached = max(reached ?? 0, sequence)
                continue
            }
            if sequence > known {
                findings.append(
                    "\(line.place): the changes \(known + 1) to \(sequence) were made before this start and have no "
                        + "line; lines were dropped at the end, or the service was killed before it wrote them")
            } else if sequence < known {
                notes.append(
                    "\(line.place): at this start the storage was older than its audit: it had reached the change "
                        + "\(sequence) of \(known), so an older copy was restored; what the changes "
                        + "\(sequence + 1) to \(known) removed or revoked came back")
            }
            // Behind a restored copy the sequences begin again.
            reached = sequence
        }
    }

    private mutating func judgeEnds(_ lines: [Line], hasKeys: Bool) {
        guard let first = lines.first, let end = lines.last else { return notes.append("there are no lines") }
        last = (end.content.number, end.content.hash)
        if first.content.number > 1 {
            notes.append("the lines before number \(first.content.number) were not given")
        } else if let sequence = first.content.sequence, sequence > 0, first.content.operation == "start" {
            notes.append(
                "\(first.place): at this start the storage had reached the change \(sequence) already, and the audit "
                    + "begins here: the changes until then have no line, or theirs were removed")
        }
        for line in lines where line.isFirstOfFile && line.content.number > 1 {
            if !["start", "continue"].contains(line.content.operation) {
                findings.append("\(line.place): lines were dropped before it, at the beginning of the file")
            }
        }
        if end.content.operation != "stop" {
            notes.append(
                "the last line tells no stop: the service runs or was killed, or lines were dropped at the end, which "
                    + "can't be told from the files")
        }
        if !hasKeys {
            notes.append("no secret was given, so only the hashes were checked: who can write the files can renew them")
        } else if let coveredBy, coveredBy == end.content.number {
            if findings.isEmpty { notes.append("the tag of the last line vouches for all lines") }
        } else if end.isGenuine == nil {
            findings.append(
                "the lines behind number \(coveredBy ?? 0) can't be vouched for: the last one is signed with the "
                    + "generation \(end.content.key), which the secret does not have")
        }
    }
}
