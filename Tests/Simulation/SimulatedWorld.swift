import Core
import Foundation
import Platform
import RootSets
import Server
import Signatures
import Transport

/// Everything around the service: clocks, network, disk, and which part of the service runs next. One seed decides all
/// of it.
///
/// Sendable without the compiler's proof: one thread runs the whole simulation, so closures that the service may call
/// on any thread are called on this one.
final class SimulatedWorld: @unchecked Sendable {
    let seed: UInt64
    let population: SimulatedPeople
    let model: Model
    var dice: Dice
    /// Milliseconds of the simulated clock.
    private(set) var now: UInt64 = 1000
    private(set) var step: UInt64 = 0
    private(set) var links: [CInt: SimulatedLink] = [:]
    private var linkOwners: [CInt: Int] = [:]
    private(set) var clients: [Client] = []
    /// The collaborations' identifiers. The last one is the layer's.
    private(set) var names: [[UInt8]] = ["alpha", "beta", "gamma", "?"].map { Array($0.utf8) }
    let hexadecimal: [String: Int]
    /// Which start of the service it is.
    private(set) var epoch = 0
    /// Whether the service has ended without noticing: what it sends or commits reaches nobody.
    private(set) var isFrozen = false
    /// A hash of everything that clients have received, in order, and of how much each commit has written.
    private(set) var trace: UInt64 = 0xcbf2_9ce4_8422_2325

    private var service: Service?
    private var loops: [EventLoop] = []
    private var pollers: [SimulatedPoller] = []
    private var isWriterAwake = false
    private var background: [@Sendable () -> Void] = []
    private var timers: [Timer] = []
    private var nextTimer = 0
    private var nextLink = 0
    private var microseconds = 0
    private var mustCrash = false
    private var hasFaults = false
    private var failingCommits = 0
    /// Commits that have found no space since the last one that succeeded.
    private var spaceFailures = 0
    private var lastFailure: UInt64?
    private var quietSteps: [UInt64] = []
    /// Deeds of clients until the service comes to rest.
    private var deedsLeft = 0
    private let start = ContinuousClock.now
    private let random: RandomSource
    private let directory: String
    private var disk: SimulatedDisk
    /// What the disk had recorded when the service's process ended, and when the newest commit began.
    private var (frozenAt, commitBegan) = (0, 0)
    /// The last sequence of a commit within which the process has ended, with the whole machine or alone: nobody knows
    /// yet whether the disk has it.
    private var brokenCommit: UInt64?
    private let workers: Int
    /// Empty when everybody on this machine may do everything.
    private var principals: [SimulatedPrincipal] = []

    private struct Timer {
        let number: Int
        var due: UInt64
        let interval: UInt64?
        let body: @Sendable () -> Void
    }

    private static let clientCount = 5

    init(seed: UInt64, population: SimulatedPeople, directory: String) throws {
        self.seed = seed
        self.population = population
        self.directory = directory
        disk = SimulatedDisk(directory: directory, seed: seed)
        dice = Dice(seed, part: 1)
        workers = 1 + dice.below(3)
        random = RandomSource.seeded(seed)
        model = Model(challengeMilliseconds: 20_000, grantMilliseconds: 60_000, nonceMilliseconds: 30_000)
        hexadecimal = Dictionary(
            uniqueKeysWithValues: population.roots.enumerated().map { person, root in
                (hexadecimalText(root), person)
            })
        try FileManager.default.createDirectory(atPath: directory, withIntermediateDirectories: true)
        clients = (0..<SimulatedWorld.clientCount).map { Client(self, number: $0) }
    }

    // MARK: What clients use

    func connect(client: Int, isStranger: Bool, window: Int) throws -> SimulatedLink {
        guard let service else { throw Violation("there is no service to connect to") }
        let number = nextLink
        nextLink += 1
        let address: UInt32 = isStranger ? 0xc000_0200 + UInt32(client) : 0x7f00_0001 + UInt32(client)
        let host = isStranger ? "192.0.2.\(client)" : "127.0.0.\(1 + client)"
        let link = SimulatedLink(
            self, number: number, peer: .network(Endpoint(host: host, port: UInt16(1024 + number % 60_000))),
            window: window)
        links[link.descriptor] = link
        linkOwners[link.descriptor] = client
        service.serve(link, of: .address(address))
        return link
    }

    /// Whose key a client has; `nil`: there are no keys.
    func principal(of client: Int) -> SimulatedPrincipal? {
        let kinds: [SimulatedPrincipal.Kind] = [.root, .root, .reader, .limited, .limited]
        return principals.first { $0.kind == kinds[client] }
    }

    /// The client has let go of a connection, which the service may still have.
    func forget(_ link: SimulatedLink) { linkOwners[link.descriptor] = nil }

    func note(_ bytes: ArraySlice<UInt8>, of client: Int) {
        trace = (trace ^ UInt64(client)) &* 0x100_0000_01b3
        trace = (trace ^ step) &* 0x100_0000_01b3
        for byte in bytes { trace = (trace ^ UInt64(byte)) &* 0x100_0000_01b3 }
    }

    func expect(_ code: UInt16, _ allowed: [UInt16]) throws {
        guard allowed.contains(code) else { throw Violation("a request got the error \(code)") }
    }

    func demand(_ holds: Bool, _ what: String) throws {
        if !holds { throw Violation(what) }
    }

    func hasDiskFault(since step: UInt64) -> Bool { lastFailure.map { $0 >= step } ?? false }

    /// Whether the service had nothing left to do at some moment between two steps.
    func wasQuiet(between first: UInt64, and second: UInt64) -> Bool {
        quietSteps.last { $0 <= second }.map { $0 > first } ?? false
    }

    /// The clients do nothing more until the service has come to rest.
    func endRound() { deedsLeft = 0 }

    // MARK: The service

    private func startService() throws {
        var configuration = Configuration(dataDirectory: directory, workers: workers)
        configuration.endpoints = []
        configuration.linkBase = "https://example.com/collab"
        configuration.challengeSeconds = model.challengeMilliseconds / 1000
        configuration.grantSeconds = model.grantMilliseconds / 1000
        configuration.usesSignatureKernels = false
        configuration.storageBytesMax = 32 << 20
        configuration.storageReserveBytes = 1 << 20
        configuration.replayBytesMax = 1 << 20
        configuration.noncesMax = 1 << 12
        epoch += 1
        isFrozen = false
        isWriterAwake = true
        service = try Service(
            configuration, clock: MonotonicClock { [unowned self] in now }, random: random,
            wallClock: { [unowned self] in Date(timeIntervalSince1970: 1_800_000_000 + Double(now) / 1000) },
            surroundings: surroundings)
        // The check of the start has a thread of its own. What it says must not come at a time of its own.
        while service?.resources.rootSets.health.isChecked == false { usleep(100) }
    }

    private var surroundings: Surroundings {
        var surroundings = Surroundings()
        // Checks have a thread of their own: only that of a start belongs to the world.
        surroundings.storage.checkInterval = CheckInterval(always: .seconds(24 * 3600))
        surroundings.timers = Timers { [unowned self] milliseconds, body in
            _ = addTimer(after: milliseconds, every: nil, body)
        } repeated: { [unowned self] milliseconds, _, body in
            let number = addTimer(after: milliseconds, every: UInt64(milliseconds), body)
            return RepeatingTimer { [weak self] _ in self?.timers.removeAll { $0.number == number } }
        }
        surroundings.makeLoop = { [unowned self] memory, timeouts, clock throws(SystemFailure) in
            let poller = SimulatedPoller(self, number: UInt64(loops.count))
            let loop = try EventLoop(
                memory: memory, timeouts: timeouts, clock: clock, poller: poller, now: { [unowned self] in instant },
                processorTime: { [unowned self] in instant - start }, letOthersRun: {}, isDriven: true)
            loops.append(loop)
            pollers.append(poller)
            return loop
        }
        surroundings.storage.random = random
        surroundings.storage.now = { [unowned self] in instant }
        surroundings.storage.inBackground = { [unowned self] body in background.append(body) }
        surroundings.storage.directoryLookupsMin = 12
        surroundings.storage.wakeWriter = { [unowned self] in isWriterAwake = true }
        surroundings.storage.willCommit = { [unowned self] in willCommit() }
        surroundings.storage.didCommit = { [unowned self] sequence in didCommit(sequence) }
        return surroundings
    }

    private func addTimer(after milliseconds: Int, every interval: UInt64?, _ body: @escaping @Sendable () -> Void)
        -> Int
    {
        nextTimer += 1
        timers.append(Timer(number: nextTimer, due: now + UInt64(milliseconds), interval: interval, body: body))
        return nextTimer
    }

    /// The clock by which the service's threads take turns. Each look at it takes some time.
    private var instant: ContinuousClock.Instant {
        microseconds += dice.below(120)
        return start + .milliseconds(Int(now)) + .microseconds(microseconds)
    }

    /// The disk is asked to make changes durable. Returns the number of the system's error.
    private func willCommit() -> CInt {
        if isFrozen { return EIO }
        if failingCommits > 0 {
            failingCommits -= 1
            lastFailure = step
            // After two failed attempts for want of space, the change log would give way to a removal. Then repeated
            // changes are made again, which the model does not know. StorageProbe fills disks with a model that does.
            let isFull = spaceFailures < 2 && dice.isOne(in: 2)
            spaceFailures += isFull ? 1 : 0
            return isFull ? ENOSPC : EIO
        }
        if hasFaults, dice.isOne(in: 120) {
            freeze()
            return EIO
        }
        commitBegan = disk.moment
        return 0
    }

    private func didCommit(_ sequence: UInt64) {
        spaceFailures = 0
        trace = (trace ^ UInt64(disk.moment)) &* 0x100_0000_01b3
        if hasFaults, dice.isOne(in: 120) {
            brokenCommit = sequence
            freeze(at: commitBegan + dice.below(disk.moment - commitBegan + 1))
            return
        }
        model.committed(sequence, at: step)
        if hasFaults, dice.isOne(in: 120) { freeze() }
    }

    /// The service's process ends at this moment, or has ended when the disk had recorded less. What runs on until its
    /// parts are put away reaches nobody.
    private func freeze(at moment: Int? = nil) {
        if !isFrozen { frozenAt = moment ?? disk.moment }
        isFrozen = true
        mustCrash = true
    }

    /// The service's process ends, in half of all cases with the whole machine, and starts again.
    private func crash() throws {
        freeze()
        mustCrash = false
        lastFailure = step
        try putAway()
        if brokenCommit != nil, dice.isOne(in: 3) {
            try disk.endProcess(at: frozenAt)
            try disk.record()
        } else if brokenCommit != nil || dice.isOne(in: 2) {
            try disk.cutPower(at: frozenAt)
            try disk.record()
        }
        for client in clients {
            guard let link = client.link else { continue }
            // What had left the service may still arrive.
            if dice.isOne(in: 2) || link.isUnread { client.close(abruptly: true) } else { link.endFromService() }
        }
        quietSteps.append(step)
        try startService()
        guard let sequence = brokenCommit else { return }
        brokenCommit = nil
        if try lastSequence() >= sequence { model.committed(sequence, at: step) }
    }

    private func lastSequence() throws -> UInt64 {
        guard let service else { throw Violation("there is no service") }
        return try service.resources.rootSets.read { snapshot throws(ServiceError) in try snapshot.lastSequence() }
    }

    /// Lets go of all parts of the service, so that its files can be opened again. It finds that its connections have
    /// ended, and its disk fails.
    private func putAway() throws {
        for _ in 0..<400 {
            for loop in loops { loop.turn() }
            _ = service?.resources.rootSets.write()
            background = []
        }
        for loop in loops { loop.stop() }
        timers = []
        service = nil
        loops = []
        pollers = []
        links = links.filter { linkOwners[$0.key] != nil }
    }

    // MARK: Running

    /// What can happen next.
    private enum Action {
        case turn(Int)
        case write
        case background
        case timer(Int)
        case deliverToService(CInt)
        case deliverToClient(CInt)
    }

    private var actions: [Action] = []

    /// Collects what can happen now, besides clients' deeds.
    private func findActions() {
        actions.removeAll(keepingCapacity: true)
        for (index, poller) in pollers.enumerated() {
            if poller.asleepUntil.map({ $0 <= now || poller.isReady }) ?? true { actions.append(.turn(index)) }
        }
        if isWriterAwake { actions.append(.write) }
        if !background.isEmpty { actions.append(.background) }
        for (index, timer) in timers.enumerated() where timer.due <= now { actions.append(.timer(index)) }
        for descriptor in links.keys.sorted() {
            guard let link = links[descriptor] else { continue }
            if let time = link.nextToService, time <= now { actions.append(.deliverToService(descriptor)) }
            if linkOwners[descriptor] != nil, let time = link.nextToClient, time <= now {
                actions.append(.deliverToClient(descriptor))
            }
        }
    }

    private func perform(_ action: Action) throws {
        step += 1
        switch action {
        case .turn(let index): loops[index].turn()
        case .write: isWriterAwake = service?.resources.rootSets.write() ?? false
        case .background: background.remove(at: dice.below(background.count))()
        case .timer(let index):
            let timer = timers[index]
            if let interval = timer.interval { timers[index].due = now + interval } else { timers.remove(at: index) }
            timer.body()
        case .deliverToService(let descriptor): links[descriptor]?.deliverToService()
        case .deliverToClient(let descriptor): try deliverToClient(descriptor)
        }
        for (descriptor, link) in links where link.isServiceClosed && linkOwners[descriptor] == nil {
            links[descriptor] = nil
        }
        if mustCrash { try crash() }
    }

    private func deliverToClient(_ descriptor: CInt) throws {
        guard let link = links[descriptor], let owner = linkOwners[descriptor] else { return }
        let client = clients[owner]
        if let bytes = link.deliverToClient() {
            try client.receive(bytes)
        } else {
            link.endFromClient()
            client.disconnected()
        }
    }

    /// When something else can happen; `nil`: never. `isQuiet`: leaves out what happens at regular intervals anyway.
    private func nextTime(isQuiet: Bool) -> UInt64? {
        var next: UInt64?
        func add(_ time: UInt64?) { if let time { next = min(next ?? time, time) } }
        for (descriptor, link) in links {
            add(link.nextToService)
            if linkOwners[descriptor] != nil { add(link.nextToClient) }
        }
        for timer in timers where !isQuiet || timer.interval == nil { add(timer.due) }
        if !isQuiet { for poller in pollers { add(poller.asleepUntil) } }
        return next
    }

    /// Lets things happen until nothing is left to do, without further deeds of clients.
    private func settle() throws {
        let first = step
        // Most clients take what they get, so that what they don't get shows.
        for client in clients where !dice.isOne(in: 4) {
            client.link?.isUnread = false
            client.flushRest()
        }
        while true {
            findActions()
            if let action = actions.randomElement(using: &dice) {
                try perform(action)
            } else if let time = nextTime(isQuiet: true) {
                now = max(now, time)
            } else {
                break
            }
            guard step < first + 300_000 else { throw Violation("the service does not come to rest") }
        }
        quietSteps.append(step)
        try checkQuiet()
    }

    /// Nothing is left to do: so nobody may be waiting for anything but a change.
    private func checkQuiet() throws {
        guard let service else { return }
        let waiting = (service.pool.depth, service.resources.rootSets.queueDepth)
        guard waiting == (0, 0) else {
            throw Violation("everybody sleeps, but \(waiting.0) items and \(waiting.1) mutations wait")
        }
        for client in clients {
            guard let link = client.link, !link.isUnread, client.rest.isEmpty, !client.isBroken else { continue }
            for (identifier, request) in client.outstanding.sorted(by: { $0.key < $1.key }) {
                guard let cursor = request.waitsAfter, !client.isStranger else {
                    throw Violation(
                        "request \(identifier) of client \(client.number) (operation \(request.operation)) is never "
                            + "answered")
                }
                if model.hasPost(after: cursor) || model.lastPostRead > cursor {
                    throw Violation("client \(client.number) waits for a notice behind \(cursor) that was posted")
                }
            }
        }
    }

    /// Runs the service for so many steps, and judges what its clients saw.
    func run(steps: UInt64) throws {
        try startService()
        try disk.record()
        try begin()
        while step < steps {
            // After few deeds more of what is missing shows: what comes later does not make up for it.
            deedsLeft = dice.isOne(in: 3) ? 1 + dice.below(20) : 20 + dice.below(200)
            while deedsLeft > 0 {
                findActions()
                let choice = dice.below(actions.count + 2)
                if choice < actions.count {
                    try perform(actions[choice])
                } else if choice == actions.count || actions.isEmpty {
                    deedsLeft -= 1
                    try deed()
                } else if dice.isOne(in: 20), let time = nextTime(isQuiet: false) {
                    now = max(now, time)
                }
            }
            try settle()
            if dice.isOne(in: 3) { try readMissed() }
            pass()
        }
        try finish()
        try model.judge()
    }

    /// Lets somebody read the newest notices: then it is known what those have missed who still wait for one.
    private func readMissed() throws {
        let readers = clients.filter { client in
            client.link != nil && client.isReady && !client.isStranger && !client.isFollowing && client.rest.isEmpty
        }
        guard let reader = readers.randomElement(using: &dice) else { return }
        reader.follow(limit: 64, wait: 0)
        reader.flush()
        reader.flushRest()
        try settle()
    }

    /// Lets time pass, at times until shortly before something ends: until then it must be known.
    private func pass() {
        if dice.isOne(in: 5), let end = model.nearEnd(&dice) {
            now = max(now, end - min(end, UInt64(dice.below(2500))))
        } else if dice.isOne(in: 3) {
            now += UInt64(dice.below(dice.isOne(in: 3) ? 50_000 : 2000))
        }
    }

    /// One thing that somebody outside of the service does.
    private func deed() throws {
        step += 1
        switch dice.below(700) {
        case 0: try crash()
        case 1..<4: failingCommits = 1 + dice.below(3)
        default: try clients[dice.below(clients.count)].act()
        }
    }

    private func begin() throws {
        hasFaults = false
        let client = clients[0]
        try client.connect(isCalm: true)
        client.prepare { [unowned self] name in names[Model.layerCollaboration] = name }
        if !client.rest.isEmpty { client.flushRest() }
        try settle()
        guard names[Model.layerCollaboration].count > 1 else { throw Violation("the layer's collaboration is missing") }
        if dice.isOne(in: 2) { try makePrincipals(client) }
        hasFaults = true
    }

    /// From now on nobody may do anything without a key.
    private func makePrincipals(_ client: Client) throws {
        let made = [SimulatedPrincipal.Kind.root, .reader, .limited].map { SimulatedPrincipal($0, &dice) }
        client.create(made[0])
        try settle()
        principals = made
        client.presentKey()
        client.flushRest()
        try settle()
        for principal in made[1...] { client.create(principal) }
        try settle()
    }

    /// Lets clients ask for what came of their lost changes, reads everything once more, and closes all connections.
    private func finish() throws {
        hasFaults = false
        failingCommits = 0
        for client in clients { client.close(abruptly: dice.isOne(in: 2)) }
        try settle()
        for client in clients { try client.connect(isCalm: true) }
        for _ in 0..<200 {
            try settle()
            now += 400
            let isOpen = model.mutations.contains { !$0.isSettled } || clients.contains { !$0.unsettled.isEmpty }
            guard isOpen else { break }
            for client in clients {
                if client.link == nil { try client.connect(isCalm: true) }
                client.flushRest()
                guard client.isReady else { continue }
                while !client.unsettled.isEmpty { client.retry() }
                client.flush()
                client.flushRest()
            }
        }
        if let mutation = model.mutations.first(where: { !$0.isSettled }) {
            throw Violation("mutation \(mutation.number) (\(mutation.kind)) stays without an answer")
        }
        for client in clients where client.link != nil && client.isReady {
            for collaboration in names.indices { client.listRoots(collaboration) }
            client.listCollaborations()
            client.readChanges(from: 0)
            client.follow(limit: 256, wait: 0)
            client.flush()
            client.flushRest()
        }
        try settle()
        for client in clients { client.close(abruptly: dice.isOne(in: 2)) }
        try settle()
        try checkEmpty()
        isFrozen = true
        try putAway()
    }

    /// Without connections the service holds nothing for anybody.
    private func checkEmpty() throws {
        guard let service else { return }
        // A connection whose client takes no more answers is given up after the time for a stall.
        for _ in 0..<3 {
            now += 31_000
            try settle()
        }
        guard links.isEmpty else { throw Violation("the service keeps a connection that its client has closed") }
        guard service.memory.heldBytes == 0 else {
            throw Violation("\(service.memory.heldBytes) bytes are reserved for nobody")
        }
        guard service.suspendedQueries == 0 else { throw Violation("a query waits without a connection") }
    }
}
