import Core
import Principals
import Testing

/// What limited roles cover.
struct AuthorityTests {
    private func authority(_ roles: [(PrincipalRole, [String], String?)]) throws -> Authority {
        Authority(
            try roles.map { role, prefixes, app in
                LimitedRole(role, prefixes: try prefixes.map { try #require(CollaborationPrefix($0)) }, app: app)
            })
    }

    private func covers(_ authority: Authority, _ text: String, _ role: PrincipalRole = .verify) throws -> Bool {
        authority.allows(role, about: .collaboration(try #require(CollaborationIdentifier(text))))
    }

    @Test("A prefix covers the identifiers that begin with its bytes, and none that only look so")
    func prefixes() throws {
        let limited = try authority([(.verify, ["a/"], nil)])
        for text in ["a/", "a/x", "a/../b", "a//", "a/\u{301}"] { #expect(try covers(limited, text), "\(text)") }
        // The last ones: Cyrillic a, full-width a and solidus, division slash, a with a combining mark.
        for text in [
            "b/", "a", "A/", "A/x", "/a/", " a/", "b/a/", "\u{430}/x", "\u{ff41}/", "a\u{ff0f}", "a\u{2215}x",
            "a\u{301}/x",
        ] {
            #expect(try !covers(limited, text), "\(text)")
        }
    }

    @Test("Texts that Unicode calls equal are different prefixes")
    func normalForms() throws {
        let (composed, decomposed) = ("caf\u{e9}/", "cafe\u{301}/")
        #expect(composed == decomposed)
        let limited = try authority([(.verify, [composed], nil)])
        #expect(try covers(limited, composed + "x"))
        #expect(try !covers(limited, decomposed + "x"))
        #expect(CollaborationPrefix(composed) != CollaborationPrefix(decomposed))
        #expect(
            LimitedRole(.collaborate, prefixes: [.every], app: composed)
                != LimitedRole(.collaborate, prefixes: [.every], app: decomposed))
    }

    @Test("No prefix covers nothing, and only the star covers everything")
    func omissions() throws {
        let nothing = try authority([(.verify, [], nil)])
        #expect(try !covers(nothing, "a"))
        #expect(!nothing.allows(.verify, about: .nothing))
        let everything = try authority([(.verify, ["*"], nil)])
        #expect(try covers(everything, "a"))
        #expect(everything.allows(.verify, about: .everything))
        let limited = try authority([(.verify, ["a"], nil)])
        #expect(limited.allows(.verify, about: .nothing))
        #expect(!limited.allows(.verify, about: .everything))
        #expect(CollaborationPrefix("a*") == nil && CollaborationPrefix("**") == nil && CollaborationPrefix("") == nil)
    }

    @Test("A role gives nothing of another role, and roles of one principal add up")
    func rolesAddUp() throws {
        let both = try authority([(.verify, ["a/"], nil), (.verify, ["b/"], nil), (.enrol, ["c/"], nil)])
        #expect(try covers(both, "a/x") && covers(both, "b/x") && !covers(both, "c/x"))
        #expect(try covers(both, "c/x", .enrol) && !covers(both, "a/x", .enrol))
        for role in [PrincipalRole.collaborate, .observe, .administer] {
            #expect(!both.allows(role, about: .nothing))
        }
    }

    @Test("A role for an app covers that app's part of shelves and nothing of conversations or accounts")
    func apps() throws {
        let app = try authority([(.collaborate, ["*"], "com.example.notes")])
        #expect(app.allows(.collaborate, about: .shelf(app: "com.example.notes")))
        #expect(try covers(app, "a", .collaborate))
        for scope in [RequestScope.shelf(app: nil), .shelf(app: "com.example.Notes"), .shelf(app: ""), .everything] {
            #expect(!app.allows(.collaborate, about: scope))
        }
        let limited = try authority([(.collaborate, ["a/"], "com.example.notes")])
        #expect(!limited.allows(.collaborate, about: .shelf(app: "com.example.notes")))
    }

    @Test("The refusal names the role and nothing else")
    func refusal() {
        for role in PrincipalRole.allCases {
            let error = Authority.missing(role)
            #expect(error.code == .roleMissing && error.detail == 0)
            #expect(error.reason == "the role \(role.rawValue) is missing")
        }
    }
}
