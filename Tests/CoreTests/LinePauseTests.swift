import Core
import Testing

@Suite("The pause between two lines of the log")
struct LinePauseTests {
    @Test("A line is due at first, and again when the pause is over")
    func pause() {
        var pause = LinePause(seconds: 2)
        let due = [0, 1, 1999, 2000, 2001, 3999, 4000].filter { pause.ends(at: $0) }
        #expect(due == [0, 2000, 4000])
    }

    @Test("A time before that of the last line is within the pause")
    func earlier() {
        var pause = LinePause(seconds: 1)
        let due = [60_000, 59_999, 0, 61_000].filter { pause.ends(at: $0) }
        #expect(due == [60_000, 61_000])
    }
}
