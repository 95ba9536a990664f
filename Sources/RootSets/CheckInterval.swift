import Core

/// How long a storage that is in use is left alone between two checks of everything in it: so many times as long as the
/// last one took that checks take a small part of the time, whatever is stored.
struct CheckInterval {
    /// The shortest one.
    let least: Duration

    /// The pause behind a check that took `duration`. `isDone`: whether it came to its end. One that was given up
    /// because it would leave the service without room is not tried again soon.
    func pause(after duration: Duration, isDone: Bool) -> Duration {
        let most = Duration.seconds(Limits.checkIntervalSecondsMax)
        return isDone ? min(max(least, duration * Limits.checkIntervalChecks), most) : max(least, most)
    }
}
