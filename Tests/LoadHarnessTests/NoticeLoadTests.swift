import Core
import LoadHarness
import RootgateClient
import Server
import ServiceTestSupport
import TestSupport
import Testing

@Suite struct NoticeLoadTests {
    @Test("Every notice is counted at every follower")
    func complete() async throws {
        let service = try TestService()
        var plan = NoticeLoad.Plan()
        (plan.collaborations, plan.followers, plan.connections, plan.batch, plan.postsInFlight) = (5, 33, 3, 4, 6)
        let load = try await NoticeLoad(service.endpoint, plan)
        // The second run begins where the first one ended.
        for _ in 0..<2 {
            let report = try await load.run(count: 90)
            #expect(report.posted == 92)
            // Three collaborations with seven followers and five posts, two with six and four; four notices in each.
            #expect(report.expected == 612)
            #expect(report.delivered == 612)
            #expect(report.isComplete)
            #expect(report.latency.quantile(0.5) > 0)
        }
        // A run at a pace takes its time, and a run without posts takes none.
        let paced = try await load.run(count: 40, perSecond: 80)
        #expect(paced.isComplete && paced.posted == 40 && paced.seconds > 0.4)
        let nothing = try await load.run(count: 0)
        #expect(nothing.isComplete && nothing.posted == 0 && nothing.expected == 0)
        await load.close()
    }

    private func page(_ posts: [(sequence: Int, places: [Int])], next: Int) -> NoticeNumbers {
        // A page as a service writes it. The sentence looks like the field that is sought.
        let written = posts.map { post in
            let notices = post.places.map { place in
                #"{"event":{"change":{"trigger":"edit"}},"place":\#(place),"sentence":"\"place\":7,\"next\": 8"}"#
            }
            return
                #"{"author":"00","collaboration":"place","date":1760000000123,"sequence":\#(post.sequence),"notices":["#
                + notices.joined(separator: ",") + "]}"
        }
        let json = #"{"hasMore":false,"next":\#(next),"posts":["# + written.joined(separator: ",") + "]}"
        return Array(json.utf8).withRawBytes { NoticeNumbers($0) }
    }

    @Test("The numbers of a page are found, and nothing else")
    func numbers() {
        let page = page([(12, [0, 1]), (15, [0])], next: 17)
        #expect(page.places.map { [$0.sequence, $0.place] } == [[12, 0], [12, 1], [15, 0]])
        #expect(page.next == 17)
        #expect(page.date == 1_760_000_000_123)
        let nothing = self.page([], next: 3)
        #expect(nothing.places.isEmpty && nothing.date == nil && nothing.next == 3)
        // Cut off anywhere, it is no crash.
        let json = Array(#"{"next":12,"posts":[{"date":5,"sequence":1,"notices":[{"place":0}]}]}"#.utf8)
        for length in json.indices { _ = Array(json[..<length]).withRawBytes { NoticeNumbers($0) } }
    }

    @Test(
        "A notice that is not where it should be is counted",
        arguments: [
            ("none", [[(5, [0, 1]), (7, [0])], [(9, [0])]], 0),
            ("a post twice", [[(5, [0, 1])], [(5, [0, 1])]], 1),
            ("a notice twice", [[(5, [0, 0])]], 1),
            ("an earlier post later", [[(7, [0])], [(5, [0])]], 1),
            ("places out of order", [[(5, [1, 0])]], 2),
            ("a first notice left out", [[(5, [1])]], 1),
            ("one left out between", [[(5, [0, 2])]], 1),
            ("a post from before the beginning", [[(4, [0])]], 1),
        ] as [(String, [[(Int, [Int])]], Int)])
    func misplaced(name: String, pages: [[(Int, [Int])]], count: Int) {
        var feed = FollowedFeed(after: 4)
        var misplaced = 0
        for (number, posts) in pages.enumerated() {
            misplaced += feed.take(page(posts.map { ($0.0, $0.1) }, next: 100 + number))
        }
        #expect(misplaced == count, "\(name)")
        #expect(feed.after == UInt64(99 + pages.count))
    }
}
