import Core
import Foundation
import TLS
import TestSupport
import Testing
import Transport

@testable import Etcd

/// Requests to something that is no good member: what is known of their effect afterwards.
@Suite("Members that fail") struct MemberConnectionTests {
    /// Accepts connections, reads some bytes of each and sends some, then closes it unless it is to stay silent.
    private final class FalseMember: Sendable {
        private let acceptor: Acceptor
        private let connections = Shared<[CInt]>([])
        private let count = Shared(0)

        init(sends answers: [String?]) throws {
            let (answers, connections, count) = (answers, connections, count)
            acceptor = try Acceptor { accepted in
                let number = count.with { count in
                    count += 1
                    return count
                }
                var room = [UInt8](repeating: 0, count: 4096)
                _ = recv(accepted, &room, room.count, 0)
                guard let answer = answers[number - 1] else {
                    connections.with { $0.append(accepted) }
                    return number < answers.count
                }
                let bytes = Array(answer.utf8)
                var sent = 0
                while sent < bytes.count {
                    let count = bytes[sent...].withUnsafeBytes {
                        send(accepted, $0.baseAddress, $0.count, CInt(MSG_NOSIGNAL))
                    }
                    guard count > 0 else { break }
                    sent += count
                }
                shutdown(accepted, CInt(SHUT_WR))
                _ = recv(accepted, &room, room.count, 0)
                close(accepted)
                return number < answers.count
            }
        }

        deinit {
            for descriptor in connections.value { close(descriptor) }
        }

        var endpoint: Endpoint { acceptor.endpoint }

        /// Connections that were accepted.
        var visits: Int { count.value }
    }

    private static func answer(_ body: String, status: String = "200 OK") -> String {
        "HTTP/1.1 \(status)\r\nContent-Length: \(body.utf8.count)\r\n\r\n\(body)"
    }

    private static let key = Array("k".utf8)

    /// What creating a key comes to at such a member.
    private func outcome(_ answers: [String?], milliseconds: UInt64 = 5000) throws -> EtcdFailure? {
        let member = try FalseMember(sends: answers)
        let session = EtcdSession(try EtcdMembers([member.endpoint]))
        return thrown(EtcdFailure.self) {
            _ = try session.create(
                Self.key, [1], after: .key(Self.key), readingTo: [255], limit: 1, milliseconds: milliseconds)
        }
    }

    @Test("A member that nobody reaches has done nothing")
    func unreachable() throws {
        let session = EtcdSession(try EtcdMembers([Endpoint(host: "127.0.0.1", port: 1)]))
        let failure = thrown(EtcdFailure.self) {
            _ = try session.create(Self.key, [1], after: .key(Self.key), readingTo: [255], limit: 1, milliseconds: 500)
        }
        guard case .unreachable? = failure else {
            Issue.record("\(failure.map { "\($0)" } ?? "it was created")")
            return
        }
    }

    @Test(
        "Whoever may have done it and does not say so is unknown",
        arguments: [
            "closes at once": "", "half a head": "HTTP/1.1 200",
            "half a body": "HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\n{",
            "no HTTP": "SSH-2.0-x\r\n\r\n", "no JSON": answer("yes"), "JSON of another kind": answer("[]"),
            "neither yes nor what it read": answer("{}"), "a malformed number": answer(#"{"header":{"revision":"x"}}"#),
            "a base64 that is none": answer(
                #"{"responses":[{"response_range":{"kvs":[{"key":"***"}]}}]}"#),
            "an error without a code": answer("oops", status: "500 Internal Server Error"),
            "a time that was over": answer(
                #"{"error":"context deadline exceeded","code":4}"#, status: "504 Gateway Timeout"),
            "a leader that changed": answer(
                #"{"message":"etcdserver: leader changed","code":14}"#, status: "503 Service Unavailable"),
            "a proposal that was dropped": answer(
                #"{"message":"etcdserver: request timed out","code":14}"#, status: "503 Service Unavailable"),
        ])
    func unknown(_ name: String, _ text: String) throws {
        let failure = try outcome([text])
        guard case .unknown? = failure else {
            Issue.record("\(name): \(failure.map { "\($0)" } ?? "it was created")")
            return
        }
    }

    @Test("A member that is silent is given up at the deadline, and nobody knows what it did")
    func silent() throws {
        let begin = ContinuousClock.now
        guard case .unknown? = try outcome([nil], milliseconds: 300) else {
            Issue.record("a silent member has answered")
            return
        }
        #expect(ContinuousClock.now - begin >= .milliseconds(290))
    }

    @Test("A key that is there answers for itself: what stands behind the others' text is escaped")
    func refusalTexts() throws {
        let failure = try outcome([Self.answer(#"{"message":"a\u001b[31mb","code":7}"#, status: "403 Forbidden")])
        guard case .refused(.forbidden, let text)? = failure else {
            Issue.record("\(failure.map { "\($0)" } ?? "it was created")")
            return
        }
        #expect(!text.utf8.contains(0x1b), "\(text)")
    }

    @Test("A watch ends when one event, or all of an answer to a read, is longer than it may be")
    func tooLong() throws {
        let head = "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n"
        func answer(_ count: Int, _ end: String) -> String {
            head + String(count + end.utf8.count, radix: 16) + "\r\n" + String(repeating: " ", count: count) + end
                + "\r\n"
        }
        let range = EtcdSession.KeyRange(from: [1], to: [2])
        func event(_ count: Int) throws -> EtcdWatch.Event {
            let end = #"{"result":{"events":[{}]}}"#
            let member = try FalseMember(sends: [answer(count - end.utf8.count, end + "\n")])
            let session = EtcdSession(try EtcdMembers([member.endpoint]))
            return try session.watch(range, from: 0, milliseconds: 20_000).next(milliseconds: 20_000)
        }
        #expect(try event(Limits.etcdAnswerBytesMax) == .changed)
        #expect(try event(Limits.etcdAnswerBytesMax + 1) == .ended(reason: "the member sends too long an event"))
        func read(_ count: Int) throws -> EtcdFailure? {
            let member = try FalseMember(sends: [answer(count - 2, "{}") + "0\r\n\r\n"])
            let session = EtcdSession(try EtcdMembers([member.endpoint]))
            return thrown(EtcdFailure.self) { _ = try session.read(range, limit: 1, milliseconds: 3000) }
        }
        #expect(try read(Limits.etcdAnswerBytesMax) == nil)
        #expect(try read(Limits.etcdAnswerBytesMax + 1) != nil)
    }

    @Test("A lease may have so many seconds, and one with a second more is none")
    func leaseTimes() throws {
        let most = Limits.etcdLeaseSecondsMax
        for (whole, left, isLease) in [
            (most, most, true), (most + 1, 1, false), (9, most + 1, false), (9, .max, false),
        ] {
            let text = #"{"header":{"revision":"7"},"TTL":"\#(left)","grantedTTL":"\#(whole)"}"#
            let member = try FalseMember(sends: [Self.answer(text)])
            let session = EtcdSession(try EtcdMembers([member.endpoint]))
            let time = try session.time(ofLease: 5, milliseconds: 10_000)
            #expect(time.map { $0 == (whole, left) } ?? !isLease, "\(whole) \(left)")
            #expect((time != nil) == isLease, "\(whole) \(left)")
        }
    }

    @Test("A read goes on at the other members, and a change is sent once")
    func elsewhere() throws {
        let bad = try FalseMember(sends: ["", "", ""])
        let good = try FalseMember(sends: [Self.answer(#"{"header":{"revision":"7"}}"#)])
        let members = try EtcdMembers([bad.endpoint, good.endpoint])
        let page = try EtcdSession(members).read(
            EtcdSession.KeyRange(from: [1], to: [2]), limit: 1, milliseconds: 10_000)
        #expect(page == EtcdSession.Page(entries: [], hasMore: false, revision: 7))
        #expect(bad.visits == 1 && good.visits == 1)
        _ = thrown(EtcdFailure.self) {
            _ = try EtcdSession(members).create(
                Self.key, [1], after: .key(Self.key), readingTo: [255], limit: 1, milliseconds: 5000)
        }
        #expect(bad.visits == 2 && good.visits == 1)
    }
}
