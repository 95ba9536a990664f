extension Client {
    /// Plans a proof. `isPromising`: one that is likely to be granted.
    private func plan(isSigned: Bool, in collaboration: Int, isPromising: Bool) -> ProofPlan {
        if isSigned, dice.isOne(in: 8), let granted = world.model.grantedPlan(in: collaboration, &dice) {
            return granted
        }
        var plan = ProofPlan(
            collaboration: collaboration, person: dice.below(SimulatedPeople.personCount),
            device: dice.below(SimulatedPeople.devicesPerPerson))
        if isPromising, let person = world.model.likelyMember(of: collaboration, &dice) { plan.person = person }
        switch dice.below(isPromising ? 200 : 20) {
        case 0: plan.fault = .badKey
        case 1: plan.fault = .badIndex
        case 2: plan.fault = .otherRoot
        case 3 where isSigned: plan.fault = .badEncoding
        case 4 where isSigned: plan.fault = .badSignature
        case 5 where isSigned && collaboration != Model.nonceCollaboration: plan.fault = .forgedChallenge
        default: break
        }
        guard isSigned else { return plan }
        if collaboration == Model.nonceCollaboration {
            plan.nonce = [UInt8](repeating: UInt8(dice.below(12)), count: 16)
        } else if plan.fault != .forgedChallenge {
            let count = world.model.challenges.count
            let fresh = world.model.freshChallenge(&dice)
            plan.challenge =
                isPromising && fresh != nil
                ? fresh : count - 1 - dice.below(min(count, dice.isOne(in: 3) ? 300 : 12))
        }
        return plan
    }

    /// Sends a request with proofs for up to two collaborations.
    func prove(isSigned: Bool, count: Int, isOpen: Bool = false) throws {
        guard !isSigned || !world.model.challenges.isEmpty else { return askForChallenges() }
        let first = isOpen ? Model.layerCollaboration : dice.below(4)
        let named = isOpen || count == 1 ? [first] : [first, (first + 1) % 4]
        let wantsRoots = dice.isOne(in: 2) && count > 1
        let atLeast = demandedSequence()
        var body = RequestBytes()
        body.add(atLeast)
        body.add(UInt8(wantsRoots ? 1 : 0))
        body.add(UInt8(0))
        body.add(UInt16(named.count))
        body.add(UInt32(count))
        for collaboration in named { body.add(short: world.names[collaboration]) }
        var uses: [Model.ProofUse] = []
        var last: (place: Int, plan: ProofPlan)?
        for _ in 0..<count {
            var place = dice.below(named.count)
            let isPromising = isOpen ? !dice.isOne(in: 4) : dice.isOne(in: 3)
            var plan = plan(isSigned: isSigned, in: named[place], isPromising: isPromising)
            // At most one of two copies may be granted.
            if let last, dice.isOne(in: 2) { (place, plan) = last }
            last = (place, plan)
            let (signature, data) = try isSigned ? signed(plan) : (nil, [])
            world.population.append(
                plan, collaboration: UInt16(place), signature: signature, data: data, to: &body)
            uses.append(
                world.model.use(
                    plan, sent: world.step, at: world.now, epoch: epoch, isOpen: isOpen,
                    key: [UInt8(plan.person), UInt8(plan.device)]))
        }
        let operation = isOpen ? Code.open : isSigned ? Code.verify : Code.inclusion
        send(operation, body.bytes) { [self] reply, interval in
            guard case .answer(let bytes) = reply else {
                if case .error(89) = reply { return try world.model.demanded(atLeast, isRefused: true, interval) }
                if case .error(let code) = reply { try world.expect(code, isOpen ? [23, 32, 48, 49] : [32]) }
                return
            }
            try world.model.demanded(atLeast, isRefused: false, interval)
            try judge(uses, bytes, interval, atLeast, isSigned: isSigned, wantsRoots: wantsRoots, isOpen: isOpen)
        }
    }

    /// The sequence that a request demands: none, the last durable one, or one that is yet to come.
    func demandedSequence() -> UInt64 {
        switch dice.below(12) {
        case 0: world.model.lastDurable + 1 + UInt64(dice.below(3))
        case 1..<5: world.model.lastDurable
        default: 0
        }
    }

    private func signed(_ plan: ProofPlan) throws -> (signature: [UInt8], data: [UInt8]) {
        var data = plan.nonce ?? plan.challenge.map { world.model.challenges[$0].bytes } ?? dice.bytes(48)
        if plan.fault == .badEncoding { return ([UInt8](repeating: 1, count: 63), data) }
        var message = data
        if plan.fault == .badSignature { message[0] ^= 1 }
        let signature = try world.population.sign(message, person: plan.person, device: plan.device)
        if plan.fault == .forgedChallenge, !world.model.challenges.isEmpty, dice.isOne(in: 2) {
            data = world.model.challenges[dice.below(world.model.challenges.count)].bytes
            data[dice.below(48)] ^= 1 << UInt8(dice.below(8))
        }
        return (signature, data)
    }

    private func judge(
        _ uses: [Model.ProofUse], _ bytes: ArraySlice<UInt8>, _ interval: Interval, _ atLeast: UInt64, isSigned: Bool,
        wantsRoots: Bool, isOpen: Bool
    ) throws {
        var reader = AnswerBytes(bytes)
        guard Int(try reader.number(UInt32.self)) == uses.count,
            try reader.number(UInt32.self) == (wantsRoots ? 1 : 0)
        else { throw Violation("an answer has other verdicts than were asked for") }
        let verdicts = try reader.take(uses.count)
        for (use, verdict) in zip(uses, verdicts) {
            (use.verdict, use.answered) = (verdict, interval)
            try judge(use.plan, verdict, interval, atLeast, isSigned: isSigned)
        }
        if wantsRoots {
            for (use, verdict) in zip(uses, verdicts) {
                let root = Array(try reader.take(32))
                let isOwn = root == world.population.roots[use.plan.person]
                guard verdict > 2 || isOwn else { throw Violation("a proof that holds has another root hash") }
            }
        }
        guard isOpen else { return }
        for (use, verdict) in zip(uses, verdicts) {
            let grant = Array(try reader.take(112))
            let isGiven = grant.contains { $0 != 0 }
            guard isGiven == (verdict == 1) else {
                throw Violation("a proof with the verdict \(verdict) has \(isGiven ? "a" : "no") grant")
            }
            if isGiven { world.model.grant(grant, person: use.plan.person, device: use.plan.device, interval) }
        }
    }

    /// Judges what the proof alone decides, and asks the model for states that explain the rest.
    private func judge(
        _ plan: ProofPlan, _ verdict: UInt8, _ interval: Interval, _ atLeast: UInt64, isSigned: Bool
    ) throws {
        let what = "the verdict \(verdict) on a proof of person \(plan.person) (\(plan.fault))"
        switch plan.fault {
        case .badKey: return try world.demand(verdict == 17, what)
        case .badIndex: return try world.demand(verdict == 18, what)
        case .badEncoding: return try world.demand(verdict == 19, what)
        default: break
        }
        let person: UInt64 = plan.fault == .otherRoot ? 0 : 1 << UInt64(plan.person)
        func read(_ explains: @escaping (SetState) -> Bool) {
            world.model.read(what, plan.collaboration, interval, atLeast: atLeast, explains)
        }
        switch verdict {
        case 26: read { !$0.exists }
        case 27:
            try world.demand(plan.fault != .forgedChallenge, what)
            read { $0.exists && $0.members & person == 0 }
        case 1, 2:
            try world.demand(plan.fault == .none && (verdict == 1) == isSigned, what)
            read { $0.exists && $0.members & person != 0 }
        case 28:
            try world.demand(plan.fault == .badSignature && isSigned, what)
            read { $0.exists && $0.members & person != 0 }
        case 20:
            try world.demand(plan.fault == .forgedChallenge, what)
            read { $0.exists }
        case 21, 22, 29:
            try world.demand(plan.challenge != nil, what)
            read { $0.exists }
        case 24:
            try world.demand(plan.nonce != nil, what)
            read { $0.exists }
        default: throw Violation(what)
        }
    }
}
