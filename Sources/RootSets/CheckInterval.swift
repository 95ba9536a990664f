import Core

/// How long a storage that is in use is left alone between two checks of everything in it: so many times as long as the
/// last one took that checks take a small part of the time, whatever is stored.
package struct CheckInterval: Sendable {
    /// The shortest and the longest one.
    package var least = Duration.seconds(Limits.checkIntervalSecondsMin)
    package var most = Duration.seconds(Limits.checkIntervalSecondsMax)
    /// How many times as long as the last check it is in between.
    package var checks = Limits.checkIntervalChecks

    package init() {}

    /// One that is always as long, for tests.
    package init(always duration: Duration) {
        (least, most, checks) = (duration, duration, 0)
    }

    /// The pause behind a check that has taken `duration` and came to its end.
    func pause(after duration: Duration) -> Duration { min(max(least, duration * checks), most) }
}
