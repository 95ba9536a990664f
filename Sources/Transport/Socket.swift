package import Core
import Foundation
package import Platform

/// System calls on sockets. Only this file and its extensions know their C types.
package enum Socket {
    // MARK: Listening

    /// Listens on every address of the endpoint's host. Port 0 selects a free port, the same for all addresses. Returns
    /// non-blocking descriptors with their endpoints.
    ///
    /// Throws when the service can listen on none of the addresses, or when another process has the port on one of
    /// them. Otherwise that process would get some of the clients. With port 0, addresses on which the first one's port
    /// is taken are left out. `mode`: the permissions of a local socket's file. The file of a dead service is replaced,
    /// and every other file stays: then EADDRINUSE or EEXIST is thrown.
    package static func listen(
        on endpoint: Endpoint, mode: UInt32 = standardMode, backlog: CInt = CInt(Limits.listenBacklog)
    ) throws(SystemFailure) -> [Listener] {
        if let path = endpoint.path { return [try listen(at: path, mode: mode, backlog: backlog)] }
        return try listen(at: try addresses(of: endpoint, passive: true), port: endpoint.port, backlog: backlog)
    }

    static func listen(at addresses: [Address], port wanted: UInt16, backlog: CInt) throws(SystemFailure) -> [Listener]
    {
        var listeners: [Listener] = []
        var port = wanted
        var failure = SystemFailure("listen", number: EADDRNOTAVAIL)
        for address in addresses {
            let descriptor = socket(address.family, System.streamSocket, 0)
            guard descriptor >= 0 else {
                failure = SystemFailure("socket")
                continue
            }
            var isBound = setOption(descriptor, SOL_SOCKET, SO_REUSEADDR, 1)
            if address.family == AF_INET6 {
                isBound = isBound && setOption(descriptor, CInt(IPPROTO_IPV6), IPV6_V6ONLY, 1)
            }
            isBound = isBound && address.with(port: port) { bind(descriptor, $0, $1) } == 0
            guard isBound, Foundation.listen(descriptor, backlog) == 0, stopBlocking(descriptor) else {
                failure = SystemFailure(isBound ? "listen" : "bind")
                close(descriptor)
                if failure.number == EADDRINUSE, wanted != 0 {
                    for listener in listeners { close(listener.descriptor) }
                    throw failure
                }
                continue
            }
            if port == 0 { port = localPort(of: descriptor) }
            listeners.append(Listener(descriptor, Endpoint(host: address.text, port: port)))
        }
        guard !listeners.isEmpty else { throw failure }
        return listeners
    }

    enum Acceptance {
        case connection(CInt)
        case nothing
        /// The system has no more descriptors or memory. The caller should try again later.
        case exhausted(SystemFailure)
    }

    /// Whether this process has more free descriptors than `kept`.
    private static func hasDescriptors(_ listener: CInt, keeping kept: Int) -> Bool {
        guard let limit = System.limit(of: .descriptors) else { return true }
        let lowest = fcntl(listener, F_DUPFD_CLOEXEC, 0)
        guard lowest >= 0 else { return false }
        close(lowest)
        return Int(lowest) < limit - kept
    }

    /// Accepts the next waiting connection, as a non-blocking descriptor. Leaves `kept` descriptors to others: the
    /// files of this process, and Dispatch, which ends the process when it can't read a file in /proc.
    static func accept(from listener: CInt, keeping kept: Int) -> Acceptance {
        guard hasDescriptors(listener, keeping: kept) else {
            return .exhausted(SystemFailure("accept", number: EMFILE))
        }
        var storage = sockaddr_storage()
        var length = socklen_t(MemoryLayout<sockaddr_storage>.size)
        let descriptor = withUnsafeMutableBytes(of: &storage) { bytes in
            bytes.withMemoryRebound(to: sockaddr.self) { Foundation.accept(listener, $0.baseAddress, &length) }
        }
        guard descriptor >= 0 else {
            switch errno {
            case EMFILE, ENFILE, ENOBUFS, ENOMEM: return .exhausted(SystemFailure("accept"))
            default: return .nothing
            }
        }
        guard prepare(descriptor, isLocal: CInt(storage.ss_family) == AF_UNIX) else {
            close(descriptor)
            return .nothing
        }
        return .connection(descriptor)
    }

    // MARK: Connecting

    /// Connects to an address of the host, or to a local socket. Waits up to `milliseconds` in all: each address gets
    /// an equal part of the time that those before it have left. The returned descriptor is non-blocking.
    ///
    /// Throws `connectionRefused` when no address answers.
    package static func connect(to endpoint: Endpoint, milliseconds: CInt) throws(ServiceError) -> CInt {
        func refused(_ failure: SystemFailure) -> ServiceError {
            ServiceError(
                .connectionRefused, detail: UInt32(bitPattern: failure.number),
                "can't connect to \(endpoint): \(failure)")
        }
        var failure = SystemFailure("connect", number: EADDRNOTAVAIL)
        let addresses: [Address]
        do throws(SystemFailure) {
            if let path = endpoint.path { return try connect(toPath: path, milliseconds: milliseconds) }
            addresses = try Socket.addresses(of: endpoint, passive: false)
        } catch {
            throw refused(error)
        }
        let begin = MonotonicClock.system.milliseconds
        for (number, address) in addresses.enumerated() {
            let elapsed = CInt(clamping: MonotonicClock.system.milliseconds - begin)
            let part = max(1, (milliseconds - min(elapsed, milliseconds)) / CInt(addresses.count - number))
            let descriptor = socket(address.family, System.streamSocket, 0)
            guard descriptor >= 0, prepare(descriptor, isLocal: false) else {
                failure = SystemFailure("socket")
                if descriptor >= 0 { close(descriptor) }
                continue
            }
            var outcome = address.with(port: endpoint.port) { Foundation.connect(descriptor, $0, $1) } == 0 ? 0 : errno
            if outcome == EINPROGRESS {
                var waiting = pollfd(fd: descriptor, events: Int16(POLLOUT), revents: 0)
                outcome = poll(&waiting, 1, part) == 1 ? pendingError(of: descriptor) : ETIMEDOUT
            }
            if outcome == 0 { return descriptor }
            failure = SystemFailure("connect", number: outcome)
            close(descriptor)
        }
        throw refused(failure)
    }

    // MARK: Bytes

    package static func receive(_ descriptor: CInt, into buffer: UnsafeMutableRawBufferPointer) -> Transfer {
        while true {
            let count = recv(descriptor, buffer.baseAddress, buffer.count, 0)
            if count > 0 { return .bytes(count) }
            if count == 0 { return .ended }
            if errno == EAGAIN || errno == EWOULDBLOCK { return .wouldBlock(.reading) }
            if errno != EINTR { return .ended }
        }
    }

    package static func send(_ descriptor: CInt, _ bytes: UnsafeRawBufferPointer) -> Transfer {
        while true {
            let count = Foundation.send(descriptor, bytes.baseAddress, bytes.count, System.sendFlags)
            if count >= 0 { return .bytes(count) }
            if errno == EAGAIN || errno == EWOULDBLOCK { return .wouldBlock(.writing) }
            if errno != EINTR { return .ended }
        }
    }

    // MARK: Details

    struct Address {
        let family: CInt
        let storage: [UInt8]
        /// The host as a numeric address.
        let text: String

        /// Calls `body` with the address, with its port replaced by `port`.
        func with<R>(port: UInt16, _ body: (UnsafePointer<sockaddr>, socklen_t) -> R) -> R {
            var bytes = storage
            // Both sockaddr_in and sockaddr_in6 have the port, big-endian, at byte 2.
            bytes[2] = UInt8(port >> 8)
            bytes[3] = UInt8(port & 0xff)
            return bytes.withUnsafeBytes { raw in
                raw.withMemoryRebound(to: sockaddr.self) { typed in
                    guard let address = typed.baseAddress else { preconditionFailure("an address has no bytes") }
                    return body(address, socklen_t(storage.count))
                }
            }
        }
    }

    /// Throws unless the endpoint's host has an address to listen on.
    package static func resolve(_ endpoint: Endpoint) throws(SystemFailure) {
        _ = try addresses(of: endpoint, passive: true)
    }

    static func addresses(of endpoint: Endpoint, passive: Bool) throws(SystemFailure) -> [Address] {
        var hints = addrinfo()
        hints.ai_socktype = System.streamSocket
        hints.ai_flags = passive ? AI_PASSIVE : 0
        var list: UnsafeMutablePointer<addrinfo>?
        let code = getaddrinfo(endpoint.host, nil, &hints, &list)
        guard code == 0 else {
            throw SystemFailure(
                "looking up \(endpoint.host)", number: EINVAL, reason: String(cString: gai_strerror(code)))
        }
        defer { freeaddrinfo(list) }
        var addresses: [Address] = []
        var entry = list
        while let current = entry?.pointee {
            if let address = current.ai_addr, current.ai_family == AF_INET || current.ai_family == AF_INET6 {
                var text = [CChar](repeating: 0, count: Int(NI_MAXHOST))
                getnameinfo(address, current.ai_addrlen, &text, socklen_t(text.count), nil, 0, NI_NUMERICHOST)
                let length = text.firstIndex(of: 0) ?? text.count
                let storage = Array(UnsafeRawBufferPointer(start: address, count: Int(current.ai_addrlen)))
                // A name may resolve to the same address twice.
                if !addresses.contains(where: { $0.storage == storage }) {
                    addresses.append(
                        Address(
                            family: current.ai_family, storage: storage,
                            text: String(decoding: text[..<length].map { UInt8(bitPattern: $0) }, as: UTF8.self)))
                }
            }
            entry = current.ai_next
        }
        return addresses
    }

    static func prepare(_ descriptor: CInt, isLocal: Bool) -> Bool {
        System.silenceBrokenPipe(descriptor)
        return stopBlocking(descriptor) && (isLocal || setOption(descriptor, CInt(IPPROTO_TCP), TCP_NODELAY, 1))
    }

    static func stopBlocking(_ descriptor: CInt) -> Bool {
        fcntl(descriptor, F_SETFD, FD_CLOEXEC) != -1
            && fcntl(descriptor, F_SETFL, fcntl(descriptor, F_GETFL) | O_NONBLOCK) != -1
    }

    private static func setOption(_ descriptor: CInt, _ level: CInt, _ name: CInt, _ value: CInt) -> Bool {
        var value = value
        return setsockopt(descriptor, level, name, &value, socklen_t(MemoryLayout<CInt>.size)) == 0
    }

    private static func pendingError(of descriptor: CInt) -> CInt {
        var value: CInt = 0
        var length = socklen_t(MemoryLayout<CInt>.size)
        return getsockopt(descriptor, SOL_SOCKET, SO_ERROR, &value, &length) == 0 ? value : errno
    }

    private static func localPort(of descriptor: CInt) -> UInt16 {
        var storage = sockaddr_storage()
        var length = socklen_t(MemoryLayout<sockaddr_storage>.size)
        return withUnsafeMutableBytes(of: &storage) { bytes in
            let found = bytes.withMemoryRebound(to: sockaddr.self) { getsockname(descriptor, $0.baseAddress, &length) }
            return found == 0 ? UInt16(bytes[2]) << 8 | UInt16(bytes[3]) : 0
        }
    }
}
