/// How far a follower has read a feed.
package struct FollowedFeed: Sendable {
    /// Where the next page begins.
    package private(set) var after: UInt64
    /// The last notice that came: its post's sequence, and its place in it.
    private var last: (sequence: UInt64, place: UInt64)

    package init(after: UInt64) {
        self.after = after
        last = (after, 0)
    }

    /// Reads the next page. Returns how many of its notices came twice, out of order, or without the one before them in
    /// their post.
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
