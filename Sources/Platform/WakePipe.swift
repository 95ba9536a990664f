import Foundation

/// A pipe by which other threads wake a thread that waits for readiness.
package final class WakePipe: Sendable {
    /// The end that the waiting thread watches for reading.
    package let descriptor: CInt
    private let writer: CInt

    /// Throws when the system has no more descriptors.
    package init() throws(SystemFailure) {
        var ends: [CInt] = [-1, -1]
        guard pipe(&ends) == 0 else { throw SystemFailure("pipe") }
        (descriptor, writer) = (ends[0], ends[1])
        for end in ends {
            guard fcntl(end, F_SETFD, FD_CLOEXEC) != -1, fcntl(end, F_SETFL, O_NONBLOCK) != -1 else {
                throw SystemFailure("fcntl")
            }
        }
    }

    deinit {
        // A failure of close(2) has no consequence: the pipe holds nothing that anybody needs.
        close(descriptor)
        close(writer)
    }

    /// Makes the descriptor readable. May be called on any thread.
    package func wake() {
        var byte: UInt8 = 1
        // The result does not matter: writing fails only when the pipe is full, and then the descriptor is readable.
        _ = write(writer, &byte, 1)
    }

    /// Makes the descriptor unreadable again, until the next `wake`.
    package func drain() {
        var bytes = [UInt8](repeating: 0, count: 64)
        // An empty pipe ends it with an error. Whatever else could end it leaves the descriptor readable.
        while read(descriptor, &bytes, bytes.count) > 0 {}
    }
}
