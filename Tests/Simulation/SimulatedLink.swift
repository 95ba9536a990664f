import Core
import Platform
import Transport

/// Bytes that are on their way.
struct ByteQueue {
    private var bytes: [UInt8] = []
    private var start = 0

    var count: Int { bytes.count - start }
    var isEmpty: Bool { count == 0 }

    mutating func append(_ more: some Sequence<UInt8>) {
        if start > 4096, start > bytes.count / 2 {
            bytes.removeFirst(start)
            start = 0
        }
        bytes.append(contentsOf: more)
    }

    mutating func take(_ count: Int) -> ArraySlice<UInt8> {
        defer { start += count }
        return bytes[start..<start + count]
    }

    mutating func removeAll() {
        bytes = []
        start = 0
    }
}

/// A simulated connection: the service's end is a `ByteStream`, the other end belongs to a client. Bytes arrive late
/// and in pieces, and the connection may break.
///
/// Sendable without the compiler's proof: one thread runs the whole simulation.
final class SimulatedLink: ByteStream, @unchecked Sendable {
    let number: Int
    let descriptor: CInt
    let peer: Peer?
    private unowned let world: SimulatedWorld
    private var dice: Dice

    // Towards the service.
    /// What the client has sent and the network has not delivered.
    private(set) var outgoing = ByteQueue()
    private var arrived = ByteQueue()
    private var hasClientEnded = false
    private var hasEndArrived = false
    private var outgoingAt: UInt64 = 0

    // Towards the client.
    private(set) var incoming = ByteQueue()
    private var incomingAt: UInt64 = 0
    /// The most bytes of answers that the network takes.
    let window: Int
    /// Whether the client takes no answers at present.
    var isUnread = false

    private var isReset = false
    private(set) var hasServiceEnded = false
    private(set) var isServiceClosed = false

    /// The first descriptor of a simulated connection; the system has none of these.
    static let firstDescriptor: CInt = 1 << 24

    init(_ world: SimulatedWorld, number: Int, peer: Peer?, window: Int) {
        self.world = world
        self.number = number
        self.peer = peer
        self.window = window
        descriptor = SimulatedLink.firstDescriptor + CInt(number)
        dice = Dice(world.seed, part: 1000 + UInt64(number))
    }

    // MARK: The service's end

    var holdsBytes: Bool { false }
    var peerCertificate: PeerCertificate? { nil }
    var failure: String? { nil }

    func receive(into room: UnsafeMutableRawBufferPointer) -> Transfer {
        if isReset || world.isFrozen { return .ended }
        guard !arrived.isEmpty else { return hasEndArrived ? .ended : .wouldBlock(.reading) }
        var count = min(room.count, arrived.count)
        if dice.isOne(in: 8) { count = 1 + dice.below(count) }
        room.copyBytes(from: arrived.take(count))
        return .bytes(count)
    }

    func send(_ bytes: UnsafeRawBufferPointer) -> Transfer {
        // What a service sends after its end reaches nobody.
        if isReset || world.isFrozen { return .ended }
        let room = window - incoming.count
        guard room > 0 else { return .wouldBlock(.writing) }
        var count = min(room, bytes.count)
        if dice.isOne(in: 8) { count = 1 + dice.below(count) }
        incoming.append(UnsafeRawBufferPointer(rebasing: bytes[..<count]))
        return .bytes(count)
    }

    func endSending() { hasServiceEnded = true }

    func close() {
        isServiceClosed = true
        hasServiceEnded = true
    }

    /// What the service's end is ready for.
    var readiness: Interest {
        if world.isFrozen { return [.reading, .writing, .ended] }
        var ready: Interest = []
        if !arrived.isEmpty || hasEndArrived || isReset { ready.insert(.reading) }
        if incoming.count < window || isReset { ready.insert(.writing) }
        if isReset || (hasEndArrived && hasServiceEnded) { ready.insert(.ended) }
        return ready
    }

    // MARK: The client's end

    func sendToService(_ bytes: [UInt8]) {
        if !isReset, !hasClientEnded { outgoing.append(bytes) }
    }

    /// The client has closed its end: what it sent before arrives all the same.
    func endFromClient() { hasClientEnded = true }

    /// The service's process has ended. What it had sent still arrives.
    func endFromService() {
        hasServiceEnded = true
        isServiceClosed = true
        outgoing.removeAll()
    }

    /// The connection breaks. What is on its way is lost.
    func reset() {
        isReset = true
        outgoing.removeAll()
        incoming.removeAll()
    }

    var isBroken: Bool { isReset }

    // MARK: The network

    /// Whether something can be delivered to the service, or when.
    var nextToService: UInt64? {
        !isServiceClosed && !isReset && (!outgoing.isEmpty || hasClientEnded && !hasEndArrived) ? outgoingAt : nil
    }

    /// Whether something can be delivered to the client, or when. An end is delivered behind all bytes.
    var nextToClient: UInt64? {
        guard !isUnread, !hasClientEnded, !isReset else { return nil }
        return !incoming.isEmpty || hasServiceEnded ? incomingAt : nil
    }

    func deliverToService() {
        if outgoing.isEmpty {
            hasEndArrived = true
        } else {
            arrived.append(outgoing.take(piece(of: outgoing.count)))
        }
        outgoingAt = later()
    }

    /// Returns what arrives at the client; `nil`: the end.
    func deliverToClient() -> ArraySlice<UInt8>? {
        guard !incoming.isEmpty else { return nil }
        defer { incomingAt = later() }
        return incoming.take(piece(of: incoming.count))
    }

    private func piece(of count: Int) -> Int { dice.isOne(in: 3) ? 1 + dice.below(min(count, 80)) : count }

    private func later() -> UInt64 { dice.isOne(in: 6) ? world.now + UInt64(dice.below(30)) : world.now }
}
