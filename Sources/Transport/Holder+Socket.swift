package import Core
import Foundation

extension Holder {
    /// Who is at the other end of a connected socket; `.service` when the system can't tell.
    package init(of descriptor: CInt) {
        var storage = sockaddr_storage()
        var length = socklen_t(MemoryLayout<sockaddr_storage>.size)
        self = withUnsafeMutableBytes(of: &storage) { bytes -> Holder in
            let isKnown = bytes.withMemoryRebound(to: sockaddr.self) { address in
                address.baseAddress.map { getpeername(descriptor, $0, &length) == 0 } ?? false
            }
            guard isKnown else { return .service }
            // Both families have the address, big-endian, behind the port; IPv6 has the flow information before it.
            switch CInt(bytes.loadUnaligned(as: sockaddr_storage.self).ss_family) {
            case AF_INET: return .address(UInt32(bigEndian: bytes.loadUnaligned(fromByteOffset: 4, as: UInt32.self)))
            case AF_INET6: return .address(UInt128(bigEndian: bytes.loadUnaligned(fromByteOffset: 8, as: UInt128.self)))
            case AF_UNIX:
                guard case .local(let credentials)? = Socket.peer(of: descriptor) else { return .service }
                return .user(credentials.user)
            default: return .service
            }
        }
    }
}
