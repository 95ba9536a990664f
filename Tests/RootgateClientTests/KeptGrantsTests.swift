import Collaboration
import Core
import TestSupport
import Testing

@testable import RootgateClient

@Suite("Grants that a center keeps")
struct KeptGrantsTests {
    @Test("The newest grant of each collaboration is kept, of as many collaborations as there is room for")
    func newest() throws {
        let names = try (0...KeptGrants.countMax).map { try #require(CollaborationIdentifier("deck-\($0)")) }
        func grant(_ number: Int) throws -> AccessGrant {
            try #require(AccessGrant(bytes: [UInt8](repeating: UInt8(number), count: AccessGrant.byteCount)))
        }
        var kept = KeptGrants()
        for (number, name) in names.dropLast().enumerated() { kept[name] = try grant(number) }
        kept[names[0]] = try grant(200)
        kept[names[2]] = nil
        kept[names[2]] = try grant(2)
        for (number, name) in names.dropLast().enumerated() {
            #expect(try kept[name] == grant(number == 0 ? 200 : number))
        }
        // The one that was taken longest ago gives its place away.
        kept[names[64]] = try grant(64)
        #expect(try kept[names[1]] == nil && kept[names[0]] == grant(200) && kept[names[64]] == grant(64))
    }
}
