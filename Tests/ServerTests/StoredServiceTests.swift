@testable import Collaboration
import Core
import Foundation
import Identity
import Principals
@testable import RootSets
import RootgateClient
import ServiceTestSupport
import TestSupport
import Testing
import Wire

/// Formats of which `Tests/StoredFormats` has the data of a service with its answers. The last one is the present one.
private let storedFormats = [2]

/// A service on data that an earlier version wrote, at the time at which that was asked.
private struct StoredService {
    let answers: StoredAnswers
    let service: TestService

    init(ofFormat format: Int) throws {
        let answers = try StoredAnswers(ofFormat: format)
        self.answers = answers
        let directory = ScratchDirectory()
        let data = directory.path + "/data"
        try StoredService.unpack(format, to: data)
        let secret = try #require(Data(base64Encoded: answers.head.secret))
        try secret.write(to: URL(fileURLWithPath: data + "/secret"))
        chmod(data + "/secret", 0o600)
        service = try TestService(directory: directory, calendar: TestCalendar(milliseconds: answers.head.at))
    }

    /// Unpacks the data file to a new directory.
    static func unpack(_ format: Int, to directory: String) throws {
        try FileManager.default.createDirectory(atPath: directory, withIntermediateDirectories: false)
        try unpackStoredFile("service-\(format).txt", to: directory + "/data.mdb")
    }

    /// Waits until everything that is stored was checked, and expects that it is intact.
    func expectIntact() {
        let health = service.service.resources.rootSets.health
        #expect(becomesTrue { health.isChecked })
        #expect(health.level == .intact, "\(health.finding?.what ?? "")")
    }

    /// Sends each query over one connection, and returns the answers in their order.
    func ask() throws -> [StoredAnswer] {
        let peer = try RawPeer(service.endpoint)
        peer.send(.hello(minimum: 1, maximum: 1, key: Array(answers.head.key.utf8)), id: 1)
        let hello = try #require(peer.readFrame())
        try #require(hello.header.kind == .answer)
        return try answers.queries.map { query in
            let (operation, body) = try StoredService.frame(query)
            peer.send(operation, id: 2, body: body)
            let frame = try #require(peer.readFrame(), "\(query.name)")
            return try StoredService.kept(frame.body, isError: frame.header.kind == .error, of: query)
        }
    }

    /// The operation and the body of a query's frame.
    private static func frame(_ query: StoredQuery) throws -> (operation: UInt16, body: [UInt8]) {
        if let request = query.request {
            let fields = try #require(query.fields, "\(query.name)")
            var body: [UInt8] = []
            CollaborationCall(identifier: .random(), name: request, json: Array(fields.json.utf8)).append(to: &body)
            return (Operation.collaborate.rawValue, body)
        }
        guard let operation = query.operation else { return (Operation.statistics.rawValue, []) }
        let body = try #require(query.body.flatMap { [UInt8](hexadecimal: $0) }, "\(query.name)")
        return (UInt16(truncatingIfNeeded: operation), body)
    }

    /// What is compared of the body of an answer to a query.
    private static func kept(_ body: [UInt8], isError: Bool, of query: StoredQuery) throws -> StoredAnswer {
        if isError {
            try #require(body.count >= 2, "\(query.name)")
            return .error(Int(body[0]) | Int(body[1]) << 8)
        }
        if query.request != nil { return .json(try JSON.decode(PlainJSON.self, from: body)) }
        guard query.operation == nil else {
            return StoredAnswer(body, cleared: query.cleared, isLong: query.isLong)
        }
        // Later versions may have more statistics, and many tell nothing of what is stored.
        let statistics = try body.withRawBytes { bytes throws(ServiceError) in try Answer.statistics(bytes) }
        guard case .json(.object(let expected))? = query.expected else { return .json(.null) }
        var members: [String: PlainJSON] = [:]
        for figure in statistics where expected[figure.name] != nil {
            members[figure.name] = .number("\(figure.value)")
        }
        return .json(.object(members))
    }

    /// Changes that clients make: root hashes, and a participant who comes, opens, posts a notice and is removed.
    func change() async throws {
        let key = try #require(APIKey(answers.head.key))
        let client = try RootgateClient(service.endpoint, configuration: .init(requestTimeout: patience, key: key))
        defer { client.close() }
        let roots = try #require(CollaborationIdentifier("stored-roots"))
        #expect(try await client.addRoots([.zero], to: roots).changed == 1)
        let shared = try #require(CollaborationIdentifier("stored-changing"))
        let person = try Person(deviceCount: 1).identity(in: shared)
        let identity = PersonIdentity(rootHash: person.rootHash)
        let newcomer = NewParticipant(identity, displayName: "Nora")
        #expect(try await client.send(AddParticipants([newcomer], to: shared)).changed == 1)
        let proof = try person.proof(ofDevice: 0, signing: try await client.challenge())
        let decision = try await client.open(proof, in: shared)
        #expect(decision.verdict == .granted)
        let grant = try #require(decision.grant)
        #expect(try await client.send(PostNotices([.change(trigger: .edit)], on: shared, by: grant)).changed == 1)
        #expect(try await client.send(RemoveParticipants([identity], from: shared)).changed == 1)
    }
}

@Suite("What a service of each format has stored")
struct StoredServiceTests {
    @Test(
        "Queries get the answers of the version that wrote the data, also after changes that don't touch them",
        arguments: storedFormats)
    func answers(format: Int) async throws {
        let stored = try StoredService(ofFormat: format)
        stored.expectIntact()
        let queries = stored.answers.queries
        for (query, came) in try zip(queries, stored.ask()) {
            let mismatch = query.mismatch(came, isLater: false)
            #expect(mismatch == nil, "format \(format): \(mismatch ?? "")")
        }
        try await stored.change()
        try stored.service.restart()
        stored.expectIntact()
        for (query, came) in try zip(queries, stored.ask()) {
            let mismatch = query.mismatch(came, isLater: true)
            if query.isTouched == true {
                #expect(mismatch != nil, "format \(format): \(query.name) is as before the changes")
            } else {
                #expect(mismatch == nil, "format \(format), after changes: \(mismatch ?? "")")
            }
        }
    }

    @Test("One digit that differs in an answer is found, and the message names the query", arguments: storedFormats)
    func otherAnswers(format: Int) throws {
        let answers = try StoredAnswers(ofFormat: format)
        var changed = 0
        for (query, line) in zip(answers.queries, answers.lines) {
            let kept = try #require(query.expected, "\(query.name)")
            #expect(query.mismatch(kept, isLater: false) == nil)
            guard let other = StoredAnswers.changed(line) else { continue }
            let mismatch = try StoredAnswers.query(other).mismatch(kept, isLater: false)
            #expect(mismatch?.hasPrefix(query.name) == true)
            changed += 1
        }
        #expect(changed > answers.queries.count / 2)
    }

    @Test("The data of the present format have a record of every kind that the collaboration layer writes")
    func kinds() throws {
        let scratch = ScratchDirectory()
        let directory = scratch.path + "/data"
        let format = try #require(storedFormats.last)
        #expect(format == Int(StorageFormat.current))
        try StoredService.unpack(format, to: directory)
        let sets = try RootSets(
            RootSets.Configuration(directory: directory, sizeLimitBytes: 1 << 26, reserveBytes: 1 << 20))
        defer { sets.close() }
        let missing = try sets.read { snapshot throws(ServiceError) -> [RecordKeys.Kind] in
            var missing: [RecordKeys.Kind] = []
            for kind in RecordKeys.Kind.allCases {
                let range = RecordRange.beginning(with: Array(kind.rawValue.utf8))
                if try snapshot.records(in: range, limit: 1).items.isEmpty { missing.append(kind) }
            }
            return missing
        }
        #expect(missing.isEmpty, "\(missing): let Tests/Python/stored_service.py write them")
        let first = try sets.read { snapshot throws(ServiceError) in try snapshot.statistics().firstSequence }
        #expect(first > 1, "the change log has its beginning")
    }
}
