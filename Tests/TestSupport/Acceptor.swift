import Core
import Foundation
package import Transport

/// Listens at 127.0.0.1, and accepts connections on a thread of its own until it is released. That thread closes the
/// listener, so nobody accepts on a descriptor whose number has become another socket's.
package final class Acceptor: Sendable {
    package let endpoint: Endpoint
    private let isReleased = Shared(false)

    /// `serve` gets the descriptor of each connection, which it has to close, and returns whether to accept another
    /// one. Who connects later waits.
    package init(_ serve: @escaping @Sendable (CInt) -> Bool) throws {
        let listener = try Socket.listen(on: Endpoint(host: "127.0.0.1", port: 0))[0]
        endpoint = listener.endpoint
        let isReleased = isReleased
        Thread {
            defer { listener.close() }
            var serves = true
            while !isReleased.value {
                var waiting = pollfd(fd: serves ? listener.descriptor : -1, events: Int16(POLLIN), revents: 0)
                guard poll(&waiting, 1, 20) == 1 else { continue }
                let connection = accept(listener.descriptor, nil, nil)
                if connection >= 0 { serves = serve(connection) }
            }
        }.start()
    }

    deinit { isReleased.with { $0 = true } }
}
