/// The pause between two lines of the log about what may happen often.
package struct LinePause: Sendable {
    private let milliseconds: UInt64
    private var last: UInt64?

    /// `seconds`: between two lines, at least.
    package init(seconds: UInt64) {
        milliseconds = seconds * 1000
    }

    /// Whether a line is due, which then counts as told. `now`: milliseconds of a monotonic clock; of several threads
    /// one may come with an earlier time than the one before.
    package mutating func ends(at now: UInt64) -> Bool {
        if let last, now < last + milliseconds { return false }
        last = now
        return true
    }
}
