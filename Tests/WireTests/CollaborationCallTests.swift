import Core
import TestSupport
import Testing
import Wire

/// Requests of the collaboration layer on the wire.
struct CollaborationCallTests {
    @Test("A call comes back as it was, whatever its JSON")
    func call() throws {
        var generator = SeededGenerator(seed: runSeed &+ 500)
        for count in [0, 1, 100, Limits.collaborationRequestBytesMax] {
            let sent = CollaborationCall(
                identifier: MutationIdentifier(7), name: "prepare", json: generator.bytes(count))
            guard case .collaborate(let read) = try decode(.collaborate, bytes { sent.append(to: &$0) }) else {
                Issue.record("it is no call")
                return
            }
            #expect(read.identifier == sent.identifier)
            #expect(read.name == sent.name)
            #expect(read.json == sent.json)
        }
    }

    @Test("Calls that are too short, too long or not UTF-8 are refused")
    func refusedCalls() throws {
        let whole = bytes {
            CollaborationCall(identifier: MutationIdentifier(7), name: "prepare", json: []).append(to: &$0)
        }
        for length in 0..<whole.count {
            #expect(
                thrownServiceError { _ = try decode(.collaborate, Array(whole[..<length])) }?.code == .malformedRequest)
        }
        let long = [UInt8](repeating: 0x20, count: Limits.collaborationRequestBytesMax + 1)
        #expect(thrownServiceError { _ = try decode(.collaborate, whole + long) }?.code == .limitExceeded)
        let longName = [UInt8](repeating: 0, count: 16) + [65] + [UInt8](repeating: 0x61, count: 65)
        #expect(thrownServiceError { _ = try decode(.collaborate, longName) }?.code == .limitExceeded)
        let notText = [UInt8](repeating: 0, count: 16) + [1, 0xff]
        #expect(thrownServiceError { _ = try decode(.collaborate, notText) }?.code == .malformedRequest)
    }

    private static let names = ["a", "b"].compactMap { CollaborationIdentifier($0) }

    private func check(_ generator: inout SeededGenerator) throws -> (entries: [GrantBatch.Entry], body: [UInt8]) {
        let entries = (0..<5).map { index in
            GrantBatch.Entry(
                collaboration: index % 2, deviceKey: index < 2 ? nil : generator.bytes(16), grant: generator.bytes(112))
        }
        var body: [UInt8] = []
        try GrantBatch.append(entries, of: Self.names, atLeast: 9, to: &body)
        return (entries, body)
    }

    @Test("A check of grants comes back as it was")
    func checks() throws {
        var generator = SeededGenerator(seed: runSeed &+ 501)
        let (entries, body) = try check(&generator)
        guard case .checkGrants(let batch) = try decode(.checkGrants, body) else {
            Issue.record("it is no check")
            return
        }
        #expect(batch.atLeast == 9)
        #expect(batch.collaborations == Self.names)
        #expect(batch.count == 5)
        for (index, entry) in entries.enumerated() {
            batch.withBytes { bytes in
                let read = GrantBatch.entry(index, in: bytes)
                #expect(read.collaboration == entry.collaboration)
                let deviceKey = read.deviceKey.map { Array(UnsafeRawBufferPointer(start: $0, count: 16)) }
                #expect(deviceKey == entry.deviceKey)
                #expect(Array(read.grant) == entry.grant)
                let start = GrantBatch.grantOffset(index)
                #expect(Array(bytes[start..<start + 112]) == entry.grant)
            }
        }
    }

    @Test("Open requests and checks of grants ask for options, other requests can't")
    func optionFlags() throws {
        for wantsOptions in [false, true] {
            let check = try bytes {
                try GrantBatch.append([], of: Self.names, wantsOptions: wantsOptions, atLeast: 0, to: &$0)
            }
            guard case .checkGrants(let grants) = try decode(.checkGrants, check) else { throw Unexpected() }
            #expect(grants.wantsOptions == wantsOptions)
            let open = try bytes {
                try ProofBatch.append(
                    [], of: Self.names, isSigned: true, wantsRoots: true, wantsOptions: wantsOptions, to: &$0)
            }
            guard case .open(let proofs) = try decode(.open, open) else { throw Unexpected() }
            #expect(proofs.wantsOptions == wantsOptions && proofs.wantsRoots && proofs.collaborationCount == 2)
            for operation in [Operation.verify, .verifyInclusion] {
                let error = thrownServiceError { _ = try decode(operation, open) }
                #expect(error?.code == (wantsOptions ? .malformedRequest : nil))
            }
        }
    }

    private struct Unexpected: Error {}

    @Test("Lists of options come back as they were, and whatever is cut or added is malformed")
    func optionLists() throws {
        var answer: [UInt8] = [0, 0, 0, 0, 0, 0, 0, 0]
        try OptionLists.append([2, 0, 1, 0] + "é".utf8.prefix(0) + [0x61, 2, 0] + "é".utf8, to: &answer)
        try OptionLists.append([0, 0], to: &answer)
        func read(_ answer: [UInt8], lists: Int = 2) throws(ServiceError) -> [[String]] {
            try answer.withRawBytes { bytes throws(ServiceError) in
                try GrantAnswer.decode(bytes, optionLists: lists).options
            }
        }
        #expect(try read(answer) == [["a", "é"], []])
        for length in 8..<answer.count {
            #expect(thrownServiceError { _ = try read(Array(answer[..<length])) }?.code == .malformedAnswer)
        }
        for (changed, lists) in [(answer + [0], 2), (answer, 1), (answer, 3)] {
            #expect(thrownServiceError { _ = try read(changed, lists: lists) }?.code == .malformedAnswer)
        }
        var full = [UInt8](repeating: 0, count: Limits.frameBodyBytesMax - 2)
        #expect(thrownServiceError { try OptionLists.append([0, 0], to: &full) } == nil)
        #expect(thrownServiceError { try OptionLists.append([0, 0], to: &full) }?.code == .limitExceeded)
    }

    @Test("Every truncation of a check is malformed, and so are a stray position, a reserved bit and a byte too many")
    func refusedChecks() throws {
        var generator = SeededGenerator(seed: runSeed &+ 502)
        let (_, body) = try check(&generator)
        func refusal(_ body: [UInt8]) -> ServiceError.Code? {
            thrownServiceError { _ = try decode(.checkGrants, body) }?.code
        }
        for length in 0..<body.count { #expect(refusal(Array(body[..<length])) == .malformedRequest) }
        #expect(refusal(body + [0]) == .malformedRequest)
        let firstEntry = 16 + 4
        for (offset, byte) in [(firstEntry, 2), (firstEntry + 2, 2), (firstEntry + 3, 1), (firstEntry + 7, 1)]
            + (0..<16).filter({ $0 != 1 }).map({ (8 + $0 / 8, 1 << ($0 % 8)) }) as [(Int, UInt8)]
        {
            var changed = body
            changed[offset] = byte
            #expect(refusal(changed) == .malformedRequest, "byte \(offset)")
        }
        var many = body
        (many[12], many[13]) = (0x01, 0x10)
        #expect(refusal(many) == .limitExceeded)
        many = body
        (many[10], many[11]) = (0x01, 0x10)
        #expect(refusal(many) == .limitExceeded)
    }

    @Test("An open request is the body of a verify request, and nothing shorter")
    func open() throws {
        var generator = SeededGenerator(seed: runSeed &+ 503)
        let entries = (0..<3).map { index -> ProofBatch.Entry in (index % 2, generator.proof()) }
        let body = try bytes {
            try ProofBatch.append(entries, of: Self.names, isSigned: true, wantsRoots: true, atLeast: 11, to: &$0)
        }
        guard case .open(let batch) = try decode(.open, body), case .verify(let same) = try decode(.verify, body) else {
            Issue.record("it is no open request")
            return
        }
        #expect(batch.atLeast == 11)
        #expect(batch.wantsRoots)
        #expect(batch.isSigned)
        #expect(batch.count == 3)
        #expect(String(reflecting: batch) == String(reflecting: same))
        for length in 0..<body.count {
            #expect(thrownServiceError { _ = try decode(.open, Array(body[..<length])) }?.code == .malformedRequest)
        }
    }

    @Test("The sequence that a request demands stands in the same eight bytes of every batch")
    func sequence() throws {
        var grants: [UInt8] = []
        try GrantBatch.append([], of: Self.names, atLeast: 0, to: &grants)
        let proofs = try bytes {
            try ProofBatch.append([], of: Self.names, isSigned: true, wantsRoots: false, to: &$0)
        }
        #expect(grants == proofs)
        for sequence in [0, 1, 0x0102_0304_0506_0708, UInt64.max] {
            let body = field(sequence) + proofs.dropFirst(8)
            for operation in [Wire.Operation.verify, .verifyInclusion, .open, .checkGrants] {
                switch try decode(operation, body) {
                case .verify(let batch), .open(let batch): #expect(batch.atLeast == sequence, "\(operation)")
                case .checkGrants(let batch): #expect(batch.atLeast == sequence)
                default: Issue.record("\(operation)")
                }
            }
        }
    }

    @Test("Answers of open and check are read, and refused when they are cut")
    func answers() throws {
        let verdicts: [Verdict] = [.granted, .badSignature]
        var opened: [UInt8] = []
        verdicts.withUnsafeBufferPointer { VerdictList.append($0, roots: nil, to: &opened) }
        opened += [UInt8](repeating: 7, count: 112) + [UInt8](repeating: 0, count: 112)
        let read = try opened.withUnsafeBytes { try OpenAnswer.decode($0, count: 2) }
        #expect(read.verdicts == verdicts)
        #expect(read.grants == [[UInt8](repeating: 7, count: 112), nil])
        for length in 0..<opened.count {
            let cut = Array(opened[..<length])
            #expect(thrownServiceError { _ = try cut.withUnsafeBytes { try OpenAnswer.decode($0, count: 2) } } != nil)
        }
        var checked: [UInt8] = []
        checked.appendInteger(UInt64(2))
        let given = [
            GrantAnswer(status: 1, permission: 2, role: 3, millisecondsLeft: 4_000_000_000), GrantAnswer(status: 20),
        ]
        for answer in given { answer.append(to: &checked) }
        #expect(try checked.withUnsafeBytes { try GrantAnswer.decode($0).answers } == given)
        for length in 0..<checked.count {
            let cut = Array(checked[..<length])
            #expect(thrownServiceError { _ = try cut.withUnsafeBytes { try GrantAnswer.decode($0) } } != nil)
        }
    }
}
