import Core
import Foundation
import Transport

/// Bytes that members of etcd have received and sent, as their own metrics tell.
struct EtcdTraffic {
    /// From clients, which are the services.
    var received = 0.0
    /// To clients.
    var sent = 0.0
    /// Between members.
    var betweenMembers = 0.0

    init() {}

    /// Asks a member.
    ///
    /// Throws when it does not tell.
    init(of member: Endpoint) throws {
        let descriptor = try Socket.connect(to: member, milliseconds: 1000)
        let socket = FileHandle(fileDescriptor: descriptor, closeOnDealloc: true)
        // From here on reading waits.
        guard fcntl(descriptor, F_SETFL, 0) == 0 else { throw EtcdTraffic.silence }
        try socket.write(contentsOf: Data("GET /metrics HTTP/1.0\r\n\r\n".utf8))
        guard let page = try socket.readToEnd() else { throw EtcdTraffic.silence }
        let lines = String(decoding: page, as: UTF8.self).split(whereSeparator: \.isNewline)
        func total(_ name: String) -> Double {
            let figures = lines.filter { $0.hasPrefix(name + " ") || $0.hasPrefix(name + "{") }
                .compactMap { $0.split(separator: " ").last.flatMap { Double($0) } }
            return figures.reduce(0, +)
        }
        received = total("etcd_network_client_grpc_received_bytes_total")
        sent = total("etcd_network_client_grpc_sent_bytes_total")
        betweenMembers = total("etcd_network_peer_sent_bytes_total")
        guard received > 0 else { throw EtcdTraffic.silence }
    }

    private static let silence = ServiceError(.malformedAnswer, "etcd does not tell its traffic")

    static func + (a: EtcdTraffic, b: EtcdTraffic) -> EtcdTraffic {
        var sum = a
        sum.received += b.received
        sum.sent += b.sent
        sum.betweenMembers += b.betweenMembers
        return sum
    }

    static func - (a: EtcdTraffic, b: EtcdTraffic) -> EtcdTraffic {
        var difference = a
        difference.received -= b.received
        difference.sent -= b.sent
        difference.betweenMembers -= b.betweenMembers
        return difference
    }
}
