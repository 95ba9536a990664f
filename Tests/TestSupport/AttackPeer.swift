package import Core
import Foundation
import Platform
package import Transport

/// A connection of an attacker, from another address of this machine than those of honest clients. It never waits.
///
/// Sendable: one thread uses it at a time.
package final class AttackPeer: Sendable {
    /// The address of the attacker.
    package static let address = "127.0.0.2"

    /// Addresses of several attackers, that one first.
    package static func addresses(_ count: Int) -> [String] {
        precondition(count <= 200 * 200, "this network has too few addresses")
        return (0..<count).map { "127.0.\($0 / 200).\(2 + $0 % 200)" }
    }

    package let descriptor: CInt

    /// `address`: where it connects from. `receiveBytes`: room for answers in the system.
    ///
    /// Throws `connectionRefused` when it can't connect from that address.
    package init(
        to endpoint: Endpoint, from address: String = AttackPeer.address, receiveBytes: CInt? = nil
    ) throws(ServiceError) {
        descriptor = socket(AF_INET, System.streamSocket, 0)
        if var bytes = receiveBytes {
            setsockopt(descriptor, SOL_SOCKET, SO_RCVBUF, &bytes, socklen_t(MemoryLayout<CInt>.size))
        }
        var own = sockaddr_in()
        own.sin_family = sa_family_t(AF_INET)
        own.sin_addr.s_addr = inet_addr(address)
        var service = sockaddr_in()
        service.sin_family = sa_family_t(AF_INET)
        service.sin_addr.s_addr = inet_addr(endpoint.host)
        service.sin_port = endpoint.port.bigEndian
        guard descriptor >= 0, bind(descriptor, &own) == 0, connect(descriptor, &service) == 0,
            fcntl(descriptor, F_SETFL, O_NONBLOCK) != -1
        else {
            let number = errno
            if descriptor >= 0 { close(descriptor) }
            throw ServiceError(
                .connectionRefused, "can't connect from \(address): \(String(cString: strerror(number)))")
        }
    }

    deinit {
        close(descriptor)
    }

    /// Sends as many of the bytes as the system takes, and returns their number; `nil` when the connection has ended.
    @discardableResult
    package func send(_ bytes: ArraySlice<UInt8>) -> Int? {
        let count = bytes.withUnsafeBytes { Foundation.send(descriptor, $0.baseAddress, $0.count, System.sendFlags) }
        return count >= 0 ? count : errno == EAGAIN || errno == EWOULDBLOCK ? 0 : nil
    }

    /// Reads up to `count` of the bytes that have arrived; `nil` when the connection has ended.
    @discardableResult
    package func read(_ count: Int) -> Int? {
        withUnsafeTemporaryAllocation(byteCount: count, alignment: 16) { room in
            let count = recv(descriptor, room.baseAddress, room.count, 0)
            return count > 0 ? count : count < 0 && (errno == EAGAIN || errno == EWOULDBLOCK) ? 0 : nil
        }
    }
}

private func bind(_ descriptor: CInt, _ address: inout sockaddr_in) -> CInt {
    withUnsafeBytes(of: &address) { bytes in
        bytes.withMemoryRebound(to: sockaddr.self) {
            Foundation.bind(descriptor, $0.baseAddress, socklen_t(bytes.count))
        }
    }
}

private func connect(_ descriptor: CInt, _ address: inout sockaddr_in) -> CInt {
    withUnsafeBytes(of: &address) { bytes in
        bytes.withMemoryRebound(to: sockaddr.self) { typed in
            typed.baseAddress.map { Foundation.connect(descriptor, $0, socklen_t(bytes.count)) } ?? -1
        }
    }
}
