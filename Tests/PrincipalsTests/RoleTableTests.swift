import Principals
import TestSupport
import Testing
import Wire

/// The table of roles, against PROTOCOL.md and against a table that is written out here.
struct RoleTableTests {
    private static let expected: [Wire.Operation: RoleTable.Need] = [
        .hello: .nothing, .ping: .nothing, .issueChallenges: .role(.verify), .verify: .role(.verify),
        .verifyInclusion: .role(.verify), .addRoots: .role(.enrol), .removeRoots: .role(.enrol),
        .testRoots: .role(.observe), .listRoots: .role(.observe), .countRoots: .role(.observe),
        .createCollaboration: .role(.enrol), .dropCollaboration: .role(.enrol), .listCollaborations: .role(.observe),
        .edit: .role(.enrol), .statistics: .role(.observe), .readChanges: .role(.observe), .collaborate: .byName,
        .confirmEverywhere: .role(.enrol), .readSnapshot: .nothing, .open: .role(.verify), .checkGrants: .role(.verify),
    ]

    @Test("Every operation needs the role that is written here", arguments: Wire.Operation.allCases)
    func operations(operation: Wire.Operation) {
        #expect(RoleTable.need(of: operation) == Self.expected[operation])
    }

    @Test("PROTOCOL.md has the same table")
    func documented() throws {
        let document = try ProtocolDocument()
        let rows = document.table(headed: ["role", "operations", "requests of the collaboration layer"])
        let numbers = Dictionary(
            uniqueKeysWithValues: document.table(headed: [
                "operation", "number", "body of the request", "body of the answer",
            ]).map { ($0[0], UInt16($0[1].dropFirst(2), radix: 16)) })
        #expect(rows.map { $0[0] } == ["(none)"] + PrincipalRole.allCases.map(\.rawValue))
        var listed: Set<Wire.Operation> = []
        func names(_ cell: String) -> [String] {
            cell.isEmpty ? [] : cell.components(separatedBy: ", ")
        }
        for row in rows {
            let role = PrincipalRole(rawValue: row[0])
            for name in names(row[1]) {
                let number = try #require(numbers[name] ?? nil, "\(name) is no operation")
                let operation = try #require(Operation(rawValue: number))
                #expect(RoleTable.need(of: operation) == role.map { .role($0) } ?? .nothing)
                #expect(listed.insert(operation).inserted)
            }
            for name in names(row[2]) { #expect(RoleTable.role(ofRequest: name) == role, "\(name)") }
            #expect(Set(names(row[2])) == Set(role.flatMap { RoleTable.requests[$0] } ?? []))
        }
        #expect(listed == Set(Wire.Operation.allCases).subtracting([.edit, .collaborate]))
    }

    @Test("A request that nobody has heard of needs a role that nobody has")
    func unknown() {
        for name in ["", "Prepare", "prepare ", "hello", "readShelf\u{0}"] {
            #expect(RoleTable.role(ofRequest: name) == nil)
        }
    }
}
