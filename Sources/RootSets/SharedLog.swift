package import Core

/// A log of segments that several storages share. Its entries are numbered from 1 on, without a hole, and none ever
/// changes. Only the thread of the writer calls it, and waits for it.
package protocol SharedLog: Sendable {
    /// Appends a segment as `number`, if the log ends before that number with a segment of that hash. `hash`: `nil` for
    /// number 1.
    func append(_ segment: [UInt8], as number: UInt64, after hash: Digest?) -> SharedAppending

    /// Reads the log from a number on, some segments at most. It sees every segment that was appended before. `hash`:
    /// that of the segment before; `nil` for number 1.
    func read(from number: UInt64, after hash: Digest?) -> SharedReading

    /// The log's clock, in milliseconds. Any thread may read it.
    var now: UInt64 { get }

    /// For how many milliseconds of that clock a storage may be used after a question to the log that found nothing
    /// new. After that it may lack a removal.
    var stalenessMilliseconds: UInt64 { get }

    /// Between which times, in milliseconds of that clock, questions to the log count, and answers may be given by
    /// them: only then others know of this storage, and wait for it where they have to. `nil`: at no time.
    var presentTimes: ClosedRange<UInt64>? { get }

    /// Why others do not know of this storage; `nil`: they do, or nobody knows why not.
    var absence: String? { get }

    /// Why the log can't be the one that other storages have applied, so that nothing may be appended to it; `nil`:
    /// nobody knows that it is not.
    var lostLog: String? { get }

    /// The last segment of the snapshot that this storage gives to others, which then need the log behind it; `nil`: it
    /// gives none.
    func gives(snapshot segment: UInt64?)

    /// Whether the log is kept behind the snapshot that this storage gives to others.
    var keepsSnapshot: Bool { get }

    /// Whether the next start puts another storage into the place of one that the log has left behind.
    var replacesStorage: Bool { get }

    /// A storage begins to follow the log. Called once.
    func begin(_ follower: SharedFollower)

    /// The storage has applied a segment.
    func applied(_ number: UInt64, bytes: Int)

    /// Calls `completion` once, on any thread, when every storage has applied the change with a sequence, or answers
    /// nothing any more; or with false when that is not known after so many milliseconds.
    func whenEverywhere(
        _ sequence: UInt64, within milliseconds: UInt64, _ completion: @escaping @Sendable (Bool) -> Void)

    /// Returns when the follower is called no more.
    func end()
}

/// For logs that tell nothing by themselves, and whose storages know nothing of each other.
extension SharedLog {
    package var presentTimes: ClosedRange<UInt64>? { 0...(.max) }

    package var absence: String? { nil }

    package var lostLog: String? { nil }

    package func gives(snapshot segment: UInt64?) {}
    package var keepsSnapshot: Bool { true }

    package var replacesStorage: Bool { false }

    package func begin(_ follower: SharedFollower) {}

    package func applied(_ number: UInt64, bytes: Int) {}

    package func whenEverywhere(
        _ sequence: UInt64, within milliseconds: UInt64, _ completion: @escaping @Sendable (Bool) -> Void
    ) {
        completion(false)
    }

    package func end() {}
}

extension SharedLog {
    /// Whether what a storage had of the log at one time may be told at another.
    func isRecent(_ asOf: UInt64, at now: UInt64) -> Bool {
        guard now <= asOf + stalenessMilliseconds, let times = presentTimes else { return false }
        return times.contains(asOf) && now <= times.upperBound
    }
}

/// What came of appending.
package enum SharedAppending: Equatable, Sendable {
    /// The segment is in the log for good. `asOf`: when this was asked, in milliseconds of the log's clock. The log
    /// ended before that number then.
    case appended(asOf: UInt64)
    /// The segment is not in the log, and will not be: others have the numbers from that one on. There may be more.
    case taken([[UInt8]])
    /// The segment is not in the log, and will not be: the log's end is elsewhere, so it has to be read.
    case misplaced
    /// The log has not answered. `isUnknown`: whether the segment may be in the log all the same, or come to be.
    case failed(reason: String, isUnknown: Bool)
}

/// What is in the log from a number on.
package enum SharedReading: Equatable, Sendable {
    /// The segments from that number on, one after the other; none when the log ends before it. `hasMore`: whether
    /// others follow. `asOf`: when this was asked.
    case segments([[UInt8]], hasMore: Bool, asOf: UInt64)
    /// The log begins behind that number: what was before it has been removed.
    case removed(first: UInt64)
    /// The log does not go on behind a segment of that hash, so it is another log, or has lost segments.
    case lost
    /// The log has not answered.
    case failed(reason: String)
}
