import Core
import Foundation
import TLS
import Testing
import Transport

@testable import RootgateClient

@Suite("A client's link") struct LinkTests {
    @Test(
        "It is freed when its connection has ended, whoever ends it, though its timer is set", arguments: [true, false])
    func isFreed(clientEnds: Bool) async throws {
        // A listening socket that accepts nobody. When it is closed, the system ends its connections.
        let listener = try #require(try Socket.listen(on: Endpoint(host: "127.0.0.1", port: 0)).first)
        let connector = try Connector([Dialer(listener.endpoint, tls: nil)], key: nil, connectTimeout: .seconds(10))
        weak var freed: Link?
        let request: Task<ServiceError?, Never>
        do {
            let link = try await connector.link(until: .now + .seconds(10)).get()
            freed = link
            request = Task {
                let answer = await link.request(.ping, body: [], deadline: .now + .seconds(3600))
                if case .failure(let error) = answer { return error }
                return nil
            }
            while !link.isBusy { try await Task.sleep(for: .milliseconds(1)) }
            #expect(freed != nil)
        }
        if clientEnds { connector.close() }
        close(listener.descriptor)
        #expect(await request.value?.code == .connectionLost)
        // Otherwise the connector keeps the link until it connects again.
        connector.close()
        let end = ContinuousClock.now + .seconds(10)
        while freed != nil, .now < end { try await Task.sleep(for: .milliseconds(1)) }
        #expect(freed == nil)
    }
}
