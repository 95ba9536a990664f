import Core
import RootgateClient
import Transport
import Wire

/// The connection that posts notices and counts the answers.
///
/// Sendable without the compiler's proof: only the loop's thread touches it, which is asserted.
final class NoticePoster: ConnectionHandler, @unchecked Sendable {
    private let connection: Connection
    /// The requests' bodies without the mutation's identifier, which is new for each request.
    private let bodies: [[UInt8]]
    private let posts: Int
    private let inFlightMax: Int
    private let tally: NoticeTally
    private var allowed = 0
    private var sent = 0
    private var answered = 0

    init(_ connection: Connection, _ posts: [[UInt8]], posts count: Int, inFlightMax: Int, _ tally: NoticeTally) {
        precondition(!posts.isEmpty && count >= 0 && inFlightMax > 0, "there is nothing to post, or no way to")
        self.connection = connection
        bodies = posts.map { json in
            var body: [UInt8] = []
            CollaborationCall(identifier: MutationIdentifier(0), name: PostNotices.name, json: json).append(to: &body)
            return Array(body.dropFirst(Limits.mutationIdentifierBytes))
        }
        self.posts = count
        self.inFlightMax = inFlightMax
        self.tally = tally
    }

    /// Sends posts until `count` have been sent in all.
    func allow(_ count: Int) {
        connection.assertOnThread()
        allowed = min(count, posts)
        if posts == 0 { tally.endPosting() }
        send()
    }

    private func send() {
        var bytes: [UInt8] = []
        while sent < min(allowed, answered + inFlightMax) {
            FrameWriter.append(
                .request, Operation.collaborate.rawValue, requestID: UInt64(sent), to: &bytes
            ) {
                $0.appendInteger(MutationIdentifier.random().value)
                $0 += bodies[sent % bodies.count]
            }
            sent += 1
        }
        if !bytes.isEmpty { connection.send(bytes) }
    }

    func received(_ buffer: ReceiveBuffer, _ range: Range<Int>) -> Transport.Progress {
        connection.assertOnThread()
        let progress = tally.forEachAnswer(in: buffer.bytes(range), on: connection) { header, body in
            guard header.kind == .answer else { return tally.fail(body) }
            answered += 1
        }
        tally.posted.store(answered, ordering: .relaxed)
        if answered == posts { tally.endPosting() }
        send()
        return progress
    }

    var isBusy: Bool { true }

    func drained() {}

    func closed() {
        tally.fail(ServiceError(.connectionLost, "the poster's connection was lost"))
    }
}
