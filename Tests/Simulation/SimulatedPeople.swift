import Core
import Identity
import Signatures

/// The people of all runs: the same for every seed. A person is a number, and a set of people a mask.
struct SimulatedPeople {
    static let personCount = 12
    static let devicesPerPerson = 2

    let identities: [SimulatedIdentity]
    /// Each person's root hash, and the person of a root hash.
    let roots: [[UInt8]]
    let persons: [[UInt8]: Int]
    private let paths: [[(index: UInt64, hashes: [UInt8], count: Int)]]

    init() throws {
        let random = RandomSource.seeded(7)
        guard let name = CollaborationIdentifier("people") else { throw Violation("no identifier") }
        identities = try (0..<SimulatedPeople.personCount).map { _ in
            try Person(deviceCount: SimulatedPeople.devicesPerPerson, random: random)
                .identity(in: name, encoding: .compressed, random: random)
        }
        roots = identities.map { $0.rootHash.withUnsafeBytes { Array($0) } }
        persons = Dictionary(uniqueKeysWithValues: zip(roots, 0...))
        paths = try identities.map { identity in
            try (0..<SimulatedPeople.devicesPerPerson).map { device in
                guard let path = identity.tree.proof(at: device) else { throw Violation("a device has no path") }
                let hashes = path.siblings.flatMap { $0.withUnsafeBytes { Array($0) } }
                return (path.index, hashes, path.siblings.count)
            }
        }
    }

    /// Raw signatures only: they all have the same length, so that the network divides a run's bytes alike each time.
    func sign(_ data: [UInt8], person: Int, device: Int) throws -> [UInt8] {
        try identities[person].proof(ofDevice: device, signing: data, format: .raw).signature
    }

    /// Appends a proof. `signature`: `nil` for an inclusion-only one.
    func append(
        _ proof: ProofPlan, collaboration: UInt16, signature: [UInt8]?, data: [UInt8], to body: inout RequestBytes
    ) {
        var key = identities[proof.person].publicKeys[proof.device]
        let path = paths[proof.person][proof.device]
        var (index, hashes, count) = path
        switch proof.fault {
        case .badKey: key[0] = 9
        case .badIndex: index = 1 << 40
        case .otherRoot: hashes[0] ^= 1
        case .none, .badSignature, .badEncoding, .forgedChallenge: break
        }
        if proof.fault == .badKey { count = path.count }
        body.add(collaboration)
        body.add(UInt8(count))
        if let signature {
            body.add(UInt8(2))
            body.add(index)
            body.add(UInt8(key.count))
            body.add(UInt8(signature.count))
            body.add(UInt16(data.count))
            body.add(bytes: key + hashes + signature + data)
        } else {
            body.add(UInt8(key.count))
            body.add(index)
            body.add(bytes: key + hashes)
        }
    }
}

/// What is wrong with a proof.
enum ProofFault {
    case none
    case badKey
    case badIndex
    /// An inclusion hash is another one, so that the root hash is nobody's.
    case otherRoot
    case badEncoding
    case badSignature
    case forgedChallenge
}

struct ProofPlan {
    var collaboration: Int
    var person: Int
    var device: Int
    var fault = ProofFault.none
    /// The challenge that it signs, by its number in the model.
    var challenge: Int?
    /// The nonce that it signs.
    var nonce: [UInt8]?
}
