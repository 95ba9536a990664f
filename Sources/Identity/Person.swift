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

    /// The person's identity in `collaboration`: a key for each device, in a tree padded with random keys.
    ///
    /// Throws `internalFault` when libcrypto can't do it or when there are more devices than a tree holds.
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

/// What a person is in one collaboration: key pairs and the tree over them.
package struct SimulatedIdentity: Sendable {
    package let keys: [PrivateKey]
    /// As sent, in the order of the devices.
    package let publicKeys: [[UInt8]]
    package let tree: MerkleTree

    /// The identity in the collaboration's set of known root hashes.
    package var rootHash: Digest { tree.root }

    /// The proof that the device at `index` gives when asked to sign `data`.
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
