package import Core
import Hashing
package import Merkle
package import Signatures

/// A simulated person with one or more devices.
package struct Person: Sendable {
    package let devices: [Device]

    /// `deviceCount`: at least one.
    package init(deviceCount: Int, random: RandomSource = .system) {
        devices = (0..<max(1, deviceCount)).map { _ in Device(random: random) }
    }

    /// Makes the person's identity in `collaboration`: a key for each device, in a tree padded with random keys.
    ///
    /// Throws `internalFault` when libcrypto can't do it, or when a tree can't hold so many devices.
    package func identity(
        in collaboration: CollaborationIdentifier, encoding: KeyEncoding = .uncompressed, paddedTo size: Int = 8,
        random: RandomSource = .system
    ) throws(ServiceError) -> SimulatedIdentity {
        var keys: [PrivateKey] = []
        for device in devices { keys.append(try device.key(in: collaboration)) }
        let publicKeys = keys.map { encoding.bytes(of: $0) }
        guard let tree = MerkleTree(keys: publicKeys, paddedTo: size, random: random) else {
            throw ServiceError(.internalFault, "a person can't have \(devices.count) devices")
        }
        return SimulatedIdentity(keys: keys, publicKeys: publicKeys, tree: tree)
    }
}

/// A person's identity in one collaboration: key pairs and the tree over them.
package struct SimulatedIdentity: Sendable {
    package let keys: [PrivateKey]
    /// The keys as the devices send them, in the order of the devices.
    package let publicKeys: [[UInt8]]
    package let tree: MerkleTree

    /// The root hash, which stands for this identity in the collaboration's set.
    package var rootHash: Digest { tree.root }

    /// Makes the proof of the device at `index`, which signs `data`.
    ///
    /// Throws `internalFault` when there is no such device or libcrypto can't sign.
    package func proof(
        ofDevice index: Int, signing data: [UInt8], format: SignatureFormat = .der
    ) throws(ServiceError) -> SignedIdentityProof {
        guard keys.indices.contains(index), let path = tree.proof(at: index) else {
            throw ServiceError(.internalFault, "there is no device \(index)")
        }
        let scalars = try keys[index].sign(SHA256.hash(data))
        return SignedIdentityProof(
            publicKey: publicKeys[index], publicKeyIndex: path.index, inclusionHashes: path.siblings,
            signature: format == .der ? SignatureEncoding.der(scalars) : SignatureEncoding.raw(scalars),
            signatureFormat: format, data: data)
    }
}
