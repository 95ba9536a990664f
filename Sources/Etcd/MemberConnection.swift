import Core
import Foundation
import Platform
import TLS
import Transport

/// A connection to one member, which is made when it is needed and kept for the next request. One thread uses it.
final class MemberConnection {
    private let dialer: Dialer
    /// `nil`: there is no connection. Tests give it a stream of their own.
    var stream: (any ByteStream)?
    /// The answer that is being read; `nil`: none is.
    private var reader: AnswerReader?
    private var room = [UInt8](repeating: 0, count: 64 << 10)

    init(_ dialer: Dialer) { self.dialer = dialer }

    deinit { close() }

    /// What the messages of failures call the member.
    var name: String { "etcd at \(dialer.endpoint)" }

    func close() {
        stream?.close()
        stream = nil
        reader = nil
    }

    /// Sends a request and waits for its whole answer. `deadline`: in milliseconds of the system's monotonic clock.
    func exchange(
        _ path: String, _ body: [UInt8], _ fields: [String], until deadline: UInt64
    ) throws(EtcdFailure) -> (status: Int, body: [UInt8]) {
        let status = try begin(path, body, fields, bodyBytesMax: Limits.etcdAnswerBytesMax, until: deadline)
        var answer: [UInt8] = []
        while let bytes = try next(until: deadline) { answer += bytes }
        return (status, answer)
    }

    /// Sends a request and waits for the head of its answer. Returns the status. The body follows by `next`.
    func begin(
        _ path: String, _ body: [UInt8], _ fields: [String], bodyBytesMax: Int, until deadline: UInt64
    ) throws(EtcdFailure) -> Int {
        let stream = try connect(until: deadline)
        let host = dialer.endpoint
        var head = "POST \(path) HTTP/1.1\r\nHost: \(host)\r\nContent-Type: application/json\r\n"
        head += "Content-Length: \(body.count)\r\n"
        for field in fields { head += field + "\r\n" }
        reader = AnswerReader(bodyBytesMax: bodyBytesMax)
        try send(Array((head + "\r\n").utf8) + body, on: stream, until: deadline)
        switch try part(until: deadline) {
        case .head(let status): return status
        case .body, .end: preconditionFailure("an answer begins with its head")
        case nil: throw fail("does not answer in time")
        }
    }

    /// The next bytes of the body; `nil` when the answer is whole.
    ///
    /// Throws when the bytes do not come in time.
    func next(until deadline: UInt64) throws(EtcdFailure) -> [UInt8]? {
        guard let bytes = try nextIfAny(until: deadline) else { throw fail("does not answer in time") }
        return bytes.isEmpty ? nil : bytes
    }

    /// As `next`, but empty when the answer is whole, and `nil` when nothing came in time.
    func nextIfAny(until deadline: UInt64) throws(EtcdFailure) -> [UInt8]? {
        guard reader != nil else { return [] }
        switch try part(until: deadline) {
        case .body(let bytes): return bytes
        case .end(let keeps):
            let hasRest = reader?.hasRest ?? true
            reader = nil
            if !keeps || hasRest { close() }
            return []
        case .head: preconditionFailure("an answer has one head")
        case nil: return nil
        }
    }

    // MARK: Bytes

    private func connect(until deadline: UInt64) throws(EtcdFailure) -> any ByteStream {
        // A connection whose answer was not read to its end, or on which the member has said something unasked.
        if reader != nil || stream.map({ isReady($0.descriptor, POLLIN, milliseconds: 0) || $0.holdsBytes }) == true {
            close()
        }
        if let stream { return stream }
        let left = min(remaining(until: deadline), Limits.etcdConnectMilliseconds)
        guard left > 0 else { throw .unreachable("there is no time left to connect to \(name)") }
        do throws(ServiceError) {
            let stream = try dialer.connect(milliseconds: CInt(clamping: left))
            self.stream = stream
            return stream
        } catch {
            throw .unreachable(error.reason)
        }
    }

    private func send(_ bytes: [UInt8], on stream: any ByteStream, until deadline: UInt64) throws(EtcdFailure) {
        var sent = 0
        while sent < bytes.count {
            let transfer = bytes.withUnsafeBytes { stream.send(UnsafeRawBufferPointer(rebasing: $0[sent...])) }
            switch transfer {
            case .bytes(let count): sent += count
            case .wouldBlock(let interest):
                guard wait(stream, interest, until: deadline) else { throw fail("takes no request in time") }
            case .ended: throw fail("has closed the connection" + (stream.failure.map { ": \($0)" } ?? ""))
            }
        }
    }

    /// The next part of the answer; `nil` when it has not come in time.
    private func part(until deadline: UInt64) throws(EtcdFailure) -> AnswerReader.Part? {
        guard let stream else { throw fail("has closed the connection") }
        while true {
            do throws(AnswerReader.Fault) {
                if let part = try reader?.next() { return part }
            } catch {
                throw fail("sends no answer of HTTP: \(error)")
            }
            switch room.withUnsafeMutableBytes({ stream.receive(into: $0) }) {
            case .bytes(let count): reader?.append(room[..<count])
            case .wouldBlock(let interest):
                guard wait(stream, interest, until: deadline) else { return nil }
            case .ended: throw fail("has closed the connection" + (stream.failure.map { ": \($0)" } ?? ""))
            }
        }
    }

    /// The failure of a request of which a part was sent. Closes the connection.
    private func fail(_ what: String) -> EtcdFailure {
        close()
        return .unknown("\(name) \(what)")
    }

    private func remaining(until deadline: UInt64) -> Int {
        Int(clamping: Int64(clamping: deadline) - Int64(clamping: MonotonicClock.system.milliseconds))
    }

    /// Whether the stream can go on before the deadline.
    private func wait(_ stream: any ByteStream, _ interest: Interest, until deadline: UInt64) -> Bool {
        if stream.holdsBytes { return true }
        let left = remaining(until: deadline)
        guard left > 0 else { return false }
        return isReady(stream.descriptor, interest == .reading ? POLLIN : POLLOUT, milliseconds: left)
    }

    private func isReady(_ descriptor: CInt, _ events: CInt, milliseconds: Int) -> Bool {
        var waiting = pollfd(fd: descriptor, events: Int16(events), revents: 0)
        return poll(&waiting, 1, CInt(clamping: milliseconds)) != 0
    }
}
