/// Who shares the service's memory and places with others: the owner of an address, or somebody who is known better.
/// Connections with equal peers share what one peer may have.
package struct Holder: Hashable, Sendable {
    private enum Kind: UInt8 {
        case service
        case address
        case network
        case user
        case principal
    }

    private let kind: Kind
    private let value: UInt128

    /// The service's own work, and connections whose other end is unknown.
    package static let service = Holder(kind: .service, value: 0)

    /// The owner of an IPv4 address, which is given as a number: 127.0.0.1 is 0x7f000001.
    package static func address(_ address: UInt32) -> Holder {
        Holder(kind: .address, value: UInt128(address))
    }

    /// The owner of an IPv6 address, which is given as a number. All addresses with the same first 64 bits have one
    /// owner (RFC 6177), except the loopback address. An IPv4-mapped address (RFC 4291, section 2.5.5.2) is the IPv4
    /// address.
    package static func address(_ address: UInt128) -> Holder {
        if address >> 32 == 0xffff { return .address(UInt32(truncatingIfNeeded: address)) }
        return Holder(kind: .network, value: address == 1 ? 1 : (address >> 64) << 64)
    }

    /// A user of this machine.
    package static func user(_ identifier: UInt32) -> Holder {
        Holder(kind: .user, value: UInt128(identifier))
    }

    /// A principal, by the 16 bytes that only this principal has.
    package static func principal(_ value: UInt128) -> Holder {
        Holder(kind: .principal, value: value)
    }

    /// Whether it is a principal, not just whoever has an address.
    package var isPrincipal: Bool { kind == .principal }

    /// Whether the peer is on this machine, as far as its address tells.
    package var isLocal: Bool {
        switch kind {
        case .service, .user: true
        case .address: value >> 24 == 127
        case .network: value == 1
        case .principal: false
        }
    }
}
