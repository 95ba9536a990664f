import Core
import Foundation
import Hashing

/// What a request needs of its sender.
enum Role: String, CaseIterable {
    case verify
    case enrol
    case collaborate
    case observe
    case administer
}

/// A principal of the simulated service, with its key.
struct SimulatedPrincipal {
    enum Kind: Int {
        /// Has every role.
        case root
        /// Has the roles verify and, at times, observe.
        case reader
        /// Has every role but administer, and narrow limits.
        case limited
    }

    let kind: Kind
    let roles: Set<Role>
    let key: [UInt8]
    private let identifier: String
    private let salt: [UInt8]
    private let secret: [UInt8]

    init(_ kind: Kind, _ dice: inout Dice) {
        self.kind = kind
        switch kind {
        case .root: roles = Set(Role.allCases)
        case .reader: roles = [.verify, .observe]
        case .limited: roles = Set(Role.allCases).subtracting([.administer])
        }
        identifier = hexadecimalText(dice.bytes(8))
        salt = dice.bytes(32)
        secret = dice.bytes(32)
        key = Array("rgk_\(identifier)_\(base64URLText(secret))".utf8)
    }

    /// The request that makes the principal.
    var creation: String {
        let hash = SHA256.hash(salt + secret).withUnsafeBytes { hexadecimalText(Array($0)) }
        let limits =
            kind == .limited
            ? #","limits":{"proofsPerSecond":40,"mutationsPerSecond":10,"requestsInFlight":12,"followers":1}"# : ""
        return """
            {"name":"\(kind)","roles":\(SimulatedPrincipal.json(roles)),"key":{"hash":{"identifier":"\(identifier)",\
            "salt":"\(hexadecimalText(salt))","hash":"\(hash)"}}\(limits)}
            """
    }

    static func json(_ roles: Set<Role>) -> String {
        let list = roles.map(\.rawValue).sorted().map { #"{"role":"\#($0)","prefixes":["*"]}"# }
        return "[\(list.joined(separator: ","))]"
    }
}

func hexadecimalText(_ bytes: [UInt8]) -> String {
    bytes.map { String($0 >> 4, radix: 16) + String($0 & 15, radix: 16) }.joined()
}

func base64URLText(_ bytes: [UInt8]) -> String {
    Data(bytes).base64EncodedString().replacing("+", with: "-").replacing("/", with: "_").replacing("=", with: "")
}
