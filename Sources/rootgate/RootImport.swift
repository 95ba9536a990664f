import Core
import Foundation
import LoadHarness
import RootgateClient

/// Adds the root hashes of a file to a collaboration, with several requests under way at any time.
final class RootImport: Sendable {
    /// What was done.
    struct Summary {
        /// Root hashes that were sent, and those of them that were not in the set before.
        var sent = 0
        var new: UInt64 = 0
        /// The change after which all of them are there.
        var sequence: UInt64 = 0
        /// Lines of the input that are done, together with those of earlier runs.
        var position = RootLines.Position()

        /// About how many bytes of the input are done.
        var bytes: UInt64 = 0

        mutating func add(_ roots: Int, _ receipt: MutationReceipt) {
            sent += roots
            new += receipt.changed
            sequence = max(sequence, receipt.sequence)
        }
    }

    private let client: RootgateClient
    private let collaboration: CollaborationIdentifier
    private let lines: RootLines
    private let record: ImportRecord?
    private let patience: Duration
    /// When a request was last done.
    private let lastDone = Lock(ContinuousClock.now)

    /// Requests under way at once. A service commits what arrives together together.
    private static let requestsMax = 8
    /// Root hashes that are read and sorted at once: the first time, and at most. A request with neighbours changes few
    /// pages of a large set, and one with any changes most of them.
    private static let windowRootsMin = 2 * Limits.rootsPerRequestMax
    private static let windowRootsMax = 64 * Limits.rootsPerRequestMax

    /// `record`: where to note what is done. `patience`: for how long a service may be busy, and do no request, before
    /// the import gives up.
    init(
        _ lines: RootLines, to collaboration: CollaborationIdentifier, by client: RootgateClient,
        record: ImportRecord?, patience: Duration
    ) {
        self.client = client
        self.collaboration = collaboration
        self.lines = lines
        self.record = record
        self.patience = patience
    }

    /// A part of the input that is sent in ascending order.
    private struct Window {
        let end: RootLines.Position
        /// Requests that were not begun, and those that are not done.
        var waiting: ArraySlice<ArraySlice<Digest>>
        var unfinished: Int
        let requests: Int

        init(_ portion: RootLines.Portion) {
            end = portion.end
            let (roots, size) = (portion.roots, Limits.rootsPerRequestMax)
            let parts = stride(from: 0, to: roots.count, by: size).map { roots[$0..<min($0 + size, roots.count)] }
            (waiting, unfinished, requests) = (parts[...], parts.count, parts.count)
        }
    }

    private enum Event: Sendable {
        /// The next part of the input in ascending order; `nil` at its end.
        case read(RootLines.Portion?)
        /// A request of a window, by the window's number, was done.
        case added(Int, roots: Int, MutationReceipt)
    }

    /// Adds everything behind `start`. `done` gets what is done after each answer: all root hashes in front of its
    /// position are durable.
    func run(from start: RootLines.Position, done: (Summary) throws -> Void) async throws {
        var summary = Summary(position: start)
        try await withThrowingTaskGroup(of: Event.self) { group in
            // Those that are not done, by their numbers: while one is sent, the next one is read.
            var windows: [Int: Window] = [:]
            var (first, next, underWay) = (0, 0, 0)
            var size = RootImport.windowRootsMin
            // A pipe may keep its reader waiting. Meanwhile answers are taken.
            func read() {
                group.addTask { [lines, size] in
                    guard let portion = try lines.next(size) else { return .read(nil) }
                    return .read(RootLines.Portion(roots: portion.roots.sorted(), end: portion.end))
                }
                size = min(2 * size, RootImport.windowRootsMax)
            }
            var (isReading, hasMore) = (true, true)
            read()
            while let event = try await group.next() {
                switch event {
                case .read(let portion):
                    (isReading, hasMore) = (false, portion != nil)
                    guard let portion else { break }
                    windows[next] = Window(portion)
                    next += 1
                case .added(let number, let roots, let receipt):
                    underWay -= 1
                    windows[number]?.unfinished -= 1
                    summary.add(roots, receipt)
                    while let window = windows[first], window.unfinished == 0 {
                        summary.position = window.end
                        windows[first] = nil
                        first += 1
                        try record?.note(summary.position)
                    }
                    summary.bytes = bytes(summary.position, windows[first])
                    try done(summary)
                }
                for number in first..<next {
                    while underWay < RootImport.requestsMax, let roots = windows[number]?.waiting.popFirst() {
                        group.addTask { [self] in .added(number, roots: roots.count, try await add(Array(roots))) }
                        underWay += 1
                    }
                }
                if hasMore, !isReading, windows.count < 2 {
                    isReading = true
                    read()
                }
            }
        }
    }

    /// About how many bytes of the input are done, when all in front of a position are, and a part of a window.
    private func bytes(_ position: RootLines.Position, _ window: Window?) -> UInt64 {
        guard let window else { return position.bytes }
        let share = Double(window.requests - window.unfinished) / Double(window.requests)
        return position.bytes + UInt64(Double(window.end.bytes - position.bytes) * share)
    }

    /// Adds root hashes. A busy service is asked again, with the same mutation.
    private func add(_ roots: [Digest]) async throws(ServiceError) -> MutationReceipt {
        let mutation = Mutation(.addRoots(collaboration, roots))
        let begun = ContinuousClock.now
        let receipt = try await client.whileBusy(until: { max(begun, lastDone.withLock { $0 }) + patience }) {
            client throws(ServiceError) in try await client.apply(mutation)
        }
        lastDone.withLock { $0 = .now }
        return receipt
    }
}
