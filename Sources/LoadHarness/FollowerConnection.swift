import Core
import Dispatch
import Foundation
import Transport
import Wire

/// A client that reads one feed and waits for each next page.
struct Follower: Sendable {
    let query: NoticeQuery
    var feed: FollowedFeed
}

/// The followers that share one connection.
///
/// Sendable without the compiler's proof: only the loop's thread touches it, which is asserted.
final class FollowerConnection: ConnectionHandler, @unchecked Sendable {
    private let connection: Connection
    private let loop: EventLoop
    private let tally: NoticeTally
    private var followers: [Follower]

    private static let pauseMilliseconds = 100

    init(_ connection: Connection, _ loop: EventLoop, _ followers: [Follower], _ tally: NoticeTally) {
        self.connection = connection
        self.loop = loop
        self.followers = followers
        self.tally = tally
    }

    func queryAll() {
        query(Array(followers.indices))
    }

    private func query(_ numbers: [Int]) {
        connection.assertOnThread()
        guard !numbers.isEmpty else { return }
        var bytes: [UInt8] = []
        for number in numbers {
            let follower = followers[number]
            FrameWriter.append(
                .request, Operation.collaborate.rawValue, requestID: UInt64(number), to: &bytes
            ) { follower.query.append(after: follower.feed.after, to: &$0) }
        }
        connection.send(bytes)
    }

    func received(_ buffer: ReceiveBuffer, _ range: Range<Int>) -> Transport.Progress {
        connection.assertOnThread()
        var answered: [Int] = []
        defer { query(answered) }
        return tally.forEachAnswer(in: buffer.bytes(range), on: connection) { header, body in
            let number = Int(truncatingIfNeeded: header.requestID)
            guard followers.indices.contains(number) else { return tally.fail(malformedAnswer) }
            if header.kind == .answer {
                take(NoticeNumbers(body), for: number)
                answered.append(number)
            } else {
                refused(body, number)
            }
        }
    }

    private func take(_ page: NoticeNumbers, for number: Int) {
        tally.misplaced.add(followers[number].feed.take(page), ordering: .relaxed)
        tally.delivered.add(page.places.count, ordering: .relaxed)
        if let date = page.date {
            let latency = Date().timeIntervalSince1970 * 1000 - Double(date)
            tally.latency.withLock { $0.record(UInt64(max(0, latency) * 1e6)) }
        }
    }

    /// Repeats the query a little later when the service is busy; every other error ends the run.
    private func refused(_ body: UnsafeRawBufferPointer, _ number: Int) {
        do throws(ServiceError) {
            let error = try FrameWriter.decodeError(body)
            guard error.code == .busy else { return tally.fail(error) }
            let loop = loop
            let pause = error.detail > 0 ? Int(error.detail) : FollowerConnection.pauseMilliseconds
            DispatchQueue.global().asyncAfter(deadline: .now() + .milliseconds(pause)) {
                loop.execute { self.query([number]) }
            }
        } catch {
            tally.fail(error)
        }
    }

    var isBusy: Bool { true }

    func drained() {}

    func closed() {
        tally.fail(ServiceError(.connectionLost, "the connection of some followers was lost"))
    }
}
