/// A signed identity proof as a value. Apple, "Adding custom collaboration to
/// your app", section "Verify participant access".
public struct SignedIdentityProof: Hashable, Sendable {
    /// The device's public key, exactly as the device sent it.
    public var publicKey: [UInt8]
    /// The key's leaf position in the person's tree.
    public var publicKeyIndex: UInt64
    /// The sibling digests on the path to the root, leaf level first.
    public var inclusionHashes: [Digest]
    /// The ECDSA signature over `data`.
    public var signature: [UInt8]
    public var signatureFormat: SignatureFormat
    /// What was signed: a challenge of the service or a nonce of the device.
    public var data: [UInt8]

    public init(
        publicKey: [UInt8], publicKeyIndex: UInt64, inclusionHashes: [Digest], signature: [UInt8],
        signatureFormat: SignatureFormat, data: [UInt8]
    ) {
        self.publicKey = publicKey
        self.publicKeyIndex = publicKeyIndex
        self.inclusionHashes = inclusionHashes
        self.signature = signature
        self.signatureFormat = signatureFormat
        self.data = data
    }
}
