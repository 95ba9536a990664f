import Core
import Foundation
import RootgateClient
import ServiceTestSupport
import TestSupport
import Testing

/// The whole program with another date than the system's: `Tests/SteppedDate` stands before the functions that tell it.
@Suite(
    "A date before 1970", .timeLimit(.minutes(5)),
    .enabled(if: FailingReads.isAvailable, "needs Linux, and clang or cc"))
struct DateBefore1970Tests {
    private static let monthSeconds = 30 * 24 * 3600

    @Test("With a date of 1969 the program grants a proof once, takes changes, and ends in order")
    func serves() async throws {
        let scratch = ScratchDirectory()
        let library = scratch.path + "/stepped_date.so"
        try FailingReads.makeLibrary(library, of: "Tests/SteppedDate/stepped_date.c")
        let ahead = -Int(Date().timeIntervalSince1970) - DateBefore1970Tests.monthSeconds
        let service = try ServiceProcess(environment: ["LD_PRELOAD": library, "SECONDS_AHEAD": "\(ahead)"])
        // Its lines begin with the date, so this tells that it has that one.
        #expect(becomesTrue { service.log.hasPrefix("1969-1") }, "\(service.log)")
        let client = try service.client()
        // This makes a collaboration and adds a root hash.
        let small = try await SmallCollaboration(client)
        let proof = try await small.proof()
        #expect(try await client.verify(proof, in: small.collaboration) == .granted)
        #expect(try await client.verify(proof, in: small.collaboration) == .challengeReplayed)
        let removal = try await client.removeRoots([small.person.rootHash], from: small.collaboration)
        #expect(removal.sequence == 3 && removal.changed == 1)
        #expect(try await client.verify(try await small.proof(), in: small.collaboration) == .notParticipant)
        #expect(service.terminate(within: 60), "\(service.log)")
        #expect(!service.log.contains("CRITICAL"), "\(service.log)")
        let checked = try runProgram(ServiceProcess.path, ["fsck", service.dataDirectory])
        #expect(checked.code == 0 && checked.output == "nothing is damaged\n", "\(checked.output)\(checked.errors)")
    }
}
