import Core
import Foundation
import Transport

/// Requests to etcd, one at a time. Each call blocks until its answer is there or its time is over. One thread uses it.
///
/// Reads are linearizable: they see every change that was acknowledged before they began.
///
/// The time of a call is in milliseconds. A read, and what can be repeated without another effect, tries the members in
/// turn within its time. Every call throws `EtcdFailure`.
package final class EtcdSession {
    /// A key with its value.
    package struct Entry: Equatable, Sendable {
        package let key: [UInt8]
        package let value: [UInt8]
        /// The revision of etcd in which the value was written.
        package let revision: Int64
        /// The lease that the key ends with; 0: none.
        package var lease: Int64 = 0
    }

    /// Keys from a first one up to one behind the last, in the order of their bytes.
    package struct KeyRange: Equatable, Sendable {
        package var first: [UInt8]
        package var end: [UInt8]

        package init(from first: [UInt8], to end: [UInt8]) {
            self.first = first
            self.end = end
        }
    }

    /// Some of the entries of a range.
    package struct Page: Equatable, Sendable {
        package var entries: [Entry]
        /// Whether the range has more entries behind them.
        package var hasMore: Bool
        /// The revision of etcd when it was read.
        package var revision: Int64
    }

    /// What must be there when a key is created, or is asked for.
    package enum Predecessor: Equatable, Sendable {
        case key([UInt8])
        /// The key must have that value.
        case value([UInt8], of: [UInt8])
        /// The range must be empty.
        case nothing(in: KeyRange)
    }

    /// What came of creating a key.
    package enum Creation: Equatable, Sendable {
        case created(revision: Int64)
        /// The key exists. It is the first of the entries.
        case exists(Page)
        /// The key does not exist, and what must be there is not.
        case misplaced
    }

    /// Which member has answered, and the term that it was in. In a term one member leads at most. So when a member
    /// has confirmed in the same term, before and after something, that it knows all changes, it knew the one leader
    /// meanwhile.
    package struct Witness: Equatable, Sendable {
        let member: UInt64
        let term: Int64
    }

    /// How a key is that ends with a lease.
    package struct LeasedKey: Equatable, Sendable {
        /// The revision in which it was put last; 0: it does not exist.
        package let revision: Int64
        /// The lease that it ends with; 0: none.
        package let lease: Int64
    }

    /// How a member is.
    package struct Status: Equatable, Sendable {
        package let isLeader: Bool
        /// Whether the member knows a leader.
        package let hasLeader: Bool
        package let version: String
        /// Bytes of the member's database.
        package let databaseBytes: Int64
    }

    private let members: EtcdMembers
    let connections: [MemberConnection]
    /// The place of the member that the next request goes to.
    private var place: Int

    /// `first`: the place of the member that the first request goes to, so that sessions can be spread.
    package init(_ members: EtcdMembers, first: Int = 0) {
        self.members = members
        connections = members.dialers.map { MemberConnection($0) }
        place = abs(first) % connections.count
    }

    // MARK: Keys

    /// Reads entries of a range in the order of their keys, `limit` at most.
    package func read(_ range: KeyRange, limit: Int, milliseconds: UInt64) throws(EtcdFailure) -> Page {
        let answer: RangeAnswer = try repeated("/v3/kv/range", RangeRequest(range, limit: limit), milliseconds)
        return try page(answer)
    }

    /// Reads the value of a key; `nil` when there is no such key.
    package func read(_ key: [UInt8], milliseconds: UInt64) throws(EtcdFailure) -> Entry? {
        let answer: RangeAnswer = try repeated("/v3/kv/range", RangeRequest(key: Data(key)), milliseconds)
        return try page(answer).entries.first
    }

    /// Reads entries of a range in the order of their keys, `limit` at most, and tells whether something is there, both
    /// at the same moment.
    package func read(
        _ range: KeyRange, limit: Int, noting predecessor: Predecessor, milliseconds: UInt64
    ) throws(EtcdFailure) -> (page: Page, isThere: Bool) {
        let read = CreateRequest.Range(request_range: RangeRequest(range, limit: limit))
        let request = ReadRequest(compare: [comparison(predecessor)], success: [read], failure: [read])
        let answer: CreateAnswer = try repeated("/v3/kv/txn", request, milliseconds)
        guard let found = answer.responses?.first?.response_range else {
            throw malformed("a transaction that does not say what it read")
        }
        return (try page(found), answer.succeeded == true)
    }

    private func comparison(_ predecessor: Predecessor) -> Compare {
        switch predecessor {
        case .key(let key): Compare(key: Data(key), result: "GREATER")
        case .value(let value, let key): .value(of: key, is: value)
        case .nothing(let range): Compare(key: Data(range.first), range_end: Data(range.end))
        }
    }

    /// Puts a key that does not exist behind another one, with one request to one member, the leader if it is known.
    /// `head`: another key that gets a value then. Otherwise nothing is changed, and entries are read from the key on
    /// up to `end`.
    ///
    /// After `unknown` the key may have been put, and may still be: see `OrderedLog.append`, which finds out.
    package func create(
        _ key: [UInt8], _ value: [UInt8], after predecessor: Predecessor, head: (key: [UInt8], value: [UInt8])? = nil,
        readingTo end: [UInt8], limit: Int, milliseconds: UInt64
    ) throws(EtcdFailure) -> Creation {
        if let leader = members.leader { place = leader }
        let puts = [(key, value)] + [head].compactMap { $0 }
        let request = CreateRequest(
            compare: [Compare(key: Data(key)), comparison(predecessor)],
            success: puts.map { .init(request_put: PutRequest(key: Data($0.0), value: Data($0.1))) },
            failure: [CreateRequest.Range(request_range: RangeRequest(KeyRange(from: key, to: end), limit: limit))])
        do throws(EtcdFailure) {
            let answer: CreateAnswer = try self.answer("/v3/kv/txn", request, deadline(milliseconds))
            if answer.succeeded == true { return .created(revision: answer.header?.revision?.value ?? 0) }
            guard let range = answer.responses?.first?.response_range else {
                throw malformed("a transaction that does not say what it read")
            }
            var page = try page(range)
            guard page.entries.first?.key == key else { return .misplaced }
            page.revision = answer.header?.revision?.value ?? page.revision
            return .exists(page)
        } catch {
            members.found(leader: nil)
            turn()
            throw error
        }
    }

    /// Puts a key, which may exist. `lease`: the key ends with it; `nil`: it stays.
    package func put(_ key: [UInt8], _ value: [UInt8], lease: Int64?, milliseconds: UInt64) throws(EtcdFailure) {
        let request = PutRequest(key: Data(key), value: Data(value), lease: lease.map { LongInteger($0) })
        let _: HeaderAnswer = try repeated("/v3/kv/put", request, milliseconds)
    }

    /// Puts a key that was put last in a revision; 0: that does not exist. It ends with the lease. Returns the revision
    /// of the put; `nil`: the key was put last in another one, perhaps by an attempt of this call whose answer was
    /// lost. So a request that arrives late changes nothing any more.
    package func replace(
        _ key: [UInt8], from revision: Int64, with value: [UInt8], lease: Int64, milliseconds: UInt64
    ) throws(EtcdFailure) -> Int64? {
        let put = PutRequest(key: Data(key), value: Data(value), lease: LongInteger(lease))
        let request = ReplaceRequest(
            compare: [.revision(of: key, is: revision)], success: [CreateRequest.Put(request_put: put)])
        let answer: CreateAnswer = try repeated("/v3/kv/txn", request, milliseconds)
        guard answer.succeeded == true else { return nil }
        guard let revision = answer.header?.revision?.value else { throw malformed("a put without a revision") }
        return revision
    }

    /// How a key is, and who says so.
    package func leasedKey(_ key: [UInt8], milliseconds: UInt64) throws(EtcdFailure) -> (LeasedKey, Witness) {
        let answer: RangeAnswer = try repeated("/v3/kv/range", RangeRequest(key: Data(key)), milliseconds)
        let pair = answer.kvs?.first
        let found = LeasedKey(revision: pair?.mod_revision?.value ?? 0, lease: pair?.lease?.value ?? 0)
        return (found, try witness(answer.header))
    }

    private func witness(_ header: AnswerHeader?) throws(EtcdFailure) -> Witness {
        guard let member = header?.member_id?.value, let term = header?.raft_term?.value else {
            throw malformed("an answer without a member or a term")
        }
        return Witness(member: member, term: term)
    }

    /// Removes the keys of a range if another key exists. Returns whether it does.
    package func remove(
        _ range: KeyRange, ifExists key: [UInt8], milliseconds: UInt64
    ) throws(EtcdFailure) -> Bool {
        let deletion = DeleteRequest(key: Data(range.first), range_end: Data(range.end))
        let request = RemoveRequest(
            compare: [Compare(key: Data(key), result: "GREATER")],
            success: [RemoveRequest.Deletion(request_delete_range: deletion)])
        let answer: CreateAnswer = try repeated("/v3/kv/txn", request, milliseconds)
        return answer.succeeded == true
    }

    /// Lets etcd forget what keys were before a revision. Does nothing when it has forgotten that already.
    package func compact(before revision: Int64, milliseconds: UInt64) throws(EtcdFailure) {
        do throws(EtcdFailure) {
            let request = CompactRequest(revision: LongInteger(revision))
            let _: HeaderAnswer = try repeated("/v3/kv/compaction", request, milliseconds)
        } catch .refused(.compacted, _) {
            return
        }
    }

    // MARK: Leases

    /// Begins a lease that ends by itself after some seconds. Returns its number. When the answer is lost, a lease may
    /// be left that nobody knows; it ends by itself, too.
    package func beginLease(seconds: Int64, milliseconds: UInt64) throws(EtcdFailure) -> Int64 {
        let answer: LeaseAnswer = try repeated(
            "/v3/lease/grant", LeaseRequest(TTL: LongInteger(seconds)), milliseconds)
        guard let number = answer.ID?.value, number != 0 else { throw malformed("a lease without a number") }
        return number
    }

    /// Lets a lease last its whole time from now on. Returns that time in seconds, and who has taken the request.
    ///
    /// The others are not asked. So the leader of before, who has not heard of another one yet, may do it, too, and
    /// then it counts for nothing: see `keepAlive(_:lease:milliseconds:)`.
    ///
    /// Throws `refused` with `noLease` when the lease has ended.
    package func keepAlive(
        lease: Int64, milliseconds: UInt64
    ) throws(EtcdFailure) -> (seconds: Int64, witness: Witness) {
        let request = LeaseRequest(ID: LongInteger(lease))
        let answer: Streamed<LeaseAnswer> = try repeated("/v3/lease/keepalive", request, milliseconds)
        if let error = answer.error {
            throw EtcdFailure(status: error.http_code ?? 0, code: error.grpc_code, message: error.message ?? "")
        }
        // A lease that has ended is answered, too: without a time.
        guard let seconds = answer.result?.TTL?.value, seconds > 0 else {
            throw .refused(.noLease, "the lease \(lease) has ended")
        }
        return (seconds, try witness(answer.result?.header))
    }

    /// Lets the lease of a key last its whole time from the call on, and looks whether the key ends with that lease.
    /// Returns how the key is; `nil`: it is not known whether the lease lasts.
    package func keepAlive(
        _ key: [UInt8], lease: Int64, milliseconds: UInt64
    ) throws(EtcdFailure) -> LeasedKey? {
        let (_, before) = try leasedKey(key, milliseconds: milliseconds)
        let (_, witness) = try keepAlive(lease: lease, milliseconds: milliseconds)
        let (found, after) = try leasedKey(key, milliseconds: milliseconds)
        // Reads are confirmed by most members. So whoever leads in that term has kept the lease, and still led after
        // that: later leaders give every lease its whole time again.
        return before == witness && witness == after ? found : nil
    }

    /// How long a lease lasts when it is kept, and how much of that is left, both in seconds; `nil`: it has ended.
    package func time(
        ofLease lease: Int64, milliseconds: UInt64
    ) throws(EtcdFailure) -> (whole: Int64, left: Int64)? {
        let request = LeaseRequest(ID: LongInteger(lease))
        let answer: LeaseAnswer = try repeated("/v3/lease/timetolive", request, milliseconds)
        guard let left = answer.TTL?.value, (0...Limits.etcdLeaseSecondsMax).contains(left),
            let whole = answer.grantedTTL?.value, (1...Limits.etcdLeaseSecondsMax).contains(whole)
        else {
            return nil
        }
        return (whole, left)
    }

    /// Ends a lease, and the keys that were put with it. Does nothing when it has ended already.
    package func end(lease: Int64, milliseconds: UInt64) throws(EtcdFailure) {
        do throws(EtcdFailure) {
            let _: HeaderAnswer = try repeated("/v3/lease/revoke", LeaseRequest(ID: LongInteger(lease)), milliseconds)
        } catch .refused(.noLease, _) {
            return
        }
    }

    // MARK: Members

    /// Asks each member how it is; `nil` for those that don't answer. Later changes go to the leader that it finds.
    package func survey(milliseconds: UInt64) -> [Status?] {
        var statuses: [Status?] = []
        // A member that was cut off says for a while that it leads, in an older term.
        var leader: (place: Int, term: Int64)?
        for place in connections.indices {
            let answer =
                try? ask(place, "/v3/maintenance/status", EmptyRequest(), deadline(milliseconds))
                as StatusAnswer
            let status = answer.map { answer in
                let (leader, own) = (answer.leader?.value ?? 0, answer.header?.member_id?.value)
                return Status(
                    isLeader: leader != 0 && leader == own, hasLeader: leader != 0, version: answer.version ?? "",
                    databaseBytes: answer.dbSize?.value ?? 0)
            }
            let term = answer?.raftTerm?.value ?? 0
            if status?.isLeader == true, term >= leader?.term ?? 0 { leader = (place, term) }
            statuses.append(status)
        }
        members.found(leader: leader?.place)
        return statuses
    }

    /// Gives the room of removed keys back to the disks of the members, which counts for their limit: one member after
    /// the other, the leader last. A member answers nobody meanwhile, for about a second for 100 MiB. `milliseconds`:
    /// for each of them.
    ///
    /// Throws the failure of the first member that did not do it. Those behind it are not asked.
    package func defragment(milliseconds: UInt64) throws(EtcdFailure) {
        let statuses = survey(milliseconds: Limits.etcdSurveyMilliseconds)
        let leaderLast = statuses.indices.sorted { !isLeader(statuses[$0]) && isLeader(statuses[$1]) }
        for place in leaderLast {
            let end = deadline(milliseconds)
            let _: HeaderAnswer = try ask(place, "/v3/maintenance/defragment", EmptyRequest(), end)
        }
    }

    private func isLeader(_ status: Status?) -> Bool { status?.isLeader ?? false }

    /// Ends the alarms about space, so that etcd takes changes again. For when there is room, after `remove`,
    /// `compact` and `defragment`: etcd raises them again when there is none.
    package func endAlarms(milliseconds: UInt64) throws(EtcdFailure) {
        let alarms: AlarmAnswer = try repeated("/v3/maintenance/alarm", AlarmRequest(action: "GET"), milliseconds)
        for alarm in alarms.alarms ?? [] where alarm.alarm == "NOSPACE" {
            let request = AlarmRequest(action: "DEACTIVATE", memberID: alarm.memberID, alarm: alarm.alarm)
            let _: AlarmAnswer = try repeated("/v3/maintenance/alarm", request, milliseconds)
        }
    }

    // MARK: Watching

    /// Begins to watch a range from a revision on, at one member; 0: from now on. The session must not be used for
    /// anything else until the watch has ended.
    package func watch(
        _ range: KeyRange, from revision: Int64, milliseconds: UInt64
    ) throws(EtcdFailure) -> EtcdWatch {
        let create = WatchRequest.Create(
            key: Data(range.first), range_end: Data(range.end), start_revision: LongInteger(revision))
        let connection = connections[place]
        let end = deadline(milliseconds)
        // A deadline for the member would end the watch.
        do throws(EtcdFailure) {
            let status = try connection.begin(
                "/v3/watch", try encoded(WatchRequest(create_request: create)), fields(until: nil),
                bodyBytesMax: Int.max, until: end)
            if status != 200 {
                var body: [UInt8] = []
                while body.count < Limits.etcdHeadBytesMax, let more = try connection.next(until: end) { body += more }
                throw failure(status, body)
            }
        } catch {
            connection.close()
            turn()
            throw error
        }
        return EtcdWatch(connection) { [self] in turn() }
    }

    // MARK: Requests

    private func deadline(_ milliseconds: UInt64) -> UInt64 { MonotonicClock.system.milliseconds + milliseconds }

    /// The next request goes to the next member.
    private func turn() { place = (place + 1) % connections.count }

    /// A request that has no further effect when it is repeated: it is, at the other members, until one has answered or
    /// the time is over.
    private func repeated<Answer: Decodable>(
        _ path: String, _ request: some EtcdRequest, _ milliseconds: UInt64
    ) throws(EtcdFailure) -> Answer {
        let end = deadline(milliseconds)
        var attempts = 0
        while true {
            let left = end - min(end, MonotonicClock.system.milliseconds)
            // A member that is silent must not use up the time of the others.
            let part = max(1, left / UInt64(max(1, connections.count - attempts % connections.count)))
            do throws(EtcdFailure) {
                return try answer(path, request, MonotonicClock.system.milliseconds + part)
            } catch {
                attempts += 1
                turn()
                guard error.mayPassElsewhere, MonotonicClock.system.milliseconds < end else { throw error }
                // Each member had its turn: they may be electing a leader.
                if attempts % connections.count == 0 { usleep(20_000) }
            }
        }
    }

    /// Asks the present member. When the token is not taken any more, gets another one and asks again.
    private func answer<Answer: Decodable>(
        _ path: String, _ request: some EtcdRequest, _ end: UInt64
    ) throws(EtcdFailure) -> Answer {
        if members.credentials != nil, members.token == nil { try authenticate(until: end) }
        do throws(EtcdFailure) {
            return try ask(place, path, request, end)
        } catch .refused(.unauthenticated, _) where members.credentials != nil {
            try authenticate(until: end)
            return try ask(place, path, request, end)
        }
    }

    private func authenticate(until end: UInt64) throws(EtcdFailure) {
        guard let credentials = members.credentials else { return }
        let request = CredentialsRequest(name: credentials.name, password: credentials.password)
        let answer: TokenAnswer = try ask(place, "/v3/auth/authenticate", request, end, isAuthenticated: false)
        guard let token = answer.token, !token.isEmpty, token.utf8.allSatisfy({ (0x21...0x7e).contains($0) }) else {
            throw malformed("a user without a token")
        }
        members.took(token: token)
    }

    private func ask<Answer: Decodable>(
        _ place: Int, _ path: String, _ request: some EtcdRequest, _ end: UInt64, isAuthenticated: Bool = true
    ) throws(EtcdFailure) -> Answer {
        let (status, body) = try connections[place].exchange(
            path, try encoded(request), fields(until: end, isAuthenticated: isAuthenticated), until: end)
        guard status == 200 else { throw failure(status, body) }
        guard let answer = try? JSONDecoder().decode(Answer.self, from: Data(body)) else {
            throw malformed("an answer that can't be read")
        }
        return answer
    }

    private func fields(until end: UInt64?, isAuthenticated: Bool = true) -> [String] {
        // Without a leader a member would let the request wait.
        var fields = ["Grpc-Metadata-hasleader: true"]
        if let end {
            let now = MonotonicClock.system.milliseconds
            fields.append("Grpc-Timeout: \(min(max(1, end - min(end, now)), 99_999_999))m")
        }
        if isAuthenticated, let token = members.token { fields.append("Authorization: \(token)") }
        return fields
    }

    private func encoded(_ request: some EtcdRequest) throws(EtcdFailure) -> [UInt8] {
        do {
            let encoder = JSONEncoder()
            encoder.outputFormatting = .withoutEscapingSlashes
            return Array(try encoder.encode(request))
        } catch {
            throw .refused(.other, "a request can't be written as JSON: \(error)")
        }
    }

    private func failure(_ status: Int, _ body: [UInt8]) -> EtcdFailure {
        let answer = try? JSONDecoder().decode(ErrorAnswer.self, from: Data(body))
        let text = answer?.message ?? answer?.error ?? String(decoding: body.prefix(200), as: UTF8.self)
        return EtcdFailure(
            status: status, code: answer?.code, message: text.escapingControls.prefix(bytesMax: 300))
    }

    /// The answer of a request that may have had its effect.
    private func malformed(_ what: String) -> EtcdFailure { .unknown("\(connections[place].name) sends \(what)") }

    private func page(_ answer: RangeAnswer) throws(EtcdFailure) -> Page {
        Page(
            entries: (answer.kvs ?? []).map { pair in
                Entry(
                    key: Array(pair.key), value: Array(pair.value ?? Data()), revision: pair.mod_revision?.value ?? 0,
                    lease: pair.lease?.value ?? 0)
            }, hasMore: answer.more ?? false, revision: answer.header?.revision?.value ?? 0)
    }
}

extension EtcdFailure {
    /// Whether another member may do what this one has not done.
    fileprivate var mayPassElsewhere: Bool {
        switch self {
        case .unreachable, .unknown, .refused(.noLeader, _), .refused(.tooManyRequests, _): true
        case .refused: false
        }
    }
}

extension RangeRequest {
    fileprivate init(_ range: EtcdSession.KeyRange, limit: Int) {
        self.init(key: Data(range.first), range_end: Data(range.end), limit: LongInteger(Int64(limit)))
    }
}
