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
