#if os(Linux)
import CLinux
import Foundation

/// Something that a sandbox refuses, or that must go on working in one.
enum Attempt: String {
    case writeInside, readKey, thread, crowd, nothing
    case readOutside, writeOutside, writeKey, listKeys, makeFolder, readParent
    case socket, connect, allowedPort, otherPort, localSocket, lookUp, fork, executableMemory, protectMemory,
        signalParent, unknownCall
    case execute, trace, readMemory, mount, unshare, bpf, ring, key, changeUser, otherNumbers

    /// The port to which the rules of `connecting` let connections be made.
    static let port: UInt16 = 2379

    /// Says whether the kernel has Landlock (its version, or 0), and filters of system calls.
    static var kernel: String {
        let version = system_call(landlock_create_ruleset_call, 0, 0, 1, 0, 0, 0)
        let kill: UInt32 = 0x8000_0000
        return "landlock \(max(0, version)) seccomp \(has_filter_action(kill))"
    }

    /// Returns 0, or the errno with which the attempt has failed.
    func perform(in folder: String) -> CInt {
        switch self {
        case .nothing: return 0
        case .writeInside: return writeAndReplace(folder + "/data/file")
        case .readKey: return tryOpen(folder + "/keys/key", O_RDONLY)
        case .thread: return runThread()
        case .crowd: return runCrowd()
        case .readParent: return tryOpen("/proc/\(getppid())/environ", O_RDONLY)
        case .readOutside: return tryOpen("/etc/passwd", O_RDONLY)
        case .writeOutside: return tryOpen(folder + "/outside", O_WRONLY | O_CREAT)
        case .writeKey: return tryOpen(folder + "/keys/key", O_WRONLY)
        case .listKeys: return tryOpen(folder + "/keys", O_RDONLY | O_DIRECTORY)
        case .makeFolder: return outcome(Int(mkdir(folder + "/data/folder-\(UUID())", 0o700)))
        case .socket: return outcome(Int(Foundation.socket(AF_INET, CInt(SOCK_STREAM.rawValue), 0)))
        case .connect: return outcome(Int(Foundation.connect(-1, nil, 0)), expecting: EBADF)
        case .allowedPort: return tryPort(Attempt.port)
        case .otherPort: return tryPort(Attempt.port + 1)
        case .localSocket: return outcome(Int(Foundation.socket(AF_UNIX, CInt(SOCK_STREAM.rawValue), 0)))
        case .lookUp: return lookUpName()
        case .fork: return forkOnce()
        case .executableMemory: return mapMemory(PROT_READ | PROT_EXEC, thenProtect: nil)
        case .protectMemory: return mapMemory(PROT_READ | PROT_WRITE, thenProtect: PROT_READ | PROT_EXEC)
        case .signalParent: return outcome(Int(kill(getppid(), 0)))
        case .unknownCall: return call(1000)
        case .execute: return execute()
        // PTRACE_SEIZE of no process.
        case .trace: return call(Int(SYS_ptrace), 0x4206)
        case .readMemory: return call(Int(SYS_process_vm_readv), Int(getpid()))
        case .mount: return call(Int(SYS_mount))
        case .unshare: return call(Int(SYS_unshare))
        case .bpf: return call(Int(SYS_bpf))
        case .ring: return call(Int(SYS_io_uring_setup))
        case .key: return call(Int(SYS_keyctl))
        case .changeUser: return call(Int(SYS_setuid), Int(getuid()))
        case .otherNumbers: return call(0x4000_0000 + 39)
        }
    }

    /// Connects to a port of this machine, at which somebody may listen or not.
    private func tryPort(_ port: UInt16) -> CInt {
        let descriptor = Foundation.socket(AF_INET, CInt(SOCK_STREAM.rawValue), 0)
        guard descriptor >= 0 else { return errno }
        defer { close(descriptor) }
        var address = sockaddr_in()
        address.sin_family = sa_family_t(AF_INET)
        address.sin_port = port.bigEndian
        address.sin_addr.s_addr = UInt32(0x7f00_0001).bigEndian
        let size = socklen_t(MemoryLayout<sockaddr_in>.size)
        let result = withUnsafePointer(to: &address) {
            $0.withMemoryRebound(to: sockaddr.self, capacity: 1) { Foundation.connect(descriptor, $0, size) }
        }
        return outcome(Int(result), expecting: ECONNREFUSED)
    }

    private func lookUpName() -> CInt {
        var found: UnsafeMutablePointer<addrinfo>?
        let code = getaddrinfo("localhost", "2379", nil, &found)
        freeaddrinfo(found)
        return code == 0 ? 0 : 255
    }

    private func outcome(_ result: Int, expecting number: CInt = 0) -> CInt {
        guard result < 0 else { return 0 }
        return errno == number ? 0 : errno
    }

    private func call(_ number: Int, _ argument: Int = 0) -> CInt {
        outcome(system_call(number, argument, 0, 0, 0, 0, 0))
    }

    private func tryOpen(_ path: String, _ flags: CInt) -> CInt {
        let descriptor = open(path, flags | O_CLOEXEC, 0o600)
        guard descriptor >= 0 else { return errno }
        close(descriptor)
        return 0
    }

    private func writeAndReplace(_ path: String) -> CInt {
        let descriptor = open(path + ".new", O_RDWR | O_CREAT | O_TRUNC | O_CLOEXEC, 0o600)
        guard descriptor >= 0 else { return errno }
        defer { close(descriptor) }
        guard write(descriptor, "text", 4) == 4, ftruncate(descriptor, 2) == 0, fsync(descriptor) == 0,
            rename(path + ".new", path) == 0, tryOpen(path, O_RDONLY) == 0, unlink(path) == 0
        else { return errno }
        return 0
    }

    private func runThread() -> CInt {
        let done = DispatchSemaphore(value: 0)
        Thread { done.signal() }.start()
        DispatchQueue.global().async { done.signal() }
        for _ in 0..<2 { guard done.wait(timeout: .now() + 30) == .success else { return ETIMEDOUT } }
        return 0
    }

    /// Lets work wait for Dispatch's threads for more than a second: then Dispatch looks into /proc which of them run.
    private func runCrowd() -> CInt {
        let group = DispatchGroup()
        for _ in 0..<150 { DispatchQueue.global().async(group: group) { usleep(20_000) } }
        return group.wait(timeout: .now() + 60) == .success ? 0 : ETIMEDOUT
    }

    private func forkOnce() -> CInt {
        // Like fork(2), which Swift has not: a process that ends at once.
        let child = system_call(Int(SYS_clone), Int(SIGCHLD), 0, 0, 0, 0, 0)
        if child == 0 { _exit(0) }
        guard child > 0 else { return errno }
        waitpid(pid_t(child), nil, 0)
        return 0
    }

    private func mapMemory(_ protection: CInt, thenProtect other: CInt?) -> CInt {
        guard let pages = mmap(nil, 4096, protection, MAP_PRIVATE | MAP_ANON, -1, 0), pages != MAP_FAILED else {
            return errno
        }
        defer { munmap(pages, 4096) }
        guard let other else { return 0 }
        return outcome(Int(mprotect(pages, 4096, other)))
    }

    private func execute() -> CInt {
        var words: [UnsafeMutablePointer<CChar>?] = [strdup("/bin/echo"), strdup("executed"), nil]
        execv("/bin/echo", &words)
        return errno
    }
}
#endif
