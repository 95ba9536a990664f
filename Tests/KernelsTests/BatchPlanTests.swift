@testable import Kernels
import TestSupport
import Testing

struct BatchPlanTests {
    /// A contender whose every step takes `step`, and every call `call` besides.
    private func times(width: Int, step: Double, call: Double = 0) -> BatchPlan.Times {
        BatchPlan.Times(
            width: width, seconds: BatchPlan.sizes.map { call + step * Double(($0 + width - 1) / width) })
    }

    @Test("A library gets small batches, a narrow kernel middle ones, and a wide kernel large ones")
    func bySize() {
        // One item takes 10, 8 and 40: the wide kernel is worth its step from 5 items on.
        let plan = BatchPlan(
            [times(width: 16, step: 40), times(width: 4, step: 24), times(width: 1, step: 10)], capacity: 256)
        #expect((1...2).allSatisfy { plan[$0] == BatchPlan.Split(first: 2, rest: 2, count: $0) })
        #expect((3...4).allSatisfy { plan[$0] == BatchPlan.Split(first: 1, rest: 1, count: $0) })
        // 5 items: the narrow kernel and the library take 24 + 10, the wide one 40.
        #expect(plan[5] == BatchPlan.Split(first: 1, rest: 2, count: 4))
        #expect((7...16).allSatisfy { plan[$0] == BatchPlan.Split(first: 0, rest: 0, count: $0) })
        #expect(plan[17] == BatchPlan.Split(first: 0, rest: 2, count: 16))
        #expect(plan[256] == BatchPlan.Split(first: 0, rest: 0, count: 256))
        #expect(plan.used == [0, 1, 2])
        #expect(plan.sizes(of: 0) == [8, 16, 64] && plan.sizes(of: 1) == [4] && plan.sizes(of: 2) == [1, 2])
    }

    @Test("Of equally quick contenders, within what times vary, the first is taken, and one call")
    func ties() {
        let plan = BatchPlan([times(width: 8, step: 10), times(width: 8, step: 9.8)], capacity: 64)
        #expect(plan.used == [0])
        let quicker = BatchPlan([times(width: 8, step: 10), times(width: 8, step: 9)], capacity: 64)
        #expect(quicker.used == [1])
    }

    @Test("What a call costs besides its steps keeps batches whole")
    func callCost() {
        let wide = times(width: 16, step: 16, call: 1), narrow = times(width: 8, step: 10, call: 30)
        let plan = BatchPlan([wide, narrow], capacity: 64)
        #expect((1...64).allSatisfy { plan[$0].count == $0 })
    }

    @Test("As many items are processed within a time as whole steps fit into it, and one at least")
    func withinTime() {
        // A library takes a rest of one or two, a kernel each four.
        let plan = BatchPlan([times(width: 4, step: 24), times(width: 1, step: 10)], capacity: 64)
        #expect(plan.seconds(for: 0) == 0 && plan.seconds(for: 6) == 44 && plan.seconds(for: 8) == 48)
        #expect(plan.count(within: 100) == 16)
        #expect(plan.count(within: 106) == 17)
        #expect(plan.count(within: 9) == 1)
        #expect(plan.count(within: 1e6) == 64)
    }

    @Test("A split gives every item to somebody, and is never slower than one contender alone")
    func random() {
        var generator = SeededGenerator(seed: runSeed)
        for iteration in 0..<200 {
            let contenders = (0..<Int.random(in: 1...5, using: &generator)).map { _ in
                times(
                    width: 1 << Int.random(in: 0...4, using: &generator),
                    step: Double.random(in: 1...100, using: &generator),
                    call: Double.random(in: 0...50, using: &generator))
            }
            let plan = BatchPlan(contenders, capacity: 256)
            for count in 1...256 {
                let split = plan[count], context: Comment = "seed \(runSeed), iteration \(iteration), \(count)"
                #expect((1...count).contains(split.count), context)
                let both =
                    contenders[split.first].seconds(for: split.count)
                    + contenders[split.rest].seconds(for: count - split.count)
                let alone = contenders.map { $0.seconds(for: count) }.min() ?? 0
                #expect(both <= alone / 0.9, context)
                #expect((count...256).contains(plan.filled(count)), context)
            }
            #expect(plan[0].count == 0)
        }
    }

    @Test("Unused lanes of the last step are filled, within the capacity")
    func filled() {
        let wide = times(width: 16, step: 16), narrow = times(width: 8, step: 10)
        let plan = BatchPlan([wide, narrow], capacity: 256)
        #expect([1, 8, 9, 16, 17, 24, 25, 255, 256].map { plan.filled($0) } == [8, 8, 16, 16, 24, 24, 32, 256, 256])
        #expect(BatchPlan([times(width: 1, step: 1)], capacity: 256).filled(3) == 3)
        #expect(BatchPlan([times(width: 16, step: 1)], capacity: 20).filled(17) == 20)
    }

    @Test("A kernel whose times nobody took is chosen by its width")
    func nominal() {
        let plan = BatchPlan([.init(nominalOfWidth: 16), .init(nominalOfWidth: 8)], capacity: 256)
        #expect((1...8).allSatisfy { plan[$0].first == 1 })
        #expect((9...16).allSatisfy { plan[$0] == BatchPlan.Split(first: 0, rest: 0, count: $0) })
        #expect(plan[24] == BatchPlan.Split(first: 0, rest: 1, count: 16))
        #expect(plan[31] == BatchPlan.Split(first: 0, rest: 0, count: 31))
    }

    @Test("Times between the measured sizes lie between theirs")
    func between() {
        let times = BatchPlan.Times(width: 4, seconds: [10, 11, 12, 13, 25, 100])
        #expect(times.seconds(for: 3) == 11.5 && times.seconds(for: 4) == 12)
        #expect(times.seconds(for: 5) == 13 && times.seconds(for: 12) == 19)
        #expect(times.seconds(for: 64) == 100 && times.seconds(for: 128) == 200)
        #expect(times.rate == 0.64)
    }
}

struct BatchTimerTests {
    /// A clock that contenders move on, and what they were called with.
    private final class Course {
        var now = 0.0
        var calls: [(contender: Int, size: Int)] = []
    }

    private func contender(
        _ number: Int, width: Int, _ course: Course, noise: @escaping (Int) -> Double = { _ in 0 },
        step: Double
    ) -> BatchTimer.Contender {
        BatchTimer.Contender(width: width) { size in
            course.calls.append((number, size))
            course.now += step * Double((size + width - 1) / width) + noise(course.calls.count)
        }
    }

    @Test("The least of several rounds in turn is taken, so that a disturbance changes nothing")
    func least() {
        let course = Course()
        // Two calls of three are disturbed; the third round of every size is not.
        let noise = { (call: Int) in call % 3 == 0 ? 0 : 1000.0 }
        let contenders = [
            contender(0, width: 8, course, noise: noise, step: 5),
            contender(1, width: 8, course, noise: noise, step: 4),
        ]
        let times = BatchTimer(now: { course.now }).times(of: contenders)
        #expect(times[0].seconds == [5, 5, 5, 5, 10, 40])
        #expect(times[1].seconds == [4, 4, 4, 4, 8, 32])
        #expect(course.calls.prefix(4).map(\.contender) == [0, 1, 0, 1])
    }

    @Test("A contender without a chance is timed three times, and never for larger batches")
    func hopeless() {
        let course = Course()
        let times = BatchTimer(now: { course.now }).times(of: [
            contender(0, width: 16, course, step: 10), contender(1, width: 2, course, step: 9),
        ])
        #expect(times[0].seconds == [10, 10, 10, 10, 10, 40])
        #expect(times[1].seconds == [9, 9, 18, 36, 72, 288])
        let narrow = course.calls.filter { $0.contender == 1 }.map(\.size)
        #expect(narrow == [1, 1, 1, 1, 1, 2, 2, 2, 2, 2, 4, 4, 4, 4, 4, 8, 8, 8])
        // A wide one that is slow with few items may still be quick with many.
        let other = Course()
        let late = BatchTimer(now: { other.now }).times(of: [
            contender(0, width: 16, other, step: 10), contender(1, width: 1, other, step: 1),
        ])
        #expect(late[0].seconds == [10, 10, 10, 10, 10, 40])
    }

    @Test("Short batches are timed together")
    func repetitions() {
        let course = Course()
        let times = BatchTimer(repetitions: { 64 / $0 }, now: { course.now }).times(of: [
            contender(0, width: 1, course, step: 2)
        ])
        #expect(times[0].seconds == [2, 4, 8, 16, 32, 128])
        #expect(course.calls.count { $0.size == 1 } == 5 * 64)
    }
}
