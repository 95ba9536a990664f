package import Core
import Foundation

/// A short-lived token that stands for a granted proof, so that the device need not prove itself for every step.
///
///     0  version (1: 1)   1  permission (1)   2  role (1)   3  zero (5)
///     8  expiry, milliseconds of the service's clock (8)   16  sequence of the change log (8)
///    24  collaboration (16)   40  device key (16)   56  root hash (32)   88  tag (24)
///
/// Collaboration and device key are the first 16 bytes of the SHA-256 of the identifier and of the key as it was
/// sent; the tag is HMAC-SHA256 of the 88 bytes before it, cut to 24, under a key that lives as long as the
/// service's process. So none survives a restart.
public struct AccessGrant: Hashable, Sendable, Codable {
    /// Bytes of a grant, exactly.
    public static let byteCount = 112
    package static let signedBytes = 88
    package static let tagBytes = 24
    package static let fingerprintBytes = 16

    public let bytes: [UInt8]

    /// `nil` unless there are as many bytes as a grant has. Whether it is worth something, only the service knows.
    public init?(bytes: [UInt8]) {
        guard bytes.count == AccessGrant.byteCount else { return nil }
        self.bytes = bytes
    }

    /// The grant in base64url without padding: 150 characters.
    public var text: String { Base64URL.text(bytes) }

    /// `nil` unless `text` is a grant in base64url.
    public init?(text: String) {
        guard let bytes = Base64URL.bytes(text) else { return nil }
        self.init(bytes: bytes)
    }

    /// Reads the text.
    public init(from decoder: any Decoder) throws {
        let container = try decoder.singleValueContainer()
        guard let grant = AccessGrant(text: try container.decode(String.self)) else {
            throw DecodingError.dataCorruptedError(in: container, debugDescription: "not a grant")
        }
        self = grant
    }

    /// Writes the text.
    public func encode(to encoder: any Encoder) throws {
        var container = encoder.singleValueContainer()
        try container.encode(text)
    }
}

/// What a grant says, before anybody has looked whether it is genuine.
package struct GrantClaim: Hashable, Sendable {
    package var permission: Permission
    package var role: ParticipantRole
    package var expiry: UInt64
    package var sequence: UInt64
    package var collaboration: [UInt8]
    package var deviceKey: [UInt8]
    package var rootHash: Digest

    package init(
        permission: Permission, role: ParticipantRole, expiry: UInt64, sequence: UInt64, collaboration: [UInt8],
        deviceKey: [UInt8], rootHash: Digest
    ) {
        self.permission = permission
        self.role = role
        self.expiry = expiry
        self.sequence = sequence
        self.collaboration = collaboration
        self.deviceKey = deviceKey
        self.rootHash = rootHash
    }

    /// Reads the signed part of a grant; `nil` when it is none of this version.
    package init?(_ bytes: UnsafeRawBufferPointer) {
        var reader = ByteReader(bytes)
        guard reader.byte() == 1, let permission = reader.byte().flatMap(Permission.init(code:)),
            let role = reader.byte().flatMap(ParticipantRole.init(code:)),
            reader.bytes(5)?.allSatisfy({ $0 == 0 }) == true,
            let expiry: UInt64 = reader.integer(), let sequence: UInt64 = reader.integer(),
            let collaboration = reader.bytes(AccessGrant.fingerprintBytes),
            let deviceKey = reader.bytes(AccessGrant.fingerprintBytes), let rootHash = reader.digest()
        else { return nil }
        self.init(
            permission: permission, role: role, expiry: expiry, sequence: sequence,
            collaboration: Array(collaboration), deviceKey: Array(deviceKey), rootHash: rootHash)
    }

    /// Appends the signed part of the grant.
    package func append(to bytes: inout [UInt8]) {
        bytes.append(contentsOf: [1, permission.code, role.code, 0, 0, 0, 0, 0])
        bytes.appendInteger(expiry)
        bytes.appendInteger(sequence)
        bytes.append(contentsOf: collaboration)
        bytes.append(contentsOf: deviceKey)
        bytes.appendDigests([rootHash])
    }
}

/// What the service says of a grant. Like verdicts: zero is none, values below 16 let pass.
public enum GrantStatus: UInt8, CaseIterable, Sendable, Hashable {
    /// It holds now.
    case valid = 1

    /// No grant of this service, or of an earlier life of it.
    case forged = 16
    case expired = 17
    /// For another collaboration than the one it was shown for.
    case otherCollaboration = 18
    /// Of another device than the one that shows it.
    case otherDevice = 19
    /// The participant was removed or has another permission since, or the collaboration is no longer shared.
    case revoked = 20

    /// The stable name: lower-case words joined by hyphens.
    public var name: String {
        switch self {
        case .valid: "valid"
        case .forged: "forged"
        case .expired: "expired"
        case .otherCollaboration: "other-collaboration"
        case .otherDevice: "other-device"
        case .revoked: "revoked"
        }
    }

    /// Whether the grant was turned away.
    public var isRefusal: Bool { rawValue >= 16 }
}

extension RandomSource {
    /// 16 random bytes, but for the first bit: in base64url they begin with a letter, which command lines take for
    /// nothing else.
    func nameBytes() -> [UInt8] {
        var bytes = bytes(16)
        bytes[0] &= 0x7f
        return bytes
    }
}

/// Base64 with the alphabet for links and file names, without padding (RFC 4648, section 5).
package enum Base64URL {
    package static func text(_ bytes: [UInt8]) -> String {
        let standard = Data(bytes).base64EncodedData().prefix { $0 != UInt8(ascii: "=") }
        return String(
            decoding: standard.map { byte in
                switch byte {
                case UInt8(ascii: "+"): UInt8(ascii: "-")
                case UInt8(ascii: "/"): UInt8(ascii: "_")
                default: byte
                }
            }, as: UTF8.self)
    }

    /// `nil` for anything but what `text` makes.
    package static func bytes(_ text: String) -> [UInt8]? {
        let standard = text.utf8.map { byte in
            switch byte {
            case UInt8(ascii: "-"): UInt8(ascii: "+")
            case UInt8(ascii: "_"): UInt8(ascii: "/")
            default: byte
            }
        }
        let padding = repeatElement(UInt8(ascii: "="), count: (4 - standard.count % 4) % 4)
        guard let bytes = Data(base64Encoded: Data(standard + padding)).map(Array.init), Base64URL.text(bytes) == text
        else { return nil }
        return bytes
    }
}
