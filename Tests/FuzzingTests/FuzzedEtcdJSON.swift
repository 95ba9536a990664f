import Core
import Foundation
import Hashing
import Transport

@testable import Cluster
@testable import Etcd

/// The JSON that members of etcd answer with, as the calls of a session and of the ordered log read it. The first byte
/// says which call it answers, the second one with which status; JSON follows. Later requests of the same call get the
/// same answer.
enum FuzzedEtcdJSON {
    static let subject = FuzzSubject("etcd-json", bytesMax: 1024, seeds: seeds) { input in
        guard input.count >= 2, let call = Call(rawValue: input[0]) else { return }
        let status = statuses[Int(input[1]) % statuses.count]
        let body = Array(input[2...])
        do {
            try call.check(body, status)
        } catch let failure as EtcdFailure {
            guard status != 200, !isUnreached(failure) else { return }
            let text = failure.description
            try demand(text == text.escapingControls, "a failure has control characters")
            try demand(text.utf8.count <= 400, "the text of a failure has \(text.utf8.count) bytes")
        }
    }

    private static let statuses = [200, 400, 401, 429, 503]

    private enum Call: UInt8 {
        case range, log, append, firstOfLog, leasedKey, keepAlive, time, lease, survey, alarms, watch, services, token

        /// Makes the call, and checks what it returns. Throws what the call throws.
        func check(_ body: [UInt8], _ status: Int) throws {
            let session = try FuzzedEtcdJSON.session(body, status)
            switch self {
            case .range: try FuzzedEtcdJSON.range(session, body)
            case .log: try FuzzedEtcdJSON.log(session, body)
            case .append: try FuzzedEtcdJSON.append(session, body)
            case .firstOfLog: try FuzzedEtcdJSON.firstOfLog(session)
            case .leasedKey: try FuzzedEtcdJSON.leasedKey(session)
            case .keepAlive: try FuzzedEtcdJSON.keepAlive(session)
            case .time: try FuzzedEtcdJSON.time(session)
            case .lease:
                let lease = try session.beginLease(seconds: 9, milliseconds: 0)
                try demand(lease != 0, "a lease has no number")
            case .survey: try FuzzedEtcdJSON.survey(session)
            case .alarms: try session.endAlarms(milliseconds: 0)
            case .watch: try FuzzedEtcdJSON.watch(session, body)
            case .services: try FuzzedEtcdJSON.services(session)
            case .token: try FuzzedEtcdJSON.token(body, status)
            }
        }
    }

    // MARK: A member

    /// A connection to a member that answers each request with the same bytes.
    private final class CannedStream: ByteStream {
        private let answer: [UInt8]
        private let rest = Lock<ArraySlice<UInt8>>([])

        init(_ answer: [UInt8]) { self.answer = answer }

        // No socket: the system tells of none that it has become readable.
        var descriptor: CInt { -1 }
        var holdsBytes: Bool { false }
        var peerCertificate: PeerCertificate? { nil }
        var failure: String? { nil }

        func receive(into room: UnsafeMutableRawBufferPointer) -> Transfer {
            rest.withLock { rest in
                let piece = rest.prefix(room.count)
                guard !piece.isEmpty else { return .ended }
                room.copyBytes(from: piece)
                rest = rest.dropFirst(piece.count)
                return .bytes(piece.count)
            }
        }

        func send(_ bytes: UnsafeRawBufferPointer) -> Transfer {
            rest.withLock { $0 = answer[...] }
            return .bytes(bytes.count)
        }

        func endSending() {}

        func close() {}
    }

    private static func session(
        _ body: [UInt8], _ status: Int = 200, _ members: EtcdMembers? = nil
    ) throws -> EtcdSession {
        // Nobody listens there.
        let session = EtcdSession(try members ?? EtcdMembers([Endpoint(path: "/nonexistent/etcd")]))
        let head = "HTTP/1.1 \(status) x\r\nContent-Length: \(body.count)\r\n\r\n"
        for connection in session.connections { connection.stream = CannedStream(Array(head.utf8) + body) }
        return session
    }

    /// Whether the member was not asked. When a signal comes as the connection is looked at, it is made anew, and
    /// nobody listens. libFuzzer's clock sends signals.
    private static func isUnreached(_ failure: EtcdFailure) -> Bool {
        if case .unreachable = failure { true } else { false }
    }

    /// What a call reads of what was written again, which it has to understand.
    private static func readAgain<Value>(_ json: [UInt8], _ call: (EtcdSession) throws -> Value) throws -> Value {
        do {
            return try call(session(json))
        } catch let failure as EtcdFailure where !isUnreached(failure) {
            throw Finding("what was read is refused when it is written again: \(failure)")
        }
    }

    // MARK: Keys

    private static let keys = EtcdSession.KeyRange(from: [1], to: [2])

    private static func range(_ session: EtcdSession, _ body: [UInt8]) throws {
        let page = try session.read(keys, limit: 3, milliseconds: 0)
        try demand(10 * page.entries.count <= body.count, "\(page.entries.count) entries of \(body.count) bytes")
        let size = page.entries.reduce(0) { $0 + $1.key.count + $1.value.count }
        try demand(4 * size <= 3 * body.count, "entries have \(size) bytes of \(body.count)")
        let again = try readAgain(json(page)) { try $0.read(keys, limit: 3, milliseconds: 0) }
        try demand(again == page, "a page is read in another way when it is written again")
    }

    private static let entry: [UInt8] = [1, 2, 3]

    private static func orderedLog(_ session: EtcdSession) throws -> OrderedLog {
        guard let name = LogName("gates") else { throw Finding("a name is not valid") }
        return OrderedLog(session, name: name)
    }

    private static func read(_ session: EtcdSession) throws -> OrderedLog.Reading {
        try orderedLog(session).read(from: 7, after: SHA256.hash(entry), milliseconds: 0)
    }

    /// The entries that are read follow one another from the number on that was asked for.
    private static func log(_ session: EtcdSession, _ body: [UInt8]) throws {
        let reading = try read(session)
        let pairs = pairs(in: body)
        var page = EtcdSession.Page(entries: [], hasMore: false, revision: 0)
        switch reading {
        case .entries(let entries, let hasMore):
            try demand(10 * entries.count <= body.count, "\(entries.count) entries of \(body.count) bytes")
            page.entries = following(entries)
            try demand(page.entries.map(\.key) == pairs.map { Array($0.key) }, "the log has other entries than it read")
            page.hasMore = hasMore && !entries.isEmpty
        case .removed(let first):
            try demand(first != 7, "an entry is there, and was removed")
            page.entries = [EtcdSession.Entry(key: key(first), value: [], revision: 0)]
            try demand(page.entries[0].key == pairs.first.map { Array($0.key) }, "the log begins with another entry")
        case .lost: break
        }
        // Where the log's head is the entry before, there are no others.
        let again = try readAgain(json(page, of: page.entries.isEmpty && reading != .lost), read)
        try demand(again == reading, "a log is read in another way when it is written again")
    }

    /// Entries of the log from number 7 on.
    private static func following(_ values: [[UInt8]]) -> [EtcdSession.Entry] {
        values.enumerated().map { EtcdSession.Entry(key: key(7 + UInt64($0)), value: $1, revision: 0) }
    }

    private static func key(_ number: UInt64) -> [UInt8] {
        let digits = String(number)
        return Array("rootgate/gates/log/\(String(repeating: "0", count: 20 - digits.count))\(digits)".utf8)
    }

    /// The keys and values that a transaction has read.
    private static func pairs(in body: [UInt8]) -> [KeyValue] {
        let answer = try? JSONDecoder().decode(CreateAnswer.self, from: Data(body))
        return answer?.responses?.first?.response_range?.kvs ?? []
    }

    private static func append(_ session: EtcdSession, _ body: [UInt8]) throws {
        func append(_ session: EtcdSession) throws -> OrderedLog.Outcome {
            try orderedLog(session).append(entry, as: 7, after: SHA256.hash([]), milliseconds: 0)
        }
        let outcome = try append(session)
        guard case .taken(let others) = outcome else {
            let isThere = pairs(in: body).first.map { Array($0.key) == key(7) } ?? false
            return try demand(outcome == .appended || !isThere, "an entry's number is free, and is not")
        }
        try demand(others.first.map { $0 != entry } ?? false, "the entry's number is taken by \(others)")
        let page = EtcdSession.Page(entries: following(others), hasMore: false, revision: 0)
        try demand(
            page.entries.map(\.key) == pairs(in: body).map { Array($0.key) }, "the log has other entries than it read")
        let again = try readAgain(json(page, of: false), append)
        try demand(again == outcome, "other entries are read in another way when they are written again")
    }

    private static func firstOfLog(_ session: EtcdSession) throws {
        guard let first = try orderedLog(session).first(milliseconds: 0) else { return }
        let entry = EtcdSession.Entry(key: key(first), value: [], revision: 0)
        let page = EtcdSession.Page(entries: [entry], hasMore: false, revision: 0)
        let again = try readAgain(json(page)) { try orderedLog($0).first(milliseconds: 0) }
        try demand(again == first, "the log's first number is read in another way when it is written again")
    }

    // MARK: Leases

    private static func leasedKey(_ session: EtcdSession) throws {
        let (found, witness) = try session.leasedKey([1], milliseconds: 0)
        let text = """
            {"header":\(json(witness)),
            "kvs":[{"key":"","mod_revision":"\(found.revision)","lease":"\(found.lease)"}]}
            """
        let again = try readAgain(Array(text.utf8)) { try $0.leasedKey([1], milliseconds: 0) }
        try demand(again == (found, witness), "a key with a lease is read in another way when it is written again")
    }

    private static func keepAlive(_ session: EtcdSession) throws {
        let (seconds, witness) = try session.keepAlive(lease: 5, milliseconds: 0)
        try demand(seconds > 0, "a lease is kept for \(seconds) s")
        let text = #"{"result":{"header":\#(json(witness)),"TTL":"\#(seconds)"}}"#
        let again = try readAgain(Array(text.utf8)) { try $0.keepAlive(lease: 5, milliseconds: 0) }
        try demand(again == (seconds, witness), "a lease is read in another way when it is written again")
    }

    private static func time(_ session: EtcdSession) throws {
        guard let (whole, left) = try session.time(ofLease: 5, milliseconds: 0) else { return }
        let range = 0...Limits.etcdLeaseSecondsMax
        let isRight = whole > 0 && range.contains(whole) && range.contains(left)
        try demand(isRight, "a lease of \(whole) s has \(left) s left")
    }

    // MARK: Members

    private static func survey(_ session: EtcdSession) throws {
        let statuses = session.survey(milliseconds: 1000)
        try demand(statuses.count == 1, "one member has \(statuses.count) statuses")
        try demand(statuses.allSatisfy { $0.map { $0.hasLeader || !$0.isLeader } ?? true }, "a leader knows no leader")
    }

    /// There are not more events than lines, and nothing follows the end.
    private static func watch(_ session: EtcdSession, _ body: [UInt8]) throws {
        let watch = try session.watch(keys, from: 0, milliseconds: 1000)
        var lines = body.count(where: { $0 == 10 })
        while true {
            switch watch.next(milliseconds: 0) {
            case .changed:
                lines -= 1
                try demand(lines >= 0, "there are more events than lines")
            case .silence: throw Finding("a watch whose answer has ended is silent")
            case .ended:
                guard case .ended = watch.next(milliseconds: 0) else { throw Finding("a watch has ended, and goes on") }
                return
            }
        }
    }

    private static func services(_ session: EtcdSession) throws {
        guard let name = LogName("gates") else { throw Finding("a name is not valid") }
        // What can't be read is read again for a while. So it is tried before, without that.
        let page = try session.read(keys, limit: 1, milliseconds: 0)
        let records = try Presence.records(name, session)
        try demand(records.count == page.entries.count, "\(records.count) services have \(page.entries.count) keys")
        for (_, record, lease) in records {
            try demand(lease != 0, "a service's key has no lease")
            try FuzzedCluster.check(record)
        }
    }

    /// A token becomes a part of the heads of requests, so it is one word.
    private static func token(_ body: [UInt8], _ status: Int) throws {
        let members = try EtcdMembers(
            [Endpoint(path: "/nonexistent/etcd")], credentials: EtcdMembers.Credentials(name: "gate", password: "p"))
        func checkToken() throws {
            guard let token = members.token else { return }
            let isWord = !token.isEmpty && token.utf8.allSatisfy { $0 > 0x20 && $0 < 0x7f }
            try demand(isWord && status == 200, "a token is “\(token.escapingControls)”")
        }
        do {
            _ = try session(body, status, members).read(keys, limit: 1, milliseconds: 0)
            try demand(members.token != nil, "a user without a token is answered")
        } catch let failure as EtcdFailure {
            try checkToken()
            throw failure
        }
        try checkToken()
    }

    // MARK: Writing

    private static func json(_ witness: EtcdSession.Witness) -> String {
        #"{"member_id":"\#(witness.member)","raft_term":"\#(witness.term)"}"#
    }

    /// The answer that has the page. Like etcd's, it leaves out what is false, zero or empty.
    private static func json(_ page: EtcdSession.Page) -> [UInt8] { Array(text(of: page).utf8) }

    /// The answer of a transaction that has read the page. `holds`: whether its comparison held.
    private static func json(_ page: EtcdSession.Page, of holds: Bool) -> [UInt8] {
        let succeeded = holds ? #""succeeded":true,"# : ""
        return Array(#"{\#(succeeded)"responses":[{"response_range":\#(text(of: page))}]}"#.utf8)
    }

    private static func text(of page: EtcdSession.Page) -> String {
        func number(_ name: String, _ value: Int64) -> String { value == 0 ? "" : #","\#(name)":"\#(value)""# }
        let pairs = page.entries.map { entry in
            let value = entry.value.isEmpty ? "" : #","value":"\#(Data(entry.value).base64EncodedString())""#
            return #"{"key":"\#(Data(entry.key).base64EncodedString())"\#(value)"#
                + number("mod_revision", entry.revision) + number("lease", entry.lease) + "}"
        }
        var text = #"{"header":{"cluster_id":"3"\#(number("revision", page.revision))}"#
        if !pairs.isEmpty { text += #","kvs":[\#(pairs.joined(separator: ","))],"count":"\#(pairs.count)""# }
        return text + (page.hasMore ? #","more":true}"# : "}")
    }

    // MARK: Seeds

    private static func seeds() -> [[UInt8]] {
        func seed(_ call: Call, _ text: String, status: UInt8 = 0) -> [UInt8] {
            [call.rawValue, status] + Array(text.utf8)
        }
        let witness = #"{"member_id":"9372538179322589801","raft_term":"2","revision":"12"}"#
        let lease = #"{"result":{"header":\#(witness),"ID":"5","TTL":"9"}}"#
        let refusals = [
            #"{"error":"x","code":8,"message":"etcdserver: mvcc: database space exceeded"}"#,
            #"{"code":14,"message":"etcdserver: no leader\u0007"}"#, #"{"code":16}"#, "not JSON",
        ]
        return pageSeeds() + [
            seed(.range, "{}"), seed(.log, #"{"succeeded":true,"responses":[{"response_range":{}}]}"#),
            seed(.append, #"{"header":\#(witness),"succeeded":true,"responses":[{"response_put":{}}]}"#),
            seed(.leasedKey, #"{"header":\#(witness),"kvs":[{"key":"AQ==","mod_revision":7,"lease":"5"}]}"#),
            seed(.keepAlive, lease),
            seed(.keepAlive, #"{"error":{"grpc_code":5,"http_code":404,"message":"etcdserver: lease not found"}}"#),
            seed(.time, #"{"ID":"5","TTL":"4","grantedTTL":"9"}"#), seed(.lease, #"{"ID":"5","TTL":"9"}"#),
            seed(.survey, #"{"header":\#(witness),"version":"3.5.1","leader":"9372538179322589801","raftTerm":"2"}"#),
            seed(.alarms, #"{"alarms":[{"memberID":"7","alarm":"NOSPACE"},{"alarm":"CORRUPT"}]}"#),
            seed(
                .watch,
                #"{"result":{"created":true}}"# + "\n" + #"{"result":{"events":[{"type":"PUT"}]}}"# + "\n"
                    + #"{"result":{"canceled":true,"compact_revision":"4","cancel_reason":"compacted"}}"# + "\n"),
            seed(.watch, #"{"error":{"message":"no leader"}}"# + "\n"),
            seed(.token, #"{"token":"abc.7"}"#), seed(.token, #"{"token":"a\r\nb"}"#),
        ] + refusals.enumerated().map { seed([.range, .append, .watch, .token][$0], $1, status: UInt8($0) + 1) }
    }

    private static func pageSeeds() -> [[UInt8]] {
        let entries = following([[4, 5], entry])
        let ours = following([entry])
        let records = FuzzedCluster.gateRecords().enumerated().map { index, record in
            EtcdSession.Entry(
                key: Array("rootgate/gates/gate/\(index)".utf8), value: record.bytes, revision: 8, lease: 5)
        }
        func page(_ entries: [EtcdSession.Entry], hasMore: Bool = false) -> EtcdSession.Page {
            EtcdSession.Page(entries: entries, hasMore: hasMore, revision: 12)
        }
        func seed(_ call: Call, _ json: [UInt8]) -> [UInt8] { [call.rawValue, 0] + json }
        return [
            seed(.range, json(page(entries, hasMore: true))), seed(.firstOfLog, json(page(entries))),
            seed(.log, json(page(entries, hasMore: true), of: true)), seed(.log, json(page([]), of: false)),
            seed(.log, json(page(Array(entries.dropFirst())), of: true)), seed(.append, json(page(ours), of: false)),
            seed(.append, json(page(entries), of: false)), seed(.append, json(page([]), of: false)),
            seed(.services, json(page(Array(records.prefix(2))))), seed(.services, json(page(records.suffix(2)))),
        ]
    }
}
