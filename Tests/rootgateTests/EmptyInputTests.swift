import ServiceTestSupport
import TestSupport
import Testing

@testable import rootgate

@Suite("Proofs from an empty file")
struct EmptyInputTests {
    @Test("Verifying, explaining and opening fail, so that a script does not take them for a grant")
    func empty() throws {
        let service = try TestService()
        let server = ["--server", service.endpoint.description]
        for words in [
            ["verify"], ["verify", "--collaboration", "deck"] + server, ["explain"],
            ["collab", "open", "deck"] + server,
        ] {
            let told = try runProgram(programPath, words + ["/dev/null"])
            #expect(told.code == 2 && told.output.isEmpty, "\(words): \(told)")
            #expect(told.errors.contains("/dev/null has no proof: one is expected on each line"), "\(words): \(told)")
        }
    }
}
