import Core
import Testing

@Suite("Turns of prompt work and of work that follows")
struct KindTurnsTests {
    /// The turns while so many peers of each kind wait all the time.
    private func turns(
        _ count: Int, prompt: Int, following: Int, promptCost: Int = 1, followingCost: Int = 1
    ) -> [WorkKind] {
        var turns = KindTurns()
        return (0..<count).map { _ in
            let kind = turns.next(promptPeers: prompt, followingPeers: following)
            turns.note(kind, cost: kind == .prompt ? promptCost : followingCost)
            return kind
        }
    }

    @Test(
        "Work that follows gets its peers' part of the turns, but half at most",
        arguments: [(1, 1, 50), (1, 100, 50), (4, 100, 50), (4, 1, 20), (99, 1, 1), (3, 2, 40), (101, 100, 50)])
    func parts(prompt: Int, following: Int, percent: Int) {
        let part = turns(10_000, prompt: prompt, following: following).count { $0 == .following }
        #expect(abs(part - percent * 100) <= 100)
    }

    @Test(
        "The parts are those of what turns cost",
        arguments: [(1, 1, 15, 170, 50), (1, 100, 15, 170, 50), (10, 1, 15, 170, 9), (4, 1, 30, 10, 20)])
    func costs(prompt: Int, following: Int, promptCost: Int, followingCost: Int, percent: Int) {
        let kinds = turns(
            20_000, prompt: prompt, following: following, promptCost: promptCost, followingCost: followingCost)
        let own = kinds.count { $0 == .following } * followingCost
        let all = own + kinds.count { $0 == .prompt } * promptCost
        #expect(abs(own * 100 - percent * all) <= all)
    }

    @Test("No turn of work that follows follows another one, also behind one of prompt work that was dear")
    func waits() {
        for prompt in 1...20 {
            for following in 1...20 {
                let kinds = turns(500, prompt: prompt, following: following, promptCost: 64)
                for place in 1..<kinds.count { #expect(kinds[place - 1] == .prompt || kinds[place] == .prompt) }
            }
        }
    }

    @Test("Work that follows waits for one turn of each prompt peer at most")
    func share() {
        for prompt in 1...20 {
            for following in 1...20 {
                let kinds = turns(500, prompt: prompt, following: following)
                let longest = kinds.split(separator: .following, omittingEmptySubsequences: false).map(\.count).max()
                #expect(longest ?? 0 <= prompt)
            }
        }
    }

    @Test("A kind that is alone has all turns, and is in debt for none of them")
    func alone() {
        #expect(turns(10, prompt: 3, following: 0).allSatisfy { $0 == .prompt })
        var turns = KindTurns()
        for _ in 0..<1000 {
            #expect(turns.next(promptPeers: 0, followingPeers: 3) == .following)
            turns.note(.following, cost: 100)
        }
        let kinds = (0..<4).map { _ in
            let kind = turns.next(promptPeers: 1, followingPeers: 3)
            turns.note(kind, cost: 1)
            return kind
        }
        #expect(kinds == [.prompt, .following, .prompt, .following])
    }
}
