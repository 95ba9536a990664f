/// How a signature is encoded. A request names the format, because 64 bytes can be either.
public enum SignatureFormat: UInt8, CaseIterable, Sendable {
    /// Strict DER `ECDSA-Sig-Value` (SEC 1, C.5).
    case der = 1
    /// r then s, 32 big-endian bytes each.
    case raw = 2

    /// The stable name in text.
    public var name: String {
        switch self {
        case .der: "der"
        case .raw: "raw"
        }
    }

    public init?(name: some StringProtocol) {
        guard let format = SignatureFormat.allCases.first(where: { $0.name == name }) else { return nil }
        self = format
    }
}

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

/// One proof inside the service, borrowed from the receive buffer. It is valid only while that buffer lives. Only one
/// thing was checked: that it lies inside the buffer.
///
/// An inclusion-only proof has no signature and no data.
package struct BorrowedProof: BitwiseCopyable {
    /// The identifier of the collaboration. Proofs of one request that name the same collaboration have the same
    /// address here, so that each collaboration is looked up only once.
    package var collaboration: UnsafeRawBufferPointer
    package var publicKey: UnsafeRawBufferPointer
    package var publicKeyIndex: UInt64
    /// `inclusionHashCount` digests of 32 bytes, leaf level first.
    package var inclusionHashes: UnsafeRawPointer
    package var inclusionHashCount: Int
    /// A `SignatureFormat`, unchecked.
    package var signatureFormat: UInt8
    package var signature: UnsafeRawBufferPointer
    package var data: UnsafeRawBufferPointer

    package init(
        collaboration: UnsafeRawBufferPointer, publicKey: UnsafeRawBufferPointer, publicKeyIndex: UInt64,
        inclusionHashes: UnsafeRawPointer, inclusionHashCount: Int, signatureFormat: UInt8 = 0,
        signature: UnsafeRawBufferPointer = UnsafeRawBufferPointer(start: nil, count: 0),
        data: UnsafeRawBufferPointer = UnsafeRawBufferPointer(start: nil, count: 0)
    ) {
        self.collaboration = collaboration
        self.publicKey = publicKey
        self.publicKeyIndex = publicKeyIndex
        self.inclusionHashes = inclusionHashes
        self.inclusionHashCount = inclusionHashCount
        self.signatureFormat = signatureFormat
        self.signature = signature
        self.data = data
    }
}
