/// A simulated client: it sends random requests over connections that break, checks what it can at once, and tells the
/// model the rest.
final class Client {
    /// What comes back.
    enum Reply {
        case answer(ArraySlice<UInt8>)
        case error(UInt16)
    }

    struct Outstanding {
        let operation: UInt16
        let began: UInt64
        let beganAt: UInt64
        /// The cursor of a query that may wait for a change.
        var waitsAfter: UInt64?
        /// `nil`: anybody may ask for it.
        let role: Role?
        let answered: (Reply, Interval) throws -> Void
        /// There is no answer, or one that the sender lacks the role; `isForGood`: the sender never has it.
        let lost: (_ isForGood: Bool) -> Void
    }

    unowned let world: SimulatedWorld
    let number: Int
    var dice: Dice
    private(set) var link: SimulatedLink?
    private(set) var epoch = 0
    private(set) var outstanding: [UInt64: Outstanding] = [:]
    /// Whether the client has no key although there are principals, or is on another machine although there are none:
    /// then it may do nothing but hello and ping.
    private(set) var isStranger = false
    /// Whether the service has accepted the client's key, or needs none.
    private(set) var isReady = true
    private var nextRequest: UInt64 = 1
    private var received: [UInt8] = []
    /// The rest of a frame of which the beginning was sent.
    private(set) var rest: [UInt8] = []
    /// Frames that leave together.
    private var batch: [UInt8] = []
    /// Whether the client has broken the protocol, so that the service closes the connection.
    private(set) var isBroken = false
    /// Changes whose attempts were lost.
    var unsettled: [MutationRecord] = []
    /// Where the client is in the feed of notices, and whether it asks for more at present.
    var cursor: UInt64 = 0
    var isFollowing = false
    /// Whether the client closes the connection as soon as it has sent its requests.
    var hangsUp = false

    init(_ world: SimulatedWorld, number: Int) {
        self.world = world
        self.number = number
        dice = Dice(world.seed, part: 10 + UInt64(number))
    }

    // MARK: The connection

    func connect(isCalm: Bool = false) throws {
        isStranger = !isCalm && dice.isOne(in: 12)
        let window = !isCalm && dice.isOne(in: 4) ? 64 + dice.below(2000) : 1 << 20
        link = try world.connect(client: number, isStranger: isStranger, window: window)
        epoch = world.epoch
        received = []
        rest = []
        batch = []
        isBroken = false
        isReady = isStranger || world.principal(of: number) == nil
        if !isReady { presentKey(isWrong: !isCalm && dice.isOne(in: 40)) }
    }

    /// Sends the key of the client's principal, or a wrong one.
    func presentKey(isWrong: Bool = false) {
        guard var key = world.principal(of: number)?.key else { return }
        if isWrong { key[40] ^= 1 }
        var body = RequestBytes()
        body.add(bytes: [1, 1, 0, 0])
        body.add(short: key)
        isReady = false
        send(Code.hello, body.bytes) { [self] reply, _ in
            switch reply {
            case .answer:
                try world.demand(!isWrong, "a wrong key was accepted")
                isReady = true
            case .error(let code):
                try world.demand(code == 32 || isWrong && code == 8, "a key got the error \(code)")
                isBroken = true
            }
        }
        flush()
    }

    /// The connection has ended: nobody knows what came of the requests that were not answered.
    func disconnected() {
        if let link { world.forget(link) }
        link = nil
        let lost = outstanding.sorted { $0.key < $1.key }
        outstanding = [:]
        isFollowing = false
        for (_, request) in lost { request.lost(false) }
    }

    func close(abruptly: Bool) {
        guard let link else { return }
        if abruptly { link.reset() } else { link.endFromClient() }
        disconnected()
    }

    // MARK: Sending

    func send(
        _ operation: UInt16, _ body: [UInt8], waitsAfter: UInt64? = nil,
        role: Role? = nil, lost: @escaping (_ isForGood: Bool) -> Void = { _ in },
        answered: @escaping (Reply, Interval) throws -> Void
    ) {
        let identifier = nextRequest
        nextRequest += 1 + UInt64(dice.below(3))
        batch += RequestBytes.frame(operation, identifier, body)
        outstanding[identifier] = Outstanding(
            operation: operation, began: world.step, beganAt: world.now, waitsAfter: waitsAfter,
            role: role ?? Code.role(of: operation), answered: answered,
            lost: lost)
    }

    /// Sends what was batched, sometimes without its end.
    func flush() {
        guard let link, !batch.isEmpty else { return }
        if dice.isOne(in: 15), batch.count > 1 {
            let cut = 1 + dice.below(batch.count - 1)
            link.sendToService(Array(batch[..<cut]))
            rest = Array(batch[cut...])
        } else {
            link.sendToService(batch)
        }
        batch = []
    }

    func flushRest() {
        link?.sendToService(rest)
        rest = []
    }

    /// Sends bytes that are no frame.
    func misbehave() {
        isBroken = true
        link?.sendToService(RequestBytes.frame(0, 0, []).map { $0 ^ 0x77 })
    }

    // MARK: Receiving

    func receive(_ bytes: ArraySlice<UInt8>) throws {
        received += bytes
        var start = 0
        while received.count - start >= 16 {
            var reader = AnswerBytes(received[start...])
            let length = Int(try reader.number(UInt32.self))
            let version = try reader.number(UInt8.self)
            let kind = try reader.number(UInt8.self)
            let operation = try reader.number(UInt16.self)
            let identifier = try reader.number(UInt64.self)
            guard version == 1, kind == 2 || kind == 3 else {
                throw Violation("client \(number) got no answer's frame")
            }
            guard reader.rest >= length else { break }
            try handle(kind, operation, identifier, try reader.take(length))
            start += 16 + length
        }
        if start > 0 { received.removeFirst(start) }
    }

    private func handle(_ kind: UInt8, _ operation: UInt16, _ identifier: UInt64, _ body: ArraySlice<UInt8>) throws {
        // Figures about the process differ from run to run, and identifiers that the service chooses for itself.
        let isOfRun = operation == Code.statistics || operation == Code.changes
        world.note(isOfRun ? body.prefix(0) : body, of: number)
        var code: UInt16?
        if kind == 3 {
            var reader = AnswerBytes(body)
            code = try reader.number(UInt16.self)
        }
        if let code, code < 16, operation == 0 {
            guard isBroken || code == 4 else { throw Violation("client \(number) got the error \(code) for nothing") }
            return
        }
        guard let request = outstanding.removeValue(forKey: identifier) else {
            throw Violation("client \(number) got an answer to request \(identifier), which is not in flight")
        }
        guard request.operation == operation else {
            throw Violation("client \(number) got an answer of operation \(operation) to one of \(request.operation)")
        }
        let interval = Interval(
            began: request.began, ended: world.step, beganAt: request.beganAt, endedAt: world.now, epoch: epoch)
        guard try mayAsk(request, code, interval) else { return }
        if let code { try check(code, operation, interval) }
        try request.answered(code.map { .error($0) } ?? .answer(body), interval)
    }

    /// Judges whether the client's request was rightly refused for the lack of a role, or rightly not refused. Returns
    /// false when it was refused.
    private func mayAsk(_ request: Outstanding, _ code: UInt16?, _ interval: Interval) throws -> Bool {
        guard let role = request.role else { return true }
        let principal = world.principal(of: number)
        let isNever = !isStranger && principal.map { !$0.roles.contains(role) } ?? false
        if isStranger || isNever {
            guard code == 28 else {
                throw Violation("client \(number) lacks the role \(role), but operation \(request.operation) was done")
            }
        } else if principal?.kind == .reader, role == .observe {
            let isRefused = code == 28
            world.model.read("a request with the role observe", Model.readersRole, interval) { $0.exists != isRefused }
        }
        if code == 28 {
            try world.demand(
                isStranger || principal?.kind == .reader, "client \(number) has the role \(role), but was refused")
            request.lost(isNever)
        }
        return code != 28
    }

    /// Errors that need a reason which the simulation knows.
    private func check(_ code: UInt16, _ operation: UInt16, _ interval: Interval) throws {
        switch code {
        case 48, 49:
            guard world.hasDiskFault(since: interval.began) else {
                throw Violation("operation \(operation) got the error \(code), but the disk is well")
            }
        case 8 where operation == Code.hello: break
        case 1, 19, 23, 32, 80, 85, 86, 89: break
        default: throw Violation("operation \(operation) got the error \(code)")
        }
    }
}
