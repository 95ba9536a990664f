import Testing

@testable import RootSets

@Suite("Runs of free pages")
struct FreeRunsTests {
    /// `records`: what each transaction has freed, in descending order.
    private func runs(_ records: [[Int]]) -> FreeRuns {
        var runs = FreeRuns()
        for pages in records { pages.withUnsafeBufferPointer { runs.append($0) } }
        return runs
    }

    @Test("A run is found in what one transaction has freed, never across two of them")
    func neighbours() {
        #expect(!runs([]).has(1, behind: 0))
        #expect(runs([[9, 7, 6, 5, 2]]).has(3, behind: 0))
        #expect(!runs([[9, 7, 6, 5, 2]]).has(4, behind: 0))
        #expect(!runs([[9, 8], [7, 6]]).has(3, behind: 0))
        #expect(runs([[4]]).has(1, behind: 0) && !runs([[4]]).has(2, behind: 0))
    }

    @Test("For each page that it wants LMDB reads 60 lists and no more")
    func patience() {
        let late = runs([[Int]](repeating: [9, 7], count: 121) + [[5, 4, 3]])
        #expect(late.has(3, behind: 0) && !late.has(2, behind: 0) && late.has(1, behind: 0))
    }

    @Test("LMDB merges the lists that it has read, and takes the lowest pages of the first ones first")
    func merged() {
        let lists = [[9, 7, 3], [8, 6, 5], [20, 10]]
        #expect(FreeRuns.longest(in: lists, behind: 0) == 6)
        #expect(FreeRuns.longest(in: lists, behind: 2) == 3 && FreeRuns.longest(in: lists, behind: 4) == 1)
        #expect(FreeRuns.longest(in: lists, behind: 8) == 0 && FreeRuns.longest(in: [], behind: 0) == 0)
    }

    @Test("A record names its pages or none, and one that says more than it has is damaged")
    func records() {
        func listed(_ words: [Int]) -> [Int]? {
            words.withUnsafeBufferPointer { FreeRuns.listed(in: $0).map(Array.init) }
        }
        #expect(listed([2, 9, 8, 0]) == [9, 8])
        #expect(listed([0, 9]) == [] && listed([0]) == [])
        #expect(listed([]) == nil && listed([2, 9]) == nil && listed([-1, 9]) == nil)
        #expect(!runs([[]]).has(1, behind: 0))
    }

    @Test("Single pages come from the first transactions, and may break their runs")
    func singles() {
        let three = runs([[20, 19, 18, 17], [9, 7], [5, 4, 3]])
        #expect(three.has(4, behind: 0))
        #expect(!three.has(4, behind: 1))
        // The last run is behind six other pages.
        #expect(three.has(3, behind: 6))
        #expect(!three.has(3, behind: 7) && three.has(2, behind: 7))
        let rising = runs([[1], [4, 3], [9, 8, 7]])
        #expect(rising.has(3, behind: 3) && !rising.has(3, behind: 4) && rising.has(1, behind: 5))
    }
}
