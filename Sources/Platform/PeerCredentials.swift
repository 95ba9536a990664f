/// The process at the other end of a local socket, as the kernel tells it. The peer can't forge this.
package struct PeerCredentials: Hashable, Sendable {
    /// The process's effective user when it connected. It may have another user by now.
    package let user: UInt32
    /// The process that connected; 0 when it is in another namespace of processes, or when the system can't tell. It
    /// may have ended, and passed the socket on before.
    package let process: Int32

    package init(user: UInt32, process: Int32) {
        self.user = user
        self.process = process
    }
}
