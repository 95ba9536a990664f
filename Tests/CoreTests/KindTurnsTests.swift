import Core
import Testing

@Suite("Turns of prompt work and of work that follows")
struct KindTurnsTests {
    /// The turns while so many peers of each kind wait all the time.
    private func turns(_ count: Int, prompt: Int, following: Int) -> [WorkKind] {
        var turns = KindTurns()
        return (0..<count).map { _ in
            let kind = turns.next(promptPeers: prompt, followingPeers: following)
            turns.note(kind)
            return kind
        }
    }

    @Test(
        "Work that follows gets its peers' part of the turns, but half at most",
        arguments: [(1, 1, 50), (1, 100, 50), (4, 100, 50), (4, 1, 20), (99, 1, 1), (3, 2, 33)])
    func parts(prompt: Int, following: Int, percent: Int) {
        let part = turns(10_000, prompt: prompt, following: following).count { $0 == .following }
        #expect(abs(part - percent * 100) <= 100)
    }

    @Test("Prompt work waits for one turn of the other kind, and the other kind for one turn of each prompt peer")
    func waits() {
        for prompt in 1...20 {
            for following in 1...20 {
                let kinds = turns(500, prompt: prompt, following: following)
                for place in 1..<kinds.count { #expect(kinds[place - 1] == .prompt || kinds[place] == .prompt) }
                let longest = kinds.split(separator: .following, omittingEmptySubsequences: false).map(\.count).max()
                #expect(longest ?? 0 <= prompt)
            }
        }
    }

    @Test("A kind that is alone has all turns")
    func alone() {
        #expect(turns(10, prompt: 0, following: 3).allSatisfy { $0 == .following })
        #expect(turns(10, prompt: 3, following: 0).allSatisfy { $0 == .prompt })
    }
}
