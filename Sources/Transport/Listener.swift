import Foundation

/// A socket that waits for connections.
package struct Listener: Sendable {
    /// Non-blocking. Whoever has the listener closes it.
    package let descriptor: CInt
    /// Where it listens, with the actual port.
    package let endpoint: Endpoint
    /// The file of a local socket.
    let file: SocketFile?

    init(_ descriptor: CInt, _ endpoint: Endpoint, file: SocketFile? = nil) {
        self.descriptor = descriptor
        self.endpoint = endpoint
        self.file = file
    }

    /// Removes the file of a local socket if it is still this listener's. Must be called before the descriptor is
    /// closed: until then no other process takes the file's place, and no other file gets its number.
    package func removeFile() {
        file?.remove()
    }

    /// Removes the file of a local socket, and closes the descriptor.
    package func close() {
        removeFile()
        Foundation.close(descriptor)
    }
}
