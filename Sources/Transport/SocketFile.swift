import Core
import Foundation
import Platform

/// The file of a local socket that this process listens on.
struct SocketFile: Sendable {
    let path: String
    private let device: dev_t
    private let inode: ino_t

    /// Binds `descriptor`, a new socket, to a file at `path` with exactly the permissions `mode`, and listens. Nobody
    /// can connect before it listens. A file that a dead service has left there is replaced.
    ///
    /// Throws EADDRINUSE when another process listens there, EEXIST when the file there is no socket, ENAMETOOLONG when
    /// the path is too long, and what the system says. Then the file that was there is still there.
    init(
        listening descriptor: CInt, at path: String, mode: mode_t, backlog: CInt
    ) throws(SystemFailure) {
        // A path that can't be an address is refused before anything else is looked at.
        try Socket.withLocalAddress(path) { _, _ in }
        let folder = try SocketFile.lockedFolder(of: path)
        defer { close(folder) }
        if try SocketFile.isLeftBehind(path) {
            guard unlink(path) == 0 || errno == ENOENT else {
                throw SystemFailure("removing the socket that a dead service has left")
            }
        }
        // On Linux the file is made with these permissions, less those of the umask. Other systems refuse this.
        _ = fchmod(descriptor, mode)
        let bound = try Socket.withLocalAddress(path) { bind(descriptor, $0, $1) == 0 ? 0 : errno }
        guard bound == 0 else { throw SystemFailure("bind", number: bound) }
        guard let status = SocketFile.status(of: path) else { throw SystemFailure("lstat") }
        (self.path, device, inode) = (path, status.st_dev, status.st_ino)
        let isPermitted =
            status.st_mode & 0o777 == mode || fchmodat(AT_FDCWD, path, mode, AT_SYMLINK_NOFOLLOW) == 0
        // The folder is still locked: a socket that is bound and does not listen looks like one that was left.
        guard isPermitted, listen(descriptor, backlog) == 0 else {
            let failure = SystemFailure(isPermitted ? "listen" : "setting its permissions")
            remove()
            throw failure
        }
    }

    /// Removes the file unless another one is in its place.
    func remove() {
        guard let status = SocketFile.status(of: path), status.st_dev == device, status.st_ino == inode else { return }
        unlink(path)
    }

    /// Opens the folder and locks it, so that of two services that start at once one does not remove the other's file.
    private static func lockedFolder(of path: String) throws(SystemFailure) -> CInt {
        let folder = open(System.folder(of: path), O_RDONLY | O_DIRECTORY | O_CLOEXEC)
        guard folder >= 0 else { throw SystemFailure("opening its folder") }
        for _ in 0..<Limits.socketFolderMillisecondsMax / 10 {
            if flock(folder, LOCK_EX | LOCK_NB) == 0 { return folder }
            guard errno == EWOULDBLOCK || errno == EINTR else { break }
            usleep(10_000)
        }
        let failure = SystemFailure("locking its folder")
        close(folder)
        throw failure
    }

    /// Whether there is a socket on which nobody listens.
    ///
    /// Throws when what is there must stay.
    private static func isLeftBehind(_ path: String) throws(SystemFailure) -> Bool {
        guard let status = status(of: path) else { return false }
        guard status.st_mode & S_IFMT == S_IFSOCK else {
            throw SystemFailure("bind", number: EEXIST, reason: "there is a file that is no socket; it was kept")
        }
        let probe = socket(AF_UNIX, System.streamSocket, 0)
        guard probe >= 0 else { throw SystemFailure("socket") }
        defer { close(probe) }
        guard fcntl(probe, F_SETFL, O_NONBLOCK) != -1 else { throw SystemFailure("fcntl") }
        switch try Socket.withLocalAddress(path, { connect(probe, $0, $1) == 0 ? 0 : errno }) {
        case ECONNREFUSED: return true
        case ENOENT: return false
        // EAGAIN: its queue of connections is full. EPROTOTYPE: it is no stream.
        case 0, EAGAIN, EINPROGRESS, EPROTOTYPE: throw SystemFailure("bind", number: EADDRINUSE)
        case let number: throw SystemFailure("connecting to the socket that is there", number: number)
        }
    }

    private static func status(of path: String) -> stat? {
        var found = stat()
        return lstat(path, &found) == 0 ? found : nil
    }
}
