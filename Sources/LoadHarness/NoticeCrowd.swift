import Core
import Dispatch
import Foundation
import Platform
import RootgateClient
import Synchronization
import Transport
import Wire

/// What came of a run so far.
final class NoticeTally: Sendable {
    let posted = Atomic<Int>(0)
    let delivered = Atomic<Int>(0)
    /// Notices that came twice or out of order.
    let misplaced = Atomic<Int>(0)
    /// From before a post was sent to when a follower had its notices, in nanoseconds.
    let latency = Mutex(Histogram())
    /// Why the run can't go on.
    let failure = Mutex<ServiceError?>(nil)
    let isOver = Atomic<Bool>(false)
    /// Ends when every post is answered, or the run can't go on.
    let posting: AsyncStream<Never>
    private let endOfPosting: AsyncStream<Never>.Continuation

    init() {
        (posting, endOfPosting) = AsyncStream.makeStream()
    }

    func fail(_ error: ServiceError) {
        failure.withLock { $0 = $0 ?? error }
        endOfPosting.finish()
    }

    func endPosting() {
        endOfPosting.finish()
    }
}

/// The live followers of a run and one who posts, on connections of their own.
///
/// They share the cores with the service as a rule, so they are made to cost little: one thread serves all
/// connections, requests are written beforehand but for a number, those of one moment are sent together, and of a page
/// only the numbers are read that show that nothing was lost.
final class NoticeCrowd: Sendable {
    /// A feed that is followed, from where on, and what is posted there again and again, as JSON.
    struct Place: Sendable {
        let collaboration: CollaborationIdentifier
        let begin: UInt64
        let post: [UInt8]
    }

    private let endpoint: Endpoint
    private let places: [Place]
    private let tally: NoticeTally
    private let loop: EventLoop

    /// Throws `internalFault` when the system has no descriptors left.
    init(_ endpoint: Endpoint, _ places: [Place], _ tally: NoticeTally) throws(ServiceError) {
        (self.endpoint, self.places, self.tally) = (endpoint, places, tally)
        loop = try .startedForClient(name: "notice crowd")
    }

    /// Connects, and has `count` followers ask, those of each place in turn. Blocks.
    ///
    /// Throws `connectionRefused` or `internalFault`.
    func follow(_ count: Int, connections: Int) throws(ServiceError) {
        let questions = try places.map { place throws(ServiceError) in try NoticeQuestion(place.collaboration) }
        var rows = [[Follower]](repeating: [], count: connections)
        for number in 0..<count {
            let place = number % places.count
            rows[number % connections].append(
                Follower(question: questions[place], feed: FollowedFeed(after: places[place].begin)))
        }
        let (loop, tally) = (loop, tally)
        for followers in rows {
            let descriptor = try Socket.connect(to: endpoint, milliseconds: 5000)
            Connection.open(descriptor, on: loop) { connection in
                let row = FollowerRow(connection, loop, followers, tally)
                loop.execute { row.askAll() }
                return row
            }
        }
    }

    /// Connects, and posts `posts` times on each place in turn, with up to `inFlight` posts unanswered, at no more than
    /// `perSecond`. Blocks until it has begun.
    ///
    /// Throws `connectionRefused`.
    func post(_ posts: Int, inFlight: Int, perSecond: Double) throws(ServiceError) {
        let descriptor = try Socket.connect(to: endpoint, milliseconds: 5000)
        let (loop, tally, bodies) = (loop, tally, places.map(\.post))
        Connection.open(descriptor, on: loop) { connection in
            let poster = Poster(connection, bodies, posts: posts, inFlightMax: inFlight, tally)
            if perSecond.isFinite {
                let thread = Thread { NoticeCrowd.pace(poster, posts, perSecond, loop, tally) }
                thread.name = "notice pace"
                thread.start()
            } else {
                loop.execute { poster.allow(posts) }
            }
            return poster
        }
    }

    /// Lets posts go when they are due, those of a millisecond together.
    private static func pace(
        _ poster: Poster, _ posts: Int, _ perSecond: Double, _ loop: EventLoop, _ tally: NoticeTally
    ) {
        System.sharpenTimers()
        let begin = LoadRun.now
        var due = 1
        while !tally.isOver.load(ordering: .relaxed) {
            let count = due
            loop.execute { poster.allow(count) }
            guard due < posts else { return }
            let next = max(begin + UInt64(Double(due) / perSecond * 1e9), LoadRun.now + 1_000_000)
            while !tally.isOver.load(ordering: .relaxed), case let now = LoadRun.now, now < next {
                // Not long at a time: the run may be over before the next post is due.
                usleep(UInt32(min(next - now, 200_000_000) / 1000))
            }
            due = min(posts, max(due + 1, Int(Double(LoadRun.now - begin) / 1e9 * perSecond) + 1))
        }
    }

    /// Closes the connections; nothing is counted after this. Blocks.
    func stop() {
        tally.isOver.store(true, ordering: .relaxed)
        loop.stop()
    }
}

/// Posts, and counts the answers.
///
/// Sendable without the compiler's proof: touched on the loop's thread only.
private final class Poster: ConnectionHandler, @unchecked Sendable {
    private let connection: Connection
    /// The requests' bodies, behind the mutation's identifier.
    private let bodies: [[UInt8]]
    private let posts: Int
    private let inFlightMax: Int
    private let tally: NoticeTally
    private var allowed = 0
    private var sent = 0
    private var answered = 0

    init(_ connection: Connection, _ posts: [[UInt8]], posts count: Int, inFlightMax: Int, _ tally: NoticeTally) {
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

    /// Has so many posts sent, all in all.
    func allow(_ count: Int) {
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

extension NoticeTally {
    /// The run can't go on because of an error answer with this body.
    func fail(_ body: UnsafeRawBufferPointer) {
        do throws(ServiceError) {
            fail(try FrameWriter.decodeError(body))
        } catch {
            fail(error)
        }
    }
}

extension NoticeTally {
    /// Hands on every whole answer, also errors, that was received, with its body. A frame that can't be read fails the
    /// run and closes the connection.
    fileprivate func forEachAnswer(
        in bytes: UnsafeRawBufferPointer, on connection: Connection,
        _ take: (FrameHeader, UnsafeRawBufferPointer) -> Void
    ) -> Transport.Progress {
        var frames = FrameReader(bytes, expecting: [.answer, .error])
        while let frame = frames.next() { take(frame.header, frame.body) }
        if let violation = frames.violation {
            fail(violation.error)
            connection.close()
        }
        return Transport.Progress(consumed: frames.consumed, nextFrameBytes: frames.nextFrameBytes)
    }
}

/// One who follows a feed.
private struct Follower: Sendable {
    let question: NoticeQuestion
    var feed: FollowedFeed
}

/// The followers of one connection.
///
/// Sendable without the compiler's proof: touched on the loop's thread only.
private final class FollowerRow: ConnectionHandler, @unchecked Sendable {
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

    func askAll() {
        ask(Array(followers.indices))
    }

    private func ask(_ numbers: [Int]) {
        guard !numbers.isEmpty else { return }
        var bytes: [UInt8] = []
        for number in numbers {
            let follower = followers[number]
            FrameWriter.append(
                .request, Operation.collaborate.rawValue, requestID: UInt64(number), to: &bytes
            ) { follower.question.append(after: follower.feed.after, to: &$0) }
        }
        connection.send(bytes)
    }

    func received(_ buffer: ReceiveBuffer, _ range: Range<Int>) -> Transport.Progress {
        var answered: [Int] = []
        defer { ask(answered) }
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

    /// A service that is busy is asked again, a little later.
    private func refused(_ body: UnsafeRawBufferPointer, _ number: Int) {
        do throws(ServiceError) {
            let error = try FrameWriter.decodeError(body)
            guard error.code == .busy else { return tally.fail(error) }
            let loop = loop
            DispatchQueue.global().asyncAfter(deadline: .now() + .milliseconds(FollowerRow.pauseMilliseconds)) {
                loop.execute { self.ask([number]) }
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

/// The question for the notices of a collaboration, written once but for where the page begins.
struct NoticeQuestion: Sendable {
    private static let waitMilliseconds = 20_000
    /// Around the sequence.
    private let start: [UInt8]
    private let end: ArraySlice<UInt8>

    /// Throws `internalFault`.
    init(_ collaboration: CollaborationIdentifier) throws(ServiceError) {
        let request = ReadNotices(
            .collaboration(collaboration), after: 0, waitMilliseconds: NoticeQuestion.waitMilliseconds)
        let json = try JSON.encode(request)
        let before = Array(#"{"after":"#.utf8)
        guard json.starts(with: before + [UInt8(ascii: "0")]) else {
            throw ServiceError(.internalFault, "a question's JSON does not begin with its place")
        }
        var start: [UInt8] = []
        CollaborationCall(identifier: .random(), name: ReadNotices.name, json: before).append(to: &start)
        self.start = start
        end = json.dropFirst(before.count + 1)
    }

    /// Appends the body of the request.
    func append(after sequence: UInt64, to bytes: inout [UInt8]) {
        bytes += start
        bytes += String(sequence).utf8
        bytes += end
    }
}

/// How far a feed was read.
package struct FollowedFeed: Sendable {
    /// Where the next page begins.
    package private(set) var after: UInt64
    /// The last notice that came: its post's sequence, and its place in it.
    private var last: (sequence: UInt64, place: UInt64)

    package init(after: UInt64) {
        self.after = after
        last = (after, 0)
    }

    /// Goes on with the next page, and returns how many of its notices are not where they should be: came twice, out of
    /// order, or without the one before them in their post.
    package mutating func take(_ page: NoticeNumbers) -> Int {
        var misplaced = 0
        for (sequence, place) in page.places {
            let isNext = sequence > last.sequence ? place == 0 : sequence == last.sequence && place == last.place + 1
            if !isNext { misplaced += 1 }
            last = (sequence, place)
        }
        after = page.next
        return misplaced
    }
}

/// The numbers of a page of notices that show that nothing was lost.
///
/// They are found by their names: a name in quotes with a colon behind it is nothing else in JSON, whose texts have no
/// quotes but escaped ones. A post's sequence stands before its notices.
package struct NoticeNumbers {
    /// Of each notice: its post's sequence, and its place in it.
    package private(set) var places: [(sequence: UInt64, place: UInt64)] = []
    /// When the first post was made, in milliseconds since 1970.
    package private(set) var date: UInt64?
    /// Where the next page begins.
    package private(set) var next: UInt64 = 0

    private static let names: [StaticString] = [#""sequence":"#, #""place":"#, #""next":"#, #""date":"#]

    package init(_ json: UnsafeRawBufferPointer) {
        var sequence: UInt64 = 0
        var index = 0
        while index < json.count {
            guard json[index] == UInt8(ascii: "\"") else {
                index += 1
                continue
            }
            let rest = UnsafeRawBufferPointer(rebasing: json[index...])
            guard let name = NoticeNumbers.names.firstIndex(where: { NoticeNumbers.isName($0, at: rest) }) else {
                index += 1
                continue
            }
            index += NoticeNumbers.names[name].utf8CodeUnitCount
            var number: UInt64 = 0
            while index < json.count, case let digit = json[index] &- UInt8(ascii: "0"), digit < 10 {
                number = number &* 10 &+ UInt64(digit)
                index += 1
            }
            switch name {
            case 0: sequence = number
            case 1: places.append((sequence, number))
            case 2: next = number
            default: date = date ?? number
            }
        }
    }

    private static func isName(_ name: StaticString, at bytes: UnsafeRawBufferPointer) -> Bool {
        guard bytes.count >= name.utf8CodeUnitCount else { return false }
        return name.withUTF8Buffer { $0.elementsEqual(bytes[..<$0.count]) }
    }
}
