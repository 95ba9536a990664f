package import Core
import Foundation
import Hashing

/// A log in etcd that several processes append to. Its entries have numbers that follow one another, without a hole,
/// and none is ever changed. One thread uses it.
///
/// The entry n is the key `rootgate/NAME/log/` and n with 20 digits, from 1 on. The key `rootgate/NAME/head` has the
/// SHA-256 of the last entry. An entry is put only when its key does not exist and the head is that of the entry before
/// it. So a request that arrives very late, when its number was removed, does nothing. Neither does one behind an etcd
/// that was restored and has other entries than its sender has read.
package final class OrderedLog {
    /// What came of appending.
    package enum Outcome: Equatable, Sendable {
        /// The entry is in the log at its number, on the disks of most members.
        case appended
        /// Another entry has the number. These follow from that number on; there may be more.
        case taken([[UInt8]])
        /// The log has no entry of that number, and does not end with the one before: it has to be read.
        case misplaced
    }

    /// What is in the log from a number on.
    package enum Reading: Equatable, Sendable {
        /// The entries from that number on, one after the other. None: the log ends before that number.
        /// `hasMore`: whether others follow.
        case entries([[UInt8]], hasMore: Bool)
        /// The log begins behind that number: what was before has been removed.
        case removed(first: UInt64)
        /// The log does not go on behind an entry of that SHA-256. Whoever has read that one has read another log, or
        /// etcd has lost entries.
        case lost
    }

    private let session: EtcdSession
    private let prefix: [UInt8]
    private let head: [UInt8]
    /// How many entries are read at once. It grows while they are short, so that whoever is far behind catches up.
    private var entriesPerRead = Limits.etcdEntriesPerReadMin

    package init(_ session: EtcdSession, name: LogName) {
        self.session = session
        prefix = Array("rootgate/\(name)/log/".utf8)
        head = Array("rootgate/\(name)/head".utf8)
    }

    /// Appends an entry as number `number`, when the log ends before that number with an entry of that SHA-256.
    /// `last`: `nil` for number 1.
    ///
    /// `entry` must differ from every other one, by random bytes in it. So when nobody knows whether a request had an
    /// effect, the log tells: the entry is there, or another one, or none, and then the same one is put at the same
    /// number. That goes on until the time is over.
    ///
    /// Throws `unknown` when the time is over before that is known: then only the log tells later. Throws another
    /// failure when the entry is not in the log and will not be.
    package func append(
        _ entry: [UInt8], as number: UInt64, after last: Digest?, milliseconds: UInt64
    ) throws(EtcdFailure) -> Outcome {
        precondition(entry.count <= Limits.etcdEntryBytesMax, "an entry is too long")
        precondition(number > 0 && (last == nil) == (number == 1), "the first entry is number 1, and has none before")
        let deadline = MonotonicClock.system.milliseconds + milliseconds
        let key = key(number)
        let predecessor: EtcdSession.Predecessor =
            last.map { .value($0.bytes, of: head) } ?? .nothing(in: EtcdSession.KeyRange(from: prefix, to: end))
        let newHead = (head, SHA256.hash(entry).bytes)
        var doubt: EtcdFailure?
        var isOver = false
        // A proposal that etcd has lost is never answered. So the first attempt does not wait long.
        var patience = Limits.etcdAppendMilliseconds
        while true {
            let left = max(1, deadline - min(deadline, MonotonicClock.system.milliseconds))
            let failure: EtcdFailure
            do throws(EtcdFailure) {
                let outcome = try session.create(
                    key, entry, after: predecessor, head: newHead, readingTo: end,
                    limit: Limits.etcdEntriesPerReadMin, milliseconds: min(left, patience))
                switch outcome {
                case .created: return .appended
                // It may be the effect of a request before.
                case .exists(let page) where page.entries.first?.value == entry: return .appended
                case .exists(let page): return .taken(try following(page, from: number))
                // An entry that was put and removed since is nobody's business any more: a log is not shortened beyond
                // its last entry, so others follow.
                // After a doubt it may have been there, and have been removed with those before the others behind it.
                case .misplaced:
                    guard let doubt else { return .misplaced }
                    isOver = true
                    throw doubt
                }
            } catch {
                failure = error
            }
            guard !isOver else { throw failure }
            switch failure {
            case .unknown: doubt = failure
            // These come back at once.
            case .unreachable, .refused(.noLeader, _), .refused(.tooManyRequests, _): usleep(20_000)
            case .refused(.noSpace, let reason):
                if let outcome = try found(entry, at: number, reason, milliseconds: left) { return outcome }
                throw doubt ?? failure
            // It says nothing about the requests before.
            case .refused: throw doubt ?? failure
            }
            guard MonotonicClock.system.milliseconds < deadline else { throw doubt ?? failure }
            patience = min(2 * patience, Limits.etcdAppendMillisecondsMax)
            // A request whose outcome is unknown may have its effect later still. Only its repetition, which fails when
            // it had, or has it in its place, tells for certain. So does a log in which the number is taken.
            _ = session.survey(milliseconds: min(left, Limits.etcdSurveyMilliseconds))
        }
    }

    /// What came of an entry whose member has answered that the database is full: it may have applied it. The member
    /// has done with it, so what a read finds is final. `nil`: the entry is not there, and will not be.
    ///
    /// Throws `unknown` when the log does not tell.
    private func found(
        _ entry: [UInt8], at number: UInt64, _ reason: String, milliseconds: UInt64
    ) throws(EtcdFailure) -> Outcome? {
        let page: EtcdSession.Page
        do throws(EtcdFailure) {
            page = try session.read(
                EtcdSession.KeyRange(from: key(number), to: end), limit: Limits.etcdEntriesPerReadMin,
                milliseconds: milliseconds)
        } catch {
            throw .unknown(reason)
        }
        guard let first = page.entries.first else { return nil }
        // It was removed since, like others behind it.
        guard first.key == key(number) else { throw .unknown(reason) }
        return first.value == entry ? .appended : .taken(try following(page, from: number))
    }

    /// Lets an empty log go on with an entry of any number. Returns false, and changes nothing, when it is not empty.
    /// To be called again when it has thrown `unknown`.
    package func restart(_ entry: [UInt8], as number: UInt64, milliseconds: UInt64) throws(EtcdFailure) -> Bool {
        do throws(EtcdFailure) {
            let created = try session.create(
                key(number), entry, after: .nothing(in: EtcdSession.KeyRange(from: prefix, to: end)),
                head: (head, SHA256.hash(entry).bytes), readingTo: end, limit: 1, milliseconds: milliseconds)
            if case .created = created { return true }
            return false
        } catch {
            guard case .refused(.noSpace, let reason) = error else { throw error }
            guard try found(entry, at: number, reason, milliseconds: milliseconds) == .appended else { throw error }
            return true
        }
    }

    /// The number of the last entry; `nil` when there is none.
    package func last(milliseconds: UInt64) throws(EtcdFailure) -> UInt64? {
        guard var last = try first(milliseconds: milliseconds) else { return nil }
        func reaches(_ steps: UInt64) throws(EtcdFailure) -> Bool {
            let (number, isBeyond) = last.addingReportingOverflow(steps)
            guard !isBeyond else { return false }
            let range = EtcdSession.KeyRange(from: key(number), to: end)
            return try !session.read(range, limit: 1, milliseconds: milliseconds).entries.isEmpty
        }
        // Numbers have no holes.
        var step: UInt64 = 1
        while try reaches(step) {
            last += step
            step *= 2
        }
        while step > 1 {
            step /= 2
            if try reaches(step) { last += step }
        }
        return last
    }

    /// Reads the log from a number on, some entries at most. It sees every entry that was appended before. `last`: the
    /// SHA-256 of the entry before that number; `nil` for number 1.
    package func read(from number: UInt64, after last: Digest?, milliseconds: UInt64) throws(EtcdFailure) -> Reading {
        precondition(number > 0 && (last == nil) == (number == 1), "the first entry is number 1, and has none before")
        let range = EtcdSession.KeyRange(from: key(number), to: end)
        let limit = entriesPerRead
        // After a failure, for example because the answer was too long, it begins anew.
        entriesPerRead = Limits.etcdEntriesPerReadMin
        let (page, isThere) = try session.read(
            range, limit: limit, noting: .value(last?.bytes ?? [], of: head), milliseconds: milliseconds)
        let bytes = page.entries.reduce(0) { $0 + $1.value.count }
        if page.hasMore, bytes < Limits.etcdAnswerBytesMax / 8 {
            entriesPerRead = min(2 * limit, Limits.etcdEntriesPerReadMax)
        }
        guard let first = page.entries.first else {
            return isThere || number == 1 ? .entries([], hasMore: false) : .lost
        }
        // The log ends before that number.
        if isThere, number > 1 { throw OrderedLog.foreign(first.key, "behind the end of the log") }
        if first.key != key(number) { return .removed(first: try self.number(of: first.key)) }
        let entries = try following(page, from: number)
        return .entries(entries, hasMore: page.hasMore)
    }

    /// The number of the first entry; `nil` when there is none.
    package func first(milliseconds: UInt64) throws(EtcdFailure) -> UInt64? {
        let range = EtcdSession.KeyRange(from: prefix, to: end)
        let page = try session.read(range, limit: 1, milliseconds: milliseconds)
        guard let entry = page.entries.first else { return nil }
        return try number(of: entry.key)
    }

    /// Removes the entries before a number, which must be in the log: it never becomes empty again. Returns false, and
    /// removes none, when that entry is not there.
    package func remove(before number: UInt64, milliseconds: UInt64) throws(EtcdFailure) -> Bool {
        let range = EtcdSession.KeyRange(from: prefix, to: key(number))
        return try session.remove(range, ifExists: key(number), milliseconds: milliseconds)
    }

    /// Begins to watch for entries. See `EtcdWatch`: the log is read after the watch has begun, and after each event.
    package func watch(on session: EtcdSession, milliseconds: UInt64) throws(EtcdFailure) -> EtcdWatch {
        try session.watch(EtcdSession.KeyRange(from: prefix, to: end), from: 0, milliseconds: milliseconds)
    }

    // MARK: Keys

    static let digits = 20

    /// The first key behind those of the log: `0` follows `/`.
    private var end: [UInt8] { prefix.dropLast() + [UInt8(ascii: "/") + 1] }

    func key(_ number: UInt64) -> [UInt8] {
        let text = String(number)
        return prefix + Array((String(repeating: "0", count: OrderedLog.digits - text.utf8.count) + text).utf8)
    }

    private func number(of key: [UInt8]) throws(EtcdFailure) -> UInt64 {
        guard key.starts(with: prefix), key.count == prefix.count + OrderedLog.digits,
            let number = UInt64(String(decoding: key[prefix.count...], as: UTF8.self)), self.key(number) == key
        else {
            throw OrderedLog.foreign(key, "no log entry's")
        }
        return number
    }

    /// Somebody has put a key beside those of the log.
    private static func foreign(_ key: [UInt8], _ what: String) -> EtcdFailure {
        let name = String(decoding: key, as: UTF8.self).escapingControls
        return .refused(.other, "the key \(name) in etcd is \(what): remove it (etcdctl del)")
    }

    /// The values of entries whose numbers follow one another.
    private func following(_ page: EtcdSession.Page, from number: UInt64) throws(EtcdFailure) -> [[UInt8]] {
        var expected = number
        for entry in page.entries {
            guard try self.number(of: entry.key) == expected else {
                // An entry is missing, or this one is foreign: only people can tell.
                let next = String(decoding: entry.key, as: UTF8.self).escapingControls
                throw .refused(.other, "the log has no entry \(expected), and behind it comes \(next)")
            }
            expected += 1
        }
        return page.entries.map(\.value)
    }
}
