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
        /// Whether it sends that again and again.
        var repeats = false
        /// Bytes that it reads in ten milliseconds.
        var readBytes = 0
        /// Whether it is made again after the service has closed it.
        var returns = false
        /// Room for answers in the system.
        var receiveBytes: CInt? = 8192
    }

    private struct Member {
        var peer: AttackPeer?
        var sent = 0
    }

    private let isStopped = Atomic<Bool>(false)
    private let ended = DispatchSemaphore(value: 0)
    /// Bytes that the system has taken.
    let sentBytes = Atomic<Int>(0)
    /// Connections that the service has closed.
    let closed = Atomic<Int>(0)

    /// Makes the connections and begins.
    init(_ plan: Plan, connections: Int, on endpoint: Endpoint) throws {
        let peers = try (0..<connections).map { _ in try AttackPeer(to: endpoint, receiveBytes: plan.receiveBytes) }
        Thread { [self] in
            var members = peers.map { Member(peer: $0) }
            while !isStopped.load(ordering: .relaxed) {
                for index in members.indices { serve(&members[index], plan, endpoint) }
                usleep(10_000)
            }
            members = []
            ended.signal()
        }.start()
    }

    private func serve(_ member: inout Member, _ plan: Plan, _ endpoint: Endpoint) {
        guard let peer = member.peer else {
            if plan.returns { member = Member(peer: try? AttackPeer(to: endpoint, receiveBytes: plan.receiveBytes)) }
            return
        }
        var isOpen = true
        if member.sent < plan.bytes.count {
            if let count = peer.send(plan.bytes[member.sent...]) {
                member.sent += count
                sentBytes.add(count, ordering: .relaxed)
                if plan.repeats, member.sent == plan.bytes.count { member.sent = 0 }
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

    /// Closes the connections.
    func stop() {
        isStopped.store(true, ordering: .relaxed)
        ended.wait()
    }
}
