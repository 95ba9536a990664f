/// The longest runs of neighbouring free pages, as of the last commit.
///
/// LMDB takes single pages from the transactions that have freed some first. It searches for neighbours among all, but
/// gives up after 60 lists for each page that it wants.
struct FreeRuns {
    static let listsPerPage = 60

    /// The longest run among the pages that one transaction has freed, and how many pages earlier ones have freed, in
    /// how many lists.
    private var runs: [(pages: Int, before: Int, lists: Int)] = []
    private var count = 0
    private var lists = 0

    /// The pages that a record of the list of free pages names: how many, their numbers, and perhaps room for more.
    /// LMDB also writes records that name none. `nil` when the record is damaged.
    static func listed(in words: UnsafeBufferPointer<Int>) -> UnsafeBufferPointer<Int>? {
        guard let count = words.first, count >= 0, count < words.count else { return nil }
        return UnsafeBufferPointer(rebasing: words[1..<count + 1])
    }

    /// Adds what the next transaction has freed: page numbers in descending order.
    mutating func append(_ pages: UnsafeBufferPointer<Int>) {
        let longest = FreeRuns.longestRun(pages)
        if longest > 0 { runs.append((longest, count, lists)) }
        count += pages.count
        lists += 1
    }

    /// Whether so many neighbouring pages are free and stay so while `behind` single pages are taken.
    func has(_ pages: Int, behind: Int) -> Bool {
        runs.contains {
            $0.pages >= pages + max(0, behind - $0.before) && $0.lists <= pages * FreeRuns.listsPerPage
        }
    }

    /// How many neighbouring pages LMDB finds at most when it has taken `behind` single pages and reads all of these
    /// lists. They may be in several of them. `lists`: page numbers in descending order.
    static func longest(in lists: [[Int]], behind: Int) -> Int {
        var (all, taken) = ([Int](), behind)
        for list in lists {
            all += list.dropLast(taken)
            taken -= min(taken, list.count)
        }
        all.sort(by: >)
        return all.withUnsafeBufferPointer { longestRun($0) }
    }

    private static func longestRun(_ pages: UnsafeBufferPointer<Int>) -> Int {
        var (longest, run) = (min(1, pages.count), 1)
        for index in pages.indices.dropFirst() {
            run = pages[index - 1] == pages[index] + 1 ? run + 1 : 1
            longest = max(longest, run)
        }
        return longest
    }
}
