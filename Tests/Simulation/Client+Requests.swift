import Core

extension Client {
    /// Does something at random.
    func act() throws {
        guard let link else { return try connect() }
        link.isUnread = dice.isOne(in: link.isUnread ? 2 : 50)
        if !rest.isEmpty {
            switch dice.below(12) {
            case 0: close(abruptly: dice.isOne(in: 2))
            case 1..<8: flushRest()
            default: break
            }
            return
        }
        guard isReady else { return }
        switch dice.below(300) {
        case 0: return close(abruptly: true)
        case 1: return close(abruptly: false)
        case 2: return misbehave()
        default: break
        }
        guard outstanding.count < 60 else { return }
        let count = dice.isOne(in: 4) ? 1 + dice.below(8) : 1
        for _ in 0..<count { try request() }
        flush()
        // What was asked for is done all the same. At times nothing comes behind it that would hide what is missing.
        if hangsUp || dice.isOne(in: 100) {
            hangsUp = false
            flushRest()
            close(abruptly: false)
            if dice.isOne(in: 2) { world.endRound() }
        }
    }

    private func request() throws {
        if !unsettled.isEmpty, dice.isOne(in: 3) { return retry() }
        switch dice.below(36) {
        case 0: ping()
        case 1: hello()
        case 2..<5: askForChallenges()
        case 5..<9: change()
        case 9: repeatChange()
        case 10..<12: testRoots()
        case 12: listRoots()
        case 13: countRoots()
        case 14: listCollaborations()
        case 15: readChanges()
        case 16: dice.isOne(in: 2) ? statistics() : toggleReadersRole()
        case 17..<21: try prove(isSigned: false, count: 1 + dice.below(4))
        case 21..<23: try prove(isSigned: true, count: 1 + dice.below(2))
        case 23: for _ in 0..<2 + dice.below(4) { try prove(isSigned: dice.isOne(in: 4), count: 1) }
        default: try layerRequest()
        }
    }

    // MARK: Requests without state

    func ping() {
        let content = dice.bytes(dice.below(40))
        send(Code.ping, content) { [world] reply, _ in
            switch reply {
            case .answer(let body): if Array(body) != content { throw Violation("a ping came back changed") }
            case .error(let code): try world.expect(code, [32])
            }
        }
    }

    func hello() {
        let isKnown = !dice.isOne(in: 4)
        send(Code.hello, isKnown ? [1, 1, 0, 0] : [2, 3, 0, 0]) { [world] reply, _ in
            switch reply {
            case .answer(let body):
                if !isKnown || body.first != 1 { throw Violation("a hello got an answer of another version") }
            case .error(let code): try world.expect(code, isKnown ? [32] : [1, 32])
            }
        }
    }

    func statistics() {
        send(Code.statistics, []) { [world] reply, _ in
            if case .error(let code) = reply { try world.expect(code, [32]) }
        }
    }

    func askForChallenges() {
        let count = 1 + dice.below(16)
        var body = RequestBytes()
        body.add(UInt32(count))
        send(Code.challenges, body.bytes) { [world] reply, interval in
            guard case .answer(let bytes) = reply else { return }
            var reader = AnswerBytes(bytes)
            guard Int(try reader.number(UInt32.self)) == count, try reader.number(UInt32.self) == 48,
                try reader.number(UInt64.self) == world.model.challengeMilliseconds, reader.rest == count * 48
            else { throw Violation("an answer has other challenges than were asked for") }
            for _ in 0..<count { try world.model.issue(Array(try reader.take(48)), interval) }
        }
    }

    /// Gives the reader the role observe, or takes it away.
    func toggleReadersRole() {
        guard world.principal(of: number)?.kind == .root else { return }
        let isGiven = dice.isOne(in: 2)
        let roles = SimulatedPrincipal.json(isGiven ? [.verify, .observe] : [.verify])
        let mutation = mutate(
            "updatePrincipal", #"{"name":"reader","roles":\#(roles)}"#, isGiven ? .create : .drop,
            role: .administer, of: Model.readersRole)
        attempt(mutation)
    }

    // MARK: Sets

    private func anyCollaboration() -> Int { dice.below(3) }

    private func anyPeople() -> UInt64 {
        var people: UInt64 = 0
        for _ in 0..<1 + dice.below(4) { people |= 1 << UInt64(dice.below(SimulatedPeople.personCount)) }
        return people
    }

    private func append(_ people: UInt64, to body: inout RequestBytes) {
        body.add(UInt32(people.nonzeroBitCount))
        for person in 0..<SimulatedPeople.personCount where people & 1 << UInt64(person) != 0 {
            body.add(bytes: world.population.roots[person])
        }
    }

    func change() {
        let collaboration = anyCollaboration()
        var body = RequestBytes()
        body.add(bytes: dice.bytes(16))
        body.add(short: world.names[collaboration])
        let people = anyPeople()
        let (operation, kind): (UInt16, MutationRecord.Kind)
        switch dice.below(20) {
        case 0: (operation, kind) = (Code.drop, .drop)
        case 1..<5:
            (operation, kind) = (Code.create, .create)
            let isNonce = collaboration == Model.nonceCollaboration
            body.add(UInt8(isNonce ? 2 : 1))
            body.add(UInt32(isNonce ? world.model.nonceMilliseconds / 1000 : 0))
        case 5..<15:
            (operation, kind) = (Code.add, .add(people))
            append(people, to: &body)
        default:
            (operation, kind) = (Code.remove, .remove(people))
            append(people, to: &body)
        }
        let mutation = MutationRecord(
            number: world.model.mutations.count, collaboration: collaboration, kind: kind, operation: operation,
            body: body.bytes, firstSent: world.step)
        world.model.add(mutation)
        attempt(mutation)
    }

    func retry() {
        let mutation = unsettled.remove(at: dice.below(unsettled.count))
        if !mutation.isSettled { attempt(mutation) }
    }

    /// Sends a change again that was sent before, by whomever, also while another attempt is in flight.
    func repeatChange() {
        let mutations = world.model.mutations
        guard !mutations.isEmpty else { return }
        let mutation = mutations[max(0, mutations.count - 1 - dice.below(12))]
        // Identifiers belong to principals.
        let isOwn = mutation.principal == world.principal(of: number)?.kind
        if mutation.operation == Code.collaborate || mutation.isRefused || !isOwn { return }
        attempt(mutation)
    }

    func attempt(_ mutation: MutationRecord) {
        mutation.inFlight += 1
        mutation.principal = world.principal(of: number)?.kind
        let sent = world.step
        send(mutation.operation, mutation.body, role: mutation.role) { [self] isForGood in
            mutation.inFlight -= 1
            mutation.isRefused = isForGood
            guard !isForGood else { return }
            mutation.lost = world.step
            if !mutation.isSettled { unsettled.append(mutation) }
        } answered: { [self] reply, interval in
            mutation.inFlight -= 1
            if let grant = mutation.grant { noteGrant(grant, of: mutation, reply, interval) }
            switch reply {
            case .answer(let body):
                if try !takeReceipt(of: mutation, body, interval) {
                    try refused(mutation, mutation.role == .administer ? 0 : 48, sent: sent, interval)
                }
            case .error(let code): try refused(mutation, code, sent: sent, interval)
            }
        }
    }

    /// What the answer to a post says about the grant. A repetition is answered without a look at it.
    private func noteGrant(_ grant: Int, of mutation: MutationRecord, _ reply: Reply, _ interval: Interval) {
        guard mutation.lost == nil, mutation.sequence == nil else { return }
        switch reply {
        case .answer: world.model.grantChecked(grant, isValid: true, interval, "a post")
        case .error(86): world.model.grantChecked(grant, isValid: false, interval, "a post")
        case .error: break
        }
    }

    /// Returns false when the receipt says that there was nothing to change, and no room to remember that.
    private func takeReceipt(
        of mutation: MutationRecord, _ body: ArraySlice<UInt8>, _ interval: Interval
    ) throws -> Bool {
        if mutation.operation == Code.collaborate {
            let text = String(decoding: body, as: UTF8.self)
            guard let changed = number("changed", in: text) else { throw Violation("a receipt is none: \(text)") }
            guard let sequence = number("sequence", in: text) else {
                // Requests about principals that change nothing are never remembered.
                if mutation.role == .administer {
                    let isWanted = mutation.kind == .create
                    world.model.read("a change of nothing", Model.readersRole, interval) { $0.exists == isWanted }
                    return false
                }
                try world.demand(
                    changed == 0 && world.hasDiskFault(since: interval.began), "a receipt without a sequence: \(text)")
                return false
            }
            // A repetition changes 0, whatever the first request has changed.
            try world.model.receipt(
                mutation, sequence: sequence, changed: mutation.changed ?? changed, isRepeat: true, at: interval.ended)
            return true
        }
        var reader = AnswerBytes(body)
        let sequence = try reader.number(UInt64.self)
        let changed = try reader.number(UInt64.self)
        let isRepeat = try reader.number(UInt8.self) == 1
        guard !isRepeat || mutation.inFlight > 0 || mutation.lost != nil || mutation.sequence != nil else {
            throw Violation("mutation \(mutation.number), which was sent once, is called a repeat")
        }
        try world.model.receipt(
            mutation, sequence: sequence, changed: changed, isRepeat: isRepeat, at: interval.ended)
        return true
    }

    private func refused(_ mutation: MutationRecord, _ code: UInt16, sent: UInt64, _ interval: Interval) throws {
        if code != 0 { try expectRefusal(of: mutation, code) }
        if code == 19 {
            // A repetition of what was applied never gets here: its identifier is looked up before.
            world.model.read("the error unknown-collaboration", mutation.collaboration, interval) { !$0.exists }
        }
        // Earlier attempts may still be under way in the service. One may also have been applied: then the disk or the
        // lack of places has only kept the service from saying so.
        let isAboutContent = [0, 19, 80, 85, 86].contains(code)
        if let lost = mutation.lost, !isAboutContent || !world.wasQuiet(between: lost, and: sent) {
            if !mutation.isSettled { unsettled.append(mutation) }
        } else {
            mutation.isRefused = true
        }
    }

    private func expectRefusal(of mutation: MutationRecord, _ code: UInt16) throws {
        switch mutation.kind {
        case .post: try world.expect(code, [23, 32, 48, 49, 80, 85, 86])
        case _ where mutation.operation == Code.collaborate: try world.expect(code, [23, 32, 48, 49])
        default: try world.expect(code, [19, 32, 48, 49])
        }
    }

    func number(_ name: String, in text: String) -> UInt64? {
        guard let place = text.range(of: "\"\(name)\":") else { return nil }
        return UInt64(text[place.upperBound...].prefix { $0.isNumber })
    }

    func testRoots() {
        let collaboration = anyCollaboration()
        let people = anyPeople()
        var body = RequestBytes()
        body.add(short: world.names[collaboration])
        append(people, to: &body)
        send(Code.test, body.bytes) { [world] reply, interval in
            switch reply {
            case .error(let code):
                try world.expect(code, [19, 32])
                if code == 19 { world.model.read("no set for test", collaboration, interval) { !$0.exists } }
            case .answer(let bytes):
                var reader = AnswerBytes(bytes)
                guard Int(try reader.number(UInt32.self)) == people.nonzeroBitCount else {
                    throw Violation("a test has another number of results")
                }
                var found: UInt64 = 0
                for person in 0..<SimulatedPeople.personCount where people & 1 << UInt64(person) != 0 {
                    if try reader.number(UInt8.self) == 1 { found |= 1 << UInt64(person) }
                }
                world.model.read("a test", collaboration, interval) { $0.exists && $0.members & people == found }
            }
        }
    }

    func listRoots(_ chosen: Int? = nil) {
        let collaboration = chosen ?? dice.below(4)
        var body = RequestBytes()
        body.add(short: world.names[collaboration])
        body.add(UInt32(64))
        body.add(UInt8(0))
        send(Code.list, body.bytes) { [world] reply, interval in
            switch reply {
            case .error(let code):
                try world.expect(code, [19, 32])
                if code == 19 { world.model.read("no set to list", collaboration, interval) { !$0.exists } }
            case .answer(let bytes):
                var reader = AnswerBytes(bytes)
                let count = try reader.number(UInt32.self)
                guard try reader.number(UInt32.self) == 0 else { throw Violation("a short list has more") }
                var members: UInt64 = 0
                for _ in 0..<count {
                    guard let person = world.population.persons[Array(try reader.take(32))] else {
                        throw Violation("a list has a root hash that nobody added")
                    }
                    members |= 1 << UInt64(person)
                }
                guard members.nonzeroBitCount == Int(count) else { throw Violation("a list has a root hash twice") }
                world.model.read("a list", collaboration, interval) { $0.exists && $0.members == members }
            }
        }
    }

    func countRoots() {
        let collaboration = dice.below(4)
        var body = RequestBytes()
        body.add(short: world.names[collaboration])
        send(Code.count, body.bytes) { [world] reply, interval in
            switch reply {
            case .error(let code):
                try world.expect(code, [19, 32])
                if code == 19 { world.model.read("no set to count", collaboration, interval) { !$0.exists } }
            case .answer(let bytes):
                var reader = AnswerBytes(bytes)
                let policy = try reader.number(UInt8.self)
                guard policy == (collaboration == Model.nonceCollaboration ? 2 : 1) else {
                    throw Violation("a collaboration has another policy")
                }
                _ = try reader.number(UInt32.self)
                let count = try reader.number(UInt64.self)
                world.model.read("a count", collaboration, interval) {
                    $0.exists && $0.members.nonzeroBitCount == Int(count)
                }
            }
        }
    }

    func listCollaborations() {
        var body = RequestBytes()
        body.add(UInt32(100))
        body.add(short: [])
        send(Code.collaborations, body.bytes) { [world] reply, interval in
            guard case .answer(let bytes) = reply else { return }
            var reader = AnswerBytes(bytes)
            let count = try reader.number(UInt32.self)
            _ = try reader.number(UInt32.self)
            var counts: [Int: UInt64] = [:]
            for _ in 0..<count {
                _ = try reader.take(5)
                let roots = try reader.number(UInt64.self)
                let name = Array(try reader.short())
                guard let collaboration = world.names.firstIndex(of: name),
                    counts.updateValue(roots, forKey: collaboration) == nil
                else { throw Violation("a list of collaborations has one too many") }
            }
            for collaboration in world.names.indices {
                let found = counts[collaboration]
                world.model.read("a list of collaborations", collaboration, interval) {
                    found.map { Int($0) } == ($0.exists ? $0.members.nonzeroBitCount : nil)
                }
            }
        }
    }

    /// Reads a page of the change log. `start`: reads all pages from there on.
    func readChanges(from start: UInt64? = nil) {
        let last = world.model.lastDurable
        let after = start ?? last - min(last, UInt64(dice.below(30)))
        var body = RequestBytes()
        body.add(after)
        body.add(UInt32(64))
        send(Code.changes, body.bytes) { [self] reply, _ in
            guard case .answer(let bytes) = reply else {
                if case .error(let code) = reply { try world.expect(code, [32]) }
                return
            }
            var reader = AnswerBytes(bytes)
            let count = try reader.number(UInt32.self)
            let hasMore = try reader.number(UInt32.self) != 0
            var expected = after
            for _ in 0..<count {
                expected += 1
                let sequence = try reader.number(UInt64.self)
                let changed = try reader.number(UInt64.self)
                _ = try reader.take(16)
                let operation = try reader.number(UInt16.self)
                _ = try reader.take(2)
                let size = Int(try reader.number(UInt32.self))
                _ = try reader.short()
                _ = try reader.take(
                    operation == Code.add || operation == Code.remove ? size * 32 : operation == 0x33 ? size : 0)
                guard sequence == expected else { throw Violation("the change log has a gap at \(expected)") }
                guard sequence <= world.model.lastDurable else {
                    throw Violation("a change is told before it is durable")
                }
                world.model.logged(sequence: sequence, operation: operation, changed: changed)
            }
            if hasMore, start != nil {
                readChanges(from: expected)
                flush()
                flushRest()
            }
            if !hasMore, expected < last { throw Violation("the change log ends at \(expected) before \(last)") }
        }
    }
}
