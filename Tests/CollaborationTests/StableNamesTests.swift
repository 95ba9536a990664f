import Collaboration
import TestSupport
import Testing

/// Names and codes of the layer against PROTOCOL.md.
struct StableNamesTests {
    @Test("Requests are exactly those of PROTOCOL.md")
    func requests() throws {
        let documented = try ProtocolDocument().table(headed: ["request", "fields", "answer"]).map { $0[0] }
        #expect(Set(documented).count == documented.count)
        #expect(Set(documented) == Set(Requests.all.map { $0.name }))
    }

    @Test("Queries are those requests that only read, and no others")
    func queries() {
        let names = Requests.all.filter { $0.isQuery }.map { $0.name }
        let reading = [
            "findParticipants", "highlight", "listInvitations", "listParticipants", "listPrincipals", "listShares",
            "readAttribution", "readConsent", "readDetails", "readInvitation", "readNotices", "readShelf",
            "readThumbnail",
        ]
        #expect(names.sorted() == reading)
    }

    @Test("Grants have exactly the statuses of PROTOCOL.md")
    func statuses() throws {
        let rows = try ProtocolDocument().table(headed: ["status", "name", "meaning"])
        let documented = rows.map { "\($0[0]) \($0[1])" }
        #expect(documented == GrantStatus.allCases.map { "\($0.rawValue) \($0.name)" })
    }

    @Test("Only the status valid allows access, and zero is no status")
    func refusals() {
        #expect(GrantStatus(rawValue: 0) == nil)
        for status in GrantStatus.allCases { #expect(status.isRefusal == (status != .valid)) }
    }

    @Test("Permissions and roles have bytes that lead back to them, and zero is none")
    func bytes() {
        #expect(Permission.allCases.map(\.code) == [1, 2])
        #expect(ParticipantRole.allCases.map(\.code) == [1, 2, 3])
        for permission in Permission.allCases { #expect(Permission(code: permission.code) == permission) }
        for role in ParticipantRole.allCases { #expect(ParticipantRole(code: role.code) == role) }
        #expect(Permission(code: 0) == nil)
        #expect(ParticipantRole(code: 0) == nil)
    }
}
