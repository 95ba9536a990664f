import CLibSSL
import Core
import Testing

@testable import TLS

@Suite struct SessionStoreTests {
    @Test("A client keeps as many sessions as the limit says, the newest, and uses each once")
    func limit() throws {
        let store = SessionStore()
        var made: [OpaquePointer] = []
        for _ in 0...Limits.sessionsKeptMax {
            let session = try #require(SSL_SESSION_new())
            made.append(session)
            store.add(session)
        }
        for session in made.dropFirst().reversed() { #expect(store.take()?.pointer == session) }
        #expect(store.take() == nil)
    }
}
