package import Core
import Synchronization

/// Bounds the memory of received frames, requests in work and unread answers together, and shares it out.
///
/// Memory is reserved before it is used, for a connection and its peer. A peer may hold at most as much as is free
/// beside it (`Shares`), and a connection a quarter of what its peer may hold, but always one request if nobody else
/// holds anything. A reserve is shared out in the same way; only urgent requests may use it, when the rest has no room
/// for them.
///
/// Reserving takes a short lock and allocates nothing.
package final class MemoryBudget: Sendable {
    fileprivate struct State {
        var common: Shares
        var urgent: Shares
        var peers: [Holder: PeerMemory] = [:]
    }

    /// What a peer holds.
    ///
    /// Sendable without the compiler's proof: it is used under the budget's lock only.
    fileprivate final class PeerMemory: @unchecked Sendable {
        let peer: Holder
        var held = MemoryCharge()
        var accounts = 0

        init(_ peer: Holder) {
            self.peer = peer
        }
    }

    /// Bytes of the whole budget.
    package let bytesMax: Int
    /// Whether connections wait for memory: those of a client, whose answers can't be refused. Otherwise a request
    /// without memory is refused. Then there are shares and a reserve, too.
    let isWaitedFor: Bool
    fileprivate let state: Lock<State>

    private init(bytesMax: Int, urgent: Int, isWaitedFor: Bool) {
        self.bytesMax = bytesMax
        self.isWaitedFor = isWaitedFor
        state = Lock(State(common: Shares(capacity: bytesMax - urgent), urgent: Shares(capacity: urgent)))
    }

    /// A budget with shares and a reserve. `bytesMax`: at least `Limits.requestMemoryBytesMin`.
    package convenience init(bytesMax: Int) {
        precondition(bytesMax >= Limits.requestMemoryBytesMin, "the budget is too small for one request")
        self.init(
            bytesMax: bytesMax, urgent: max(Limits.urgentMemoryBytesMin, bytesMax / Limits.urgentMemoryPart),
            isWaitedFor: false)
    }

    /// A budget for which connections wait.
    package static func waitedFor(bytesMax: Int) -> MemoryBudget {
        MemoryBudget(bytesMax: bytesMax, urgent: 0, isWaitedFor: true)
    }

    /// Bytes that are reserved now.
    package var heldBytes: Int { state.withLock { $0.common.taken + $0.urgent.taken } }

    /// Whether there is memory left, for those who wait for it.
    var hasRoom: Bool { state.withLock { $0.common.taken < $0.common.capacity } }

    /// An account for a new connection of this peer.
    package func account(for peer: Holder) -> MemoryAccount { MemoryAccount(self, peer) }

    /// What the peer holds, with one account more. Called under the lock.
    fileprivate func join(_ peer: Holder, _ state: inout State) -> PeerMemory {
        let memory = state.peers[peer] ?? PeerMemory(peer)
        memory.accounts += 1
        state.peers[peer] = memory
        return memory
    }

    /// Takes an account off what the peer holds. Called under the lock.
    fileprivate func leave(_ memory: PeerMemory, _ state: inout State) {
        memory.accounts -= 1
        guard memory.accounts == 0 else { return }
        precondition(memory.held == MemoryCharge(), "a peer without a connection holds memory")
        state.peers[memory.peer] = nil
    }
}

/// What one connection holds of a `MemoryBudget`.
///
/// Sendable without the compiler's proof: the state is used under the budget's lock only.
package final class MemoryAccount: @unchecked Sendable {
    private let budget: MemoryBudget
    private var memory: MemoryBudget.PeerMemory
    private var held = MemoryCharge()
    private let strained = Atomic<Bool>(false)

    fileprivate init(_ budget: MemoryBudget, _ peer: Holder) {
        self.budget = budget
        memory = budget.state.withLock { budget.join(peer, &$0) }
    }

    deinit {
        precondition(held == MemoryCharge(), "a connection ends with memory that it did not give back")
        budget.state.withLock { budget.leave(memory, &$0) }
    }

    /// Whether the connection holds more than half of what it may hold, or its peer nearly all.
    package var isStrained: Bool { strained.load(ordering: .relaxed) }

    /// Bytes that the connection holds.
    package var heldBytes: Int { budget.state.withLock { _ in held.bytes } }

    /// Bytes that all connections of the peer hold.
    package var peerBytes: Int { budget.state.withLock { _ in memory.held.bytes } }

    /// Reserves `bytes`. An urgent request may use the reserve when the rest has no room. Returns `nil`, and reserves
    /// nothing, when that is more than the share of the connection or of its peer, or when the peer would hold more
    /// than `limit` bytes.
    package func reserve(_ bytes: Int, isUrgent: Bool, within limit: Int = .max) -> MemoryCharge? {
        precondition(bytes >= 0)
        return budget.state.withLock { state in
            guard memory.held.bytes + bytes <= limit else { return nil }
            var charge: MemoryCharge?
            if fits(bytes, state.common, memory.held.common, held.common, Limits.memoryPerRequestMax) {
                charge = MemoryCharge(common: bytes)
            } else if isUrgent,
                fits(bytes, state.urgent, memory.held.urgent, held.urgent, Limits.urgentMemoryPerRequestMax)
            {
                charge = MemoryCharge(urgent: bytes)
            }
            if let charge { add(charge, &state) }
            judge(state, isRefused: charge == nil)
            return charge
        }
    }

    /// Reserves `bytes` even beyond the shares: for what can't be refused any more, and whose size is bounded.
    package func take(_ bytes: Int) -> MemoryCharge {
        budget.state.withLock { state in
            add(MemoryCharge(common: bytes), &state)
            judge(state, isRefused: false)
            return MemoryCharge(common: bytes)
        }
    }

    /// Gives back what was reserved.
    package func giveBack(_ charge: MemoryCharge) {
        guard charge.bytes > 0 else { return }
        budget.state.withLock { state in
            held -= charge
            memory.held -= charge
            state.common.giveBack(charge.common)
            state.urgent.giveBack(charge.urgent)
            judge(state, isRefused: false)
        }
    }

    /// Counts the connection, and what it holds, as another peer's from now on.
    package func move(to peer: Holder) {
        budget.state.withLock { state in
            guard peer != memory.peer else { return }
            let next = budget.join(peer, &state)
            memory.held -= held
            next.held += held
            budget.leave(memory, &state)
            memory = next
        }
    }

    private func add(_ charge: MemoryCharge, _ state: inout MemoryBudget.State) {
        held += charge
        memory.held += charge
        state.common.take(charge.common)
        state.urgent.take(charge.urgent)
    }

    /// Whether `bytes` more fit into a part of the budget of which the peer and the connection hold so much.
    private func fits(_ bytes: Int, _ part: Shares, _ peer: Int, _ connection: Int, _ least: Int) -> Bool {
        guard !budget.isWaitedFor else { return part.taken + bytes <= part.capacity }
        let most = most(of: part, peer, least)
        return peer + bytes <= most && connection + bytes <= max(most / Limits.memoryPartPerConnection, least)
    }

    /// The most that the peer may hold of a part. A peer alone may hold the longest request, which may be more than
    /// half of a small budget.
    private func most(of part: Shares, _ peer: Int, _ least: Int) -> Int {
        let others = part.taken - peer
        let share = part.most(besides: others)
        return others == 0 ? max(share, min(least, part.capacity)) : share
    }

    private func judge(_ state: borrowing MemoryBudget.State, isRefused: Bool) {
        let most = most(of: state.common, memory.held.common, Limits.memoryPerRequestMax)
        let connection = max(most / Limits.memoryPartPerConnection, Limits.memoryPerRequestMax)
        let isStrained =
            isRefused || 2 * held.common > connection || 4 * memory.held.common > 3 * most
        if isStrained != strained.load(ordering: .relaxed) { strained.store(isStrained, ordering: .relaxed) }
    }
}
