import Core
import Foundation
import LoadHarness
import RootgateClient
import Synchronization
import TLS
import Transport

/// What clients do beside the proofs that are measured: they change root sets, follow the change log, share documents,
/// post notices to live followers, open documents and check their grants over TLS, read shelves, connect and leave, and
/// send frames that they never finish. The operator makes backups.
final class SoakCrowd: Sendable {
    /// How much of each was done.
    struct Deeds: Sendable {
        /// Mutations of root sets.
        var changes = 0
        /// Records of the change log that a follower has read.
        var records = 0
        /// Notices that followers got.
        var notices = 0
        /// Grants that were checked.
        var grants = 0
        /// Shares that were put on shelves, which were read then.
        var shares = 0
        var backups = 0
        /// Connections that sent nothing, a part of a frame, or what is no frame.
        var strays = 0
    }

    /// What goes on at the same time.
    private enum Part: CaseIterable {
        case changes, follower, documents, devices, shelves, backups, strays

        /// The place of the service that it is about.
        var place: Int {
            switch self {
            case .changes, .documents, .shelves: 0
            case .follower, .devices, .backups, .strays: 1
            }
        }
    }

    private struct State {
        var deeds = Deeds()
        var failure: ServiceError?
    }

    /// Collaborations whose roots change, and how many roots a mutation adds or removes.
    private static let sets = 64
    private static let rootsPerChange = 400
    private static let straysAtOnce = 48

    let cluster: SoakCluster
    private let state = Lock(State())
    private let isStopped = Atomic<Bool>(false)
    /// Until when what fails at each service is excused, in seconds of the monotonic clock: connections of before a
    /// restart are found to be lost only when they are used.
    private let excusedUntil: Lock<[Double]>
    private static let excusedSeconds = 5.0
    private let ended = Lock<[Task<Void, Never>]>([])

    init(_ cluster: SoakCluster) {
        self.cluster = cluster
        excusedUntil = Lock([Double](repeating: 0, count: cluster.endpoints.count))
    }

    var deeds: Deeds { state.withLock { $0.deeds } }

    func start() {
        let tasks = Part.allCases.map { part in Task { await self.repeatUntilStopped(part) } }
        ended.withLock { $0 = tasks }
    }

    /// Ends everything, and waits for that.
    func stop() {
        isStopped.store(true, ordering: .relaxed)
        let tasks = ended.withLock { $0 }
        try? blocking { for task in tasks { await task.value } }
    }

    /// Throws the first error that no restart explains.
    func check() throws {
        if let failure = state.withLock({ $0.failure }) { throw failure }
    }

    /// Calls `body`, which restarts the service at `place`. What fails there meanwhile is excused.
    func excusing(_ place: Int, _ body: () throws -> Void) rethrows {
        excusedUntil.withLock { $0[place] = .infinity }
        defer { excusedUntil.withLock { $0[place] = monotonicSeconds() + SoakCrowd.excusedSeconds } }
        try body()
    }

    func note(_ deed: (inout Deeds) -> Void) { state.withLock { deed(&$0.deeds) } }

    var goesOn: Bool { !isStopped.load(ordering: .relaxed) }

    private func repeatUntilStopped(_ part: Part) async {
        while goesOn {
            do throws(ServiceError) {
                try await perform(part)
            } catch {
                let isExcused = monotonicSeconds() < excusedUntil.withLock { $0[part.place] }
                if !isExcused { state.withLock { $0.failure = $0.failure ?? error } }
                try? await Task.sleep(for: .milliseconds(100))
            }
        }
    }

    private func perform(_ part: Part) async throws(ServiceError) {
        switch part {
        case .changes: try await changeRoots(at: part.place)
        case .follower: try await followChanges(at: part.place)
        case .documents: try await shareDocuments(at: part.place)
        case .devices: try await openDocuments(at: part.place)
        case .shelves: try await fillShelves(at: part.place)
        case .backups: try await backUp(at: part.place)
        case .strays: await stray(at: part.place)
        }
    }

    /// Adds roots to many sets in turn, and removes those that were added a round before. So the sets keep their size.
    private func changeRoots(at place: Int) async throws(ServiceError) {
        let client = try cluster.client(place)
        defer { client.close() }
        var added: [(CollaborationIdentifier, [Digest])] = []
        for number in 0..<SoakCrowd.sets {
            guard let name = CollaborationIdentifier("soak-\(number)") else { return }
            // After a restart they are there, with roots that nobody would remove.
            do throws(ServiceError) {
                try await client.dropCollaboration(name)
            } catch {
                guard error.code == .unknownCollaboration else { throw error }
            }
            try await client.createCollaboration(name)
            added.append((name, []))
        }
        var generator = SystemRandomNumberGenerator()
        var round = 0
        while goesOn {
            let set = round % added.count
            let (name, former) = added[set]
            let roots = (0..<SoakCrowd.rootsPerChange).map { _ in Synthetic.root(Int(generator.next() >> 1)) }
            _ = try await client.addRoots(roots, to: name)
            added[set].1 = roots
            if !former.isEmpty { _ = try await client.removeRoots(former, from: name) }
            note { $0.changes += former.isEmpty ? 1 : 2 }
            round += 1
            try? await Task.sleep(for: .milliseconds(20))
        }
        for (name, _) in added { try await client.dropCollaboration(name) }
    }

    private func followChanges(at place: Int) async throws(ServiceError) {
        let client = try cluster.client(place)
        defer { client.close() }
        var last = try await client.statistics().first { $0.name == "sequence" }?.value ?? 0
        while goesOn {
            let page = try await client.changes(after: last)
            last = page.items.last?.sequence ?? last
            note { $0.records += page.items.count }
            if !page.hasMore { try? await Task.sleep(for: .milliseconds(50)) }
        }
    }

    /// Shares documents, follows them, posts notices, and stops sharing.
    private func shareDocuments(at place: Int) async throws(ServiceError) {
        var plan = NoticeLoad.Plan()
        (plan.collaborations, plan.followers, plan.connections) = (4, 64, 4)
        let load = try await NoticeLoad(cluster.endpoints[place], key: cluster.key, plan)
        do throws(ServiceError) {
            let report = try await load.run(count: 256, perSecond: 256)
            guard report.isComplete else {
                throw ServiceError(.internalFault, "\(report.delivered) of \(report.expected) notices came")
            }
            note { $0.notices += report.delivered }
            await load.close()
        } catch {
            await load.close()
            throw error
        }
    }

    /// Opens connections that send nothing, a part of a frame, or what is no frame, and leaves them after a while.
    private func stray(at place: Int) async {
        var descriptors: [CInt] = []
        for number in 0..<SoakCrowd.straysAtOnce {
            guard let descriptor = try? Socket.connect(to: cluster.endpoints[place], milliseconds: 1000) else { break }
            descriptors.append(descriptor)
            let parts: [[UInt8]] = [[], [0, 1], [UInt8](repeating: 0xff, count: 64)]
            let bytes = parts[number % parts.count]
            if !bytes.isEmpty { _ = bytes.withUnsafeBytes { Socket.send(descriptor, $0) } }
        }
        for _ in 0..<20 where goesOn { try? await Task.sleep(for: .milliseconds(100)) }
        for descriptor in descriptors { close(descriptor) }
        note { $0.strays += descriptors.count }
    }
}
