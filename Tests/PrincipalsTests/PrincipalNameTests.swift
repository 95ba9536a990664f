import Principals
import Testing

/// Names of principals.
struct PrincipalNameTests {
    @Test("Letters, digits and a few marks make a name", arguments: ["a", "0", "svc:backend/eu-1@example.com_x"])
    func names(text: String) throws {
        #expect(try #require(PrincipalName(text)).text == text)
    }

    @Test(
        "What audits call others, what looks alike and what steers a terminal is no name",
        arguments: [
            "", "anonymous", "Anonymous", "service", "SERVICE", "-a", ".a", "a b", "a\n", "\u{430}", "\u{212a}", "é",
            "a\u{301}", "a\"", String(repeating: "a", count: 129),
        ])
    func refused(text: String) {
        #expect(PrincipalName(text) == nil)
    }

    @Test("A name may have 128 characters")
    func longest() {
        #expect(PrincipalName(String(repeating: "a", count: 128)) != nil)
    }
}
