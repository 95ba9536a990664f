import Core
import Foundation
import Synchronization
import TestSupport
import Transport

/// Connections of an attacker, which a thread serves until `stop`.
final class Attack: Sendable {
    /// What each of the connections does.
    struct Plan: Sendable {
        /// What it sends.
        var bytes: [UInt8] = []
        /// What a connection sends when it has sent everything; `nil`: nothing more. Gets the connection's number.
        var more: (@Sendable (Int) -> [UInt8])?
        /// Bytes that it reads in ten milliseconds, and sends at most.
        var readBytes = 0
        var sendBytes = Int.max
        /// Whether it is made again after the service has closed it.
        var returns = false
        /// Room for answers in the system.
        var receiveBytes: CInt? = 8192
        /// Where connections come from, in turn.
        var addresses = [AttackPeer.address]

        /// The plan whose connections send their bytes again and again.
        func repeated() -> Plan {
            var plan = self
            let bytes = bytes
            plan.more = { _ in bytes }
            return plan
        }
    }

    private struct Member {
        let number: Int
        var peer: AttackPeer?
        var bytes: [UInt8]
        var sent = 0
    }

    /// Each connection is served once in this time, at most.
    private static let roundMicroseconds = 10_000
    /// A pause comes after so many connections, or after so many bytes.
    private static let burstMembers = 32
    private static let burstBytes = 256 << 10

    private let isStopped = Atomic<Bool>(false)
    private let ended = DispatchSemaphore(value: 0)
    private let processorTime = Shared(0.0)
    /// Bytes that the system has taken.
    let sentBytes = Atomic<Int>(0)
    /// Connections that the service has closed.
    let closed = Atomic<Int>(0)

    /// Makes the connections and begins.
    init(_ plan: Plan, connections: Int, on endpoint: Endpoint) throws {
        let peers = try (0..<connections).map { try Attack.connect($0, plan, endpoint) }
        Thread { [self] in
            var members = peers.enumerated().map { Member(number: $0, peer: $1, bytes: plan.bytes) }
            while !isStopped.load(ordering: .relaxed) {
                // In short bursts, because this thread holds a processor that the service needs.
                var start = 0
                while start < members.count {
                    let sent = sentBytes.load(ordering: .relaxed)
                    var end = start
                    repeat {
                        serve(&members[end], plan, endpoint)
                        end += 1
                    } while end < min(start + Attack.burstMembers, members.count)
                        && sentBytes.load(ordering: .relaxed) - sent < Attack.burstBytes
                    processorTime.with { $0 = processorSecondsOfThread() }
                    usleep(UInt32(Attack.roundMicroseconds * (end - start) / members.count))
                    start = end
                }
            }
            members = []
            ended.signal()
        }.start()
    }

    private static func connect(_ number: Int, _ plan: Plan, _ endpoint: Endpoint) throws(ServiceError) -> AttackPeer {
        let address = plan.addresses[number % plan.addresses.count]
        return try AttackPeer(to: endpoint, from: address, receiveBytes: plan.receiveBytes)
    }

    private func serve(_ member: inout Member, _ plan: Plan, _ endpoint: Endpoint) {
        guard let peer = member.peer else {
            if plan.returns {
                member.peer = try? Attack.connect(member.number, plan, endpoint)
                member.sent = 0
            }
            return
        }
        var isOpen = true
        if member.sent == member.bytes.count, let more = plan.more {
            (member.bytes, member.sent) = (more(member.number), 0)
        }
        if member.sent < member.bytes.count {
            if let count = peer.send(member.bytes[member.sent...].prefix(plan.sendBytes)) {
                member.sent += count
                sentBytes.add(count, ordering: .relaxed)
            } else {
                isOpen = false
            }
        }
        if plan.readBytes > 0, peer.read(plan.readBytes) == nil { isOpen = false }
        if plan.returns, plan.readBytes == 0, peer.read(1) == nil { isOpen = false }
        guard !isOpen else { return }
        closed.add(1, ordering: .relaxed)
        member.peer = nil
    }

    /// Seconds for which the attacker's thread has had a processor.
    var processorSeconds: Double { processorTime.value }

    /// Closes the connections.
    func stop() {
        isStopped.store(true, ordering: .relaxed)
        ended.wait()
    }
}
