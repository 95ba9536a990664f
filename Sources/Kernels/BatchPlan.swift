/// Which contender processes batches of which size. Contenders are kernels and the library that does their work where
/// no kernel does; the plan is made from the times that they took.
///
/// A batch is given to one contender, or its whole steps are given to one and the rest to another. Two calls have to
/// be quicker than one by more than times vary.
package struct BatchPlan: Sendable {
    /// The sizes of batches at which times are measured.
    package static let sizes = [1, 2, 4, 8, 16, 64]
    /// What is later in the order, or needs two calls, is preferred only if its time is below this share.
    private static let clearlyLess = 0.97

    /// The times of one contender.
    package struct Times: Sendable, Equatable {
        /// Items in one step. A last step that is not full takes as long as a full one.
        package let width: Int
        /// Seconds for a batch of each of `sizes`.
        package let seconds: [Double]

        package init(width: Int, seconds: [Double]) {
            precondition(width > 0 && seconds.count == BatchPlan.sizes.count, "times are missing")
            (self.width, self.seconds) = (width, seconds)
        }

        /// The times of a contender whose step takes the 0.7th power of its width: as long as nothing is measured, a
        /// wide kernel is taken for whole steps, and for a rest that a narrow one would need two steps for.
        package init(nominalOfWidth width: Int) {
            var step = 1.0
            for _ in 0..<width.trailingZeroBitCount { step *= 1.625 }
            self.init(
                width: width,
                seconds: BatchPlan.sizes.map { Double(($0 + width - 1) / width) * step })
        }

        /// The times of what never ends.
        package static let never = Times(width: 1, seconds: sizes.map { 1e9 * Double($0) })

        /// Seconds for a batch of `count`, between those of the sizes next to it.
        package func seconds(for count: Int) -> Double {
            guard count > 0 else { return 0 }
            let filled = count <= width ? count : (count + width - 1) / width * width
            let sizes = BatchPlan.sizes, last = sizes.count - 1
            guard let above = sizes.firstIndex(where: { $0 >= filled }) else {
                return seconds[last] * Double(filled) / Double(sizes[last])
            }
            guard sizes[above] > filled else { return seconds[above] }
            let share = Double(filled - sizes[above - 1]) / Double(sizes[above] - sizes[above - 1])
            return seconds[above - 1] + share * (seconds[above] - seconds[above - 1])
        }

        /// Items a second in the largest batches that are measured.
        package var rate: Double {
            let last = BatchPlan.sizes.count - 1
            return seconds[last] > 0 ? Double(BatchPlan.sizes[last]) / seconds[last] : 0
        }
    }

    /// How a batch is split: `count` items to `first`, the others to `rest`.
    package struct Split: Sendable, Equatable {
        package let first, rest: Int
        package let count: Int
    }

    package let contenders: [Times]
    /// The splits of batches of 0 to `capacity` items.
    private let splits: [Split]

    /// Decides for batches of up to `capacity` items. Of equally quick contenders the first is taken.
    package init(_ contenders: [Times], capacity: Int) {
        precondition(!contenders.isEmpty && contenders.count <= 64, "a plan needs contenders")
        self.contenders = contenders
        var whole = [0], splits = [Split(first: 0, rest: 0, count: 0)]
        for count in 1...max(1, capacity) {
            let seconds = contenders.map { $0.seconds(for: count) }
            var best = 0
            for index in seconds.indices where seconds[index] < BatchPlan.clearlyLess * seconds[best] { best = index }
            whole.append(best)
            var split = Split(first: best, rest: best, count: count), least = BatchPlan.clearlyLess * seconds[best]
            for (index, contender) in contenders.enumerated() {
                let steps = count - count % contender.width
                guard steps > 0, steps < count else { continue }
                let rest = whole[count - steps]
                guard rest != index else { continue }
                let both = contender.seconds(for: steps) + contenders[rest].seconds(for: count - steps)
                if both < least { (split, least) = (Split(first: index, rest: rest, count: steps), both) }
            }
            splits.append(split)
        }
        self.splits = splits
    }

    /// The largest batch that is decided for.
    package var capacity: Int { splits.count - 1 }

    /// How a batch of 0 to `capacity` items is split.
    package subscript(count: Int) -> Split { splits[count] }

    /// Rounds `count`, of 1 to `capacity`, up: how many items take as much time.
    package func filled(_ count: Int) -> Int {
        let split = splits[count]
        let (last, start) = split.count < count ? (split.rest, split.count) : (split.first, 0)
        let width = contenders[last].width
        return max(count, min(capacity, start + (count - start + width - 1) / width * width))
    }

    /// Seconds for a batch of 0 to `capacity` items.
    package func seconds(for count: Int) -> Double {
        let split = splits[count]
        return contenders[split.first].seconds(for: split.count)
            + contenders[split.rest].seconds(for: count - split.count)
    }

    /// The most items, 1 at least, that a batch may have to be processed within so many seconds.
    package func count(within seconds: Double) -> Int {
        (1...max(1, capacity)).last { self.seconds(for: $0) <= seconds } ?? 1
    }

    /// The contenders that batches of some size are given to.
    package var used: Set<Int> {
        Set(splits.dropFirst().flatMap { [$0.first, $0.rest] })
    }

    /// The measured sizes of which a contender gets the batch, or the larger part of it.
    package func sizes(of contender: Int) -> [Int] {
        BatchPlan.sizes.filter { $0 <= capacity && splits[$0].first == contender }
    }
}
