package import Core

/// A verify, inclusion-only verify or open request as offsets into its body. Nothing is copied. Of a proof only the
/// lengths and the collaboration's position are checked: everything else gets a verdict later.
///
///     a `BatchHead`, with flag 1 when the answer shall carry root hashes, in an open request with flag 2 when it shall
///     carry the selected share options
///     each proof of a verify or an open:
///         collaboration's position (2)  siblings (1)  signature format (1)  key's index (8)
///         key length (1)  signature length (1)  data length (2)  key, siblings, signature, data
///     each inclusion-only proof:
///         collaboration's position (2)  siblings (1)  key length (1)  key's index (8)  key, siblings
package struct ProofBatch: Sendable {
    /// Whether proofs come with signatures.
    package let isSigned: Bool
    /// Whether the answer carries the computed root hashes.
    package let wantsRoots: Bool
    /// Whether the answer carries the collaborations' selected share options; only an open request asks for them.
    package let wantsOptions: Bool
    /// The sequence of a change that must have been applied to what the service reads; 0 demands nothing.
    package let atLeast: UInt64
    private let collaborations: [Range<Int>]
    private let offsets: [UInt32]

    private static let wantsRootsFlag: UInt8 = 1

    package var count: Int { offsets.count }

    /// The number of collaborations that the request names.
    package var collaborationCount: Int { collaborations.count }

    /// Finds the proofs in `body`. `isOpen`: whether they are those of an open request.
    ///
    /// Throws `malformedRequest` when lengths and counts don't add up, `limitExceeded`.
    package init(_ body: UnsafeRawBufferPointer, isSigned: Bool, isOpen: Bool = false) throws(ServiceError) {
        var reader = ByteReader(body)
        let head = try BatchHead(
            &reader, flags: ProofBatch.wantsRootsFlag | (isOpen ? OptionLists.flag : 0),
            itemsMax: Limits.proofsPerRequestMax, "proofs")
        self.isSigned = isSigned
        wantsRoots = head.flags & ProofBatch.wantsRootsFlag != 0
        wantsOptions = head.flags & OptionLists.flag != 0
        atLeast = head.atLeast

        // Both counts are within their limits, and the smallest proof has 12 bytes: no more is reserved
        // than the body can hold.
        var collaborations: [Range<Int>] = []
        collaborations.reserveCapacity(min(head.collaborationCount, body.count))
        for _ in 0..<head.collaborationCount {
            guard let name = reader.shortBytes() else { throw malformedRequest("the body ends inside an identifier") }
            collaborations.append(reader.offset - name.count..<reader.offset)
        }
        var offsets: [UInt32] = []
        offsets.reserveCapacity(min(head.itemCount, body.count / 12))
        for _ in 0..<head.itemCount {
            offsets.append(UInt32(reader.offset))
            guard ProofBatch.readProof(&reader, isSigned: isSigned, collaborations: collaborations, body) != nil else {
                throw malformedRequest("proof \(offsets.count - 1) runs over the end or names no collaboration")
            }
        }
        guard reader.isAtEnd else { throw malformedRequest("bytes follow the last proof") }
        self.collaborations = collaborations
        self.offsets = offsets
    }

    /// Initializes `proofs`, which is as long as `positions`, with the proofs at those. They borrow from `body`, which
    /// is the one that this batch was made from.
    package func read(
        _ positions: Range<Int>, in body: UnsafeRawBufferPointer,
        into proofs: UnsafeMutableBufferPointer<BorrowedProof>
    ) {
        guard !positions.isEmpty else { return }
        var reader = reader(at: positions.lowerBound, in: body)
        for place in 0..<positions.count { proofs.initializeElement(at: place, to: next(&reader, body)) }
    }

    /// The proof at `index`, borrowed from `body`, which is the one that this batch was made from.
    package func proof(at index: Int, in body: UnsafeRawBufferPointer) -> BorrowedProof {
        var reader = reader(at: index, in: body)
        return next(&reader, body)
    }

    /// The identifier of a collaboration that the request names, in `body`, which is the one that this batch was made
    /// from.
    package func collaboration(at index: Int, in body: UnsafeRawBufferPointer) -> UnsafeRawBufferPointer {
        UnsafeRawBufferPointer(rebasing: body[collaborations[index]])
    }

    /// The position of a proof's collaboration among those that the request names. `body` is the one that this batch
    /// was made from.
    package func collaborationIndex(of index: Int, in body: UnsafeRawBufferPointer) -> Int {
        Int(UInt16(littleEndian: body.loadUnaligned(fromByteOffset: Int(offsets[index]), as: UInt16.self)))
    }

    private func reader(at index: Int, in body: UnsafeRawBufferPointer) -> ByteReader {
        ByteReader(UnsafeRawBufferPointer(rebasing: body[Int(offsets[index])...]))
    }

    @inline(__always)
    private func next(_ reader: inout ByteReader, _ body: UnsafeRawBufferPointer) -> BorrowedProof {
        guard let proof = ProofBatch.readProof(&reader, isSigned: isSigned, collaborations: collaborations, body) else {
            preconditionFailure("a proof that was inside the body is not any more")
        }
        return proof
    }

    @inline(__always)
    private static func readProof(
        _ reader: inout ByteReader, isSigned: Bool, collaborations: [Range<Int>], _ body: UnsafeRawBufferPointer
    ) -> BorrowedProof? {
        readProof(&reader, isSigned: isSigned) { collaboration in
            guard collaboration < collaborations.count else { return nil }
            return UnsafeRawBufferPointer(rebasing: body[collaborations[collaboration]])
        }
    }

    /// Reads a proof. `name`: the identifier of the collaboration at a position, `nil` when there is none.
    @inline(__always)
    static func readProof(
        _ reader: inout ByteReader, isSigned: Bool, name: (Int) -> UnsafeRawBufferPointer?
    ) -> BorrowedProof? {
        guard let collaboration: UInt16 = reader.integer(), let name = name(Int(collaboration)),
            let siblingCount = reader.byte()
        else { return nil }
        if isSigned {
            guard let format = reader.byte(), let index: UInt64 = reader.integer(), let keyLength = reader.byte(),
                let signatureLength = reader.byte(), let dataLength: UInt16 = reader.integer(),
                let key = reader.bytes(Int(keyLength)),
                let siblings = reader.bytes(Int(siblingCount) * Digest.byteCount)?.baseAddress,
                let signature = reader.bytes(Int(signatureLength)), let data = reader.bytes(Int(dataLength))
            else { return nil }
            return BorrowedProof(
                collaboration: name, publicKey: key, publicKeyIndex: index, inclusionHashes: siblings,
                inclusionHashCount: Int(siblingCount), signatureFormat: format, signature: signature, data: data)
        }
        guard let keyLength = reader.byte(), let index: UInt64 = reader.integer(),
            let key = reader.bytes(Int(keyLength)),
            let siblings = reader.bytes(Int(siblingCount) * Digest.byteCount)?.baseAddress
        else { return nil }
        return BorrowedProof(
            collaboration: name, publicKey: key, publicKeyIndex: index, inclusionHashes: siblings,
            inclusionHashCount: Int(siblingCount))
    }

    // MARK: Making one

    /// A proof and the position of its collaboration in the request.
    package typealias Entry = (collaboration: Int, proof: SignedIdentityProof)

    /// Appends the body of a request.
    ///
    /// Throws `limitExceeded` for a count over its limit, or for a key, a signature or data whose length
    /// does not even fit into its field (255, 255 and 65,535 bytes).
    package static func append(
        _ entries: some Collection<Entry>, of collaborations: [CollaborationIdentifier], isSigned: Bool,
        wantsRoots: Bool, wantsOptions: Bool = false, atLeast: UInt64 = 0, to bytes: inout [UInt8]
    ) throws(ServiceError) {
        try BatchHead.append(
            atLeast: atLeast, flags: (wantsRoots ? wantsRootsFlag : 0) | (wantsOptions ? OptionLists.flag : 0),
            collaborations, itemCount: entries.count, itemsMax: Limits.proofsPerRequestMax, "proofs", to: &bytes)
        for (collaboration, proof) in entries {
            bytes.append(contentsOf: try encoded(proof, at: collaboration, isSigned: isSigned))
        }
    }

    /// A proof as it stands in a request. `collaboration`: the position of its collaboration.
    ///
    /// Throws `limitExceeded` as `append` does.
    package static func encoded(
        _ proof: SignedIdentityProof, at collaboration: Int = 0, isSigned: Bool
    ) throws(ServiceError) -> [UInt8] {
        try check(proof, isSigned: isSigned)
        let byteCount = byteCount(proof, isSigned: isSigned)
        return [UInt8](unsafeUninitializedCapacity: byteCount) { memory, count in
            write(proof, collaboration, isSigned: isSigned, to: UnsafeMutableRawBufferPointer(memory))
            count = byteCount
        }
    }

    /// Appends the beginning of a request with `count` proofs that `encoded` has made. Each then follows by
    /// `append(encoded:at:to:)`.
    ///
    /// Throws `limitExceeded` for a count over its limit.
    package static func appendHead(
        ofEncoded count: Int, of collaborations: [CollaborationIdentifier], atLeast: UInt64, to bytes: inout [UInt8]
    ) throws(ServiceError) {
        try BatchHead.append(
            atLeast: atLeast, collaborations, itemCount: count, itemsMax: Limits.proofsPerRequestMax, "proofs",
            to: &bytes)
    }

    /// Appends a proof that `encoded` has made, with the position of its collaboration.
    package static func append(encoded proof: [UInt8], at collaboration: Int, to bytes: inout [UInt8]) {
        bytes.appendInteger(UInt16(collaboration))
        proof.withUnsafeBytes { bytes.append(contentsOf: UnsafeRawBufferPointer(rebasing: $0[2...])) }
    }

    /// Throws `limitExceeded` when a length does not fit into its field.
    private static func check(_ proof: SignedIdentityProof, isSigned: Bool) throws(ServiceError) {
        try checkLimit(proof.publicKey.count, 255, "bytes of public key")
        try checkLimit(proof.inclusionHashes.count, 255, "inclusion hashes")
        guard isSigned else { return }
        try checkLimit(proof.signature.count, 255, "bytes of signature")
        try checkLimit(proof.data.count, 65_535, "bytes of signed data")
    }

    /// Bytes of a proof in a request.
    private static func byteCount(_ proof: SignedIdentityProof, isSigned: Bool) -> Int {
        let path = proof.publicKey.count + proof.inclusionHashes.count * Digest.byteCount
        return isSigned ? 16 + path + proof.signature.count + proof.data.count : 12 + path
    }

    /// Writes a proof that `check` has accepted to memory of `byteCount` bytes.
    private static func write(
        _ proof: SignedIdentityProof, _ collaboration: Int, isSigned: Bool, to memory: UnsafeMutableRawBufferPointer
    ) {
        var writer = ByteWriter(memory)
        writer.append(UInt16(collaboration))
        writer.append(UInt8(proof.inclusionHashes.count))
        if isSigned {
            writer.append(proof.signatureFormat.rawValue)
            writer.append(proof.publicKeyIndex)
            writer.append(UInt8(proof.publicKey.count))
            writer.append(UInt8(proof.signature.count))
            writer.append(UInt16(proof.data.count))
        } else {
            writer.append(UInt8(proof.publicKey.count))
            writer.append(proof.publicKeyIndex)
        }
        writer.append(proof.publicKey)
        writer.append(proof.inclusionHashes)
        if isSigned {
            writer.append(proof.signature)
            writer.append(proof.data)
        }
        precondition(writer.count == memory.count, "a proof's length was computed wrongly")
    }
}

/// The answer to a verify or inclusion-only request.
///
///     proofs (4)  flags (1)  zero (3)  a verdict each (1)  with flag 1: a root hash each (32)
package enum VerdictList {
    /// Bytes before the verdicts.
    static let headBytes = 8

    /// Bytes of an answer with so many verdicts.
    package static func byteCount(_ count: Int, hasRoots: Bool) -> Int {
        headBytes + count * (hasRoots ? 1 + Digest.byteCount : 1)
    }

    /// Appends the answer's body; `roots` is as long as `verdicts`, or `nil` when they were not asked for. An answer
    /// without verdicts has no flag.
    package static func append(
        _ verdicts: UnsafeBufferPointer<Verdict>, roots: UnsafeBufferPointer<Digest>?, to bytes: inout [UInt8]
    ) {
        bytes.appendInteger(UInt32(verdicts.count))
        bytes.append(roots == nil || verdicts.isEmpty ? 0 : 1)
        bytes.append(contentsOf: [0, 0, 0])
        // An enum's memory is not its raw value.
        for verdict in verdicts { bytes.append(verdict.rawValue) }
        if let roots { bytes.append(contentsOf: UnsafeRawBufferPointer(roots)) }
    }

    /// A verdict that is not known is `unknown`.
    ///
    /// Throws `malformedAnswer`.
    package static func decode(
        _ body: UnsafeRawBufferPointer
    ) throws(ServiceError) -> (verdicts: [Verdict], roots: [Digest]) {
        var reader = ByteReader(body)
        guard let count: UInt32 = reader.integer(), let flags = reader.byte(), reader.bytes(3) != nil,
            let block = reader.bytes(Int(count))
        else { throw malformedAnswer }
        let verdicts = block.map { Verdict(received: $0) }
        guard let roots = reader.digests(flags & 1 == 1 ? Int(count) : 0), reader.isAtEnd else { throw malformedAnswer }
        return (verdicts, roots)
    }
}

/// A `malformedRequest` that says what is wrong.
func malformedRequest(_ what: String, file: StaticString = #fileID, line: UInt = #line) -> ServiceError {
    ServiceError(.malformedRequest, what, file: file, line: line)
}
