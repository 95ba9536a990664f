import Foundation

extension Client {
    func layerRequest() throws {
        switch dice.below(18) {
        case 0..<2: changeParticipants(isAddition: true)
        case 2: changeParticipants(isAddition: dice.isOne(in: 2))
        case 3..<6: try prove(isSigned: true, count: 1, isOpen: true)
        case 6..<10: post()
        case 10..<15: follow()
        case 15..<17: checkGrants()
        default: listParticipants()
        }
    }

    private func collaborate(_ name: String, _ json: String, identifier: [UInt8]) -> [UInt8] {
        var body = RequestBytes()
        body.add(bytes: identifier)
        body.add(short: Array(name.utf8))
        body.add(bytes: Array(json.utf8))
        return body.bytes
    }

    private func query(
        _ name: String, _ json: String, role: Role, waitsAfter: UInt64? = nil,
        lost: @escaping (Bool) -> Void = { _ in }, answered: @escaping (Reply, Interval) throws -> Void
    ) {
        let body = collaborate(name, json, identifier: [UInt8](repeating: 0, count: 16))
        send(Code.collaborate, body, waitsAfter: waitsAfter, role: role, lost: lost, answered: answered)
    }

    func mutate(
        _ name: String, _ json: String, _ kind: MutationRecord.Kind, role: Role,
        of collaboration: Int = Model.layerCollaboration
    ) -> MutationRecord {
        let mutation = MutationRecord(
            number: world.model.mutations.count, collaboration: collaboration, kind: kind,
            operation: Code.collaborate, body: collaborate(name, json, identifier: dice.bytes(16)),
            firstSent: world.step)
        mutation.role = role
        world.model.add(mutation)
        return mutation
    }

    private var layer: String { String(decoding: world.names[Model.layerCollaboration], as: UTF8.self) }

    private func hexadecimal(_ person: Int) -> String { hexadecimalText(world.population.roots[person]) }

    /// Starts the collaboration of the layer. `named` gets its identifier.
    func prepare(named: @escaping ([UInt8]) -> Void) {
        let metadata = #"{"localIdentifier":"deck.key","title":"Deck","defaultPermission":"readWrite"}"#
        let body = collaborate(
            "prepare", #"{"owner":"olga","metadata":\#(metadata)}"#, identifier: dice.bytes(16))
        send(Code.collaborate, body) { reply, _ in
            guard case .answer(let bytes) = reply else { throw Violation("the layer's collaboration was not started") }
            let text = String(decoding: bytes, as: UTF8.self)
            guard let place = text.range(of: "\"collaborationIdentifier\":\"") else {
                throw Violation("a collaboration has no identifier: \(text)")
            }
            named(Array(text[place.upperBound...].prefix { $0 != "\"" }.utf8))
        }
        flush()
    }

    /// Makes a principal, without any faults around.
    func create(_ principal: SimulatedPrincipal) {
        let body = collaborate("createPrincipal", principal.creation, identifier: dice.bytes(16))
        send(Code.collaborate, body) { reply, _ in
            guard case .answer = reply else { throw Violation("a principal was not made: \(reply)") }
        }
        flush()
        flushRest()
    }

    private func changeParticipants(isAddition: Bool) {
        var people: UInt64 = 0
        for _ in 0..<1 + dice.below(isAddition ? 4 : 2) {
            people |= 1 << UInt64(dice.below(SimulatedPeople.personCount))
        }
        let chosen = (0..<SimulatedPeople.personCount).filter { people & 1 << UInt64($0) != 0 }
        let list = chosen.map { isAddition ? #"{"identity":"\#(hexadecimal($0))"}"# : "\"\(hexadecimal($0))\"" }
        attempt(
            mutate(
                isAddition ? "addParticipants" : "removeParticipants",
                #"{"collaboration":"\#(layer)","participants":[\#(list.joined(separator: ","))]}"#,
                .participants(added: isAddition ? people : 0, removed: isAddition ? 0 : people), role: .enrol))
    }

    private func post() {
        let grants = world.model.grants
        guard !grants.isEmpty else { return }
        let index = grants.count - 1 - dice.below(min(grants.count, 6))
        let grant = grants[index]
        let text = base64URLText(grant.bytes)
        let mutation = mutate(
            "postNotices",
            #"{"collaboration":"\#(layer)","grant":"\#(text)","events":[{"kind":"change","trigger":"edit"}]}"#,
            .post(author: grant.person), role: .collaborate)
        mutation.grant = index
        attempt(mutation)
        if dice.isOne(in: 10) { hangsUp = true }
    }

    /// Asks for the notices behind the client's cursor, one page at a time. At times the client asks twice at once.
    func follow(limit: Int? = nil, wait chosen: Int? = nil) {
        guard !isFollowing else { return }
        isFollowing = true
        let wait = chosen ?? [0, 300, 5000, 40_000][dice.below(4)]
        let count = limit ?? (dice.isOne(in: 4) ? 1 + dice.below(5) : 64)
        let after = cursor
        let json = """
            {"feed":{"collaboration":"\(layer)"},"after":\(after),"limit":\(count),\
            "waitMilliseconds":\(wait)}
            """
        let waitsAfter = wait > 0 ? after : nil
        query("readNotices", json, role: .collaborate, waitsAfter: waitsAfter) { [self] _ in
            isFollowing = false
        } answered: { [self] reply, interval in
            isFollowing = false
            if let next = try takePage(reply, after: after, interval) { cursor = next }
        }
        guard chosen == nil, dice.isOne(in: 4) else { return }
        query("readNotices", json, role: .collaborate, waitsAfter: waitsAfter) { [self] reply, interval in
            _ = try takePage(reply, after: after, interval)
        }
    }

    /// Judges a page of notices, and returns where the next one begins; `nil`: there is no page.
    private func takePage(_ reply: Reply, after: UInt64, _ interval: Interval) throws -> UInt64? {
        guard case .answer(let bytes) = reply else {
            if case .error(let code) = reply { try world.expect(code, [32]) }
            return nil
        }
        let text = String(decoding: bytes, as: UTF8.self)
        guard let next = number("next", in: text), next >= after else {
            throw Violation("a page of notices has no next one: \(text)")
        }
        let posts = text.components(separatedBy: "\"sequence\":").dropFirst().compactMap {
            UInt64($0.prefix { $0.isNumber })
        }
        world.model.page(after: after, next: next, posts: posts, interval)
        if posts.isEmpty, world.model.hasPost(after: after, acknowledgedBefore: interval.began) {
            throw Violation("a page of notices after \(after) lacks what was acknowledged before")
        }
        return next
    }

    private func checkGrants() {
        let grants = world.model.grants
        guard !grants.isEmpty else { return }
        let chosen = (0..<1 + dice.below(3)).map { _ in grants.count - 1 - dice.below(min(grants.count, 20)) }
        let atLeast = demandedSequence()
        var body = RequestBytes()
        body.add(atLeast)
        body.add(UInt16(0))
        body.add(UInt16(1))
        body.add(UInt32(chosen.count))
        body.add(short: world.names[Model.layerCollaboration])
        for index in chosen {
            body.add(UInt32(0))
            body.add(bytes: [UInt8](repeating: 0, count: 16))
            body.add(bytes: grants[index].bytes)
        }
        send(Code.check, body.bytes) { [world] reply, interval in
            guard case .answer(let bytes) = reply else {
                if case .error(89) = reply { return try world.model.demanded(atLeast, isRefused: true, interval) }
                if case .error(let code) = reply { try world.expect(code, [32]) }
                return
            }
            try world.model.demanded(atLeast, isRefused: false, interval)
            var reader = AnswerBytes(bytes)
            guard Int(try reader.number(UInt32.self)) == chosen.count, try reader.number(UInt32.self) == 0 else {
                throw Violation("an answer has other grants than were asked for")
            }
            for index in chosen {
                let status = try reader.number(UInt8.self)
                _ = try reader.take(7)
                try world.demand([1, 17, 20].contains(status), "a grant has the status \(status)")
                world.model.grantChecked(index, isValid: status == 1, interval, "a check with the status \(status)")
            }
        }
    }

    private func listParticipants() {
        let json = #"{"collaboration":"\#(layer)","limit":64,"includesRemoved":false}"#
        query("listParticipants", json, role: .enrol) { [world] reply, interval in
            guard case .answer(let bytes) = reply else {
                if case .error(let code) = reply { try world.expect(code, [32]) }
                return
            }
            var members: UInt64 = 0
            let text = String(decoding: bytes, as: UTF8.self)
            for part in text.components(separatedBy: "\"identity\":\"").dropFirst() {
                guard let person = world.hexadecimal[String(part.prefix(64))] else {
                    throw Violation("a list has a participant whom nobody added")
                }
                members |= 1 << UInt64(person)
            }
            world.model.read("a list of participants", Model.layerCollaboration, interval) { $0.members == members }
        }
    }
}
