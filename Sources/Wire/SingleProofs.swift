package import Core

/// Verify or inclusion-only requests that follow one another on a connection and have one proof each. They are
/// verified as one batch, and each gets its own answer. Nothing is copied but offsets and request identifiers.
package struct SingleProofs: Sendable {
    private struct Entry {
        let requestID: UInt64
        /// Where the collaboration's identifier and the proof are.
        let name: Range<Int>
        let proof: Int
    }

    /// Whether the proofs come with signatures.
    package let isSigned: Bool
    private var entries: [Entry] = []
    /// The largest sequence that one of the requests demands.
    package private(set) var atLeast: UInt64 = 0

    package init(isSigned: Bool) {
        self.isSigned = isSigned
    }

    package var count: Int { entries.count }

    /// The operation of the requests.
    package var operation: Operation { isSigned ? .verify : .verifyInclusion }

    /// Whether a request of this operation may be in such a series. `nil`: it may not; otherwise whether its proof has
    /// a signature.
    package static func isSigned(_ operation: UInt16) -> Bool? {
        switch Operation(rawValue: operation) {
        case .verify: true
        case .verifyInclusion: false
        default: nil
        }
    }

    /// Adds a request whose frame begins at `offset` of the bytes of all frames. Returns false, and adds nothing, when
    /// it is not a correct request with one proof and without options. Then it is to be handled by itself.
    package mutating func append(_ header: FrameHeader, _ body: UnsafeRawBufferPointer, at offset: Int) -> Bool {
        guard SingleProofs.isSigned(header.operation) == isSigned else { return false }
        var reader = ByteReader(body)
        guard let atLeast: UInt64 = reader.integer(), let options: UInt16 = reader.integer(), options == 0,
            let collaborations: UInt16 = reader.integer(), collaborations == 1,
            let proofs: UInt32 = reader.integer(), proofs == 1, let name = reader.shortBytes()
        else { return false }
        let start = reader.offset
        let isRead = ProofBatch.readProof(&reader, isSigned: isSigned) { $0 == 0 ? name : nil } != nil
        guard isRead, reader.isAtEnd else { return false }
        let shift = offset + Limits.frameHeaderBytes
        entries.append(
            Entry(
                requestID: header.requestID, name: shift + start - name.count..<shift + start, proof: shift + start))
        self.atLeast = max(self.atLeast, atLeast)
        return true
    }

    /// The identifier of the collaboration of a request. `frames`: the bytes of all frames.
    package func collaboration(at index: Int, in frames: UnsafeRawBufferPointer) -> UnsafeRawBufferPointer {
        UnsafeRawBufferPointer(rebasing: frames[entries[index].name])
    }

    /// Initializes `proofs`, which is as long as `positions`, with the proofs at those. They borrow from `frames`, the
    /// bytes of all frames.
    package func read(
        _ positions: Range<Int>, in frames: UnsafeRawBufferPointer,
        into proofs: UnsafeMutableBufferPointer<BorrowedProof>
    ) {
        for (place, position) in positions.enumerated() {
            let entry = entries[position]
            let name = UnsafeRawBufferPointer(rebasing: frames[entry.name])
            var reader = ByteReader(UnsafeRawBufferPointer(rebasing: frames[entry.proof...]))
            guard let proof = ProofBatch.readProof(&reader, isSigned: isSigned, name: { $0 == 0 ? name : nil }) else {
                preconditionFailure("a proof that was inside its frame is not any more")
            }
            proofs.initializeElement(at: place, to: proof)
        }
    }

    // MARK: Answers

    /// Bytes of an answer with one verdict, its header included.
    package static let answerBytes = Limits.frameHeaderBytes + VerdictList.byteCount(1, hasRoots: false)

    /// Appends the frames of all answers. `verdicts`: one for each request. `errors`: of the requests at these places,
    /// which get no verdict.
    package func append(
        answers verdicts: UnsafeBufferPointer<Verdict>, errors: [Int: ServiceError] = [:], to bytes: inout [UInt8]
    ) {
        precondition(verdicts.count == entries.count, "a request has no verdict")
        var frame: [UInt8] = []
        // All answers are alike but for the identifier and the verdict.
        FrameWriter.append(.answer, operation.rawValue, requestID: 0, to: &frame) { body in
            var verdict = Verdict.malformed
            withUnsafePointer(to: &verdict) {
                VerdictList.append(UnsafeBufferPointer(start: $0, count: 1), roots: nil, to: &body)
            }
        }
        precondition(frame.count == SingleProofs.answerBytes)
        bytes.reserveCapacity(bytes.count + entries.count * frame.count)
        frame.withUnsafeMutableBytes { frame in
            for (place, (entry, verdict)) in zip(entries, verdicts).enumerated() {
                if !errors.isEmpty, let error = errors[place] {
                    FrameWriter.appendError(
                        error, operation: operation.rawValue, requestID: entry.requestID, to: &bytes)
                    continue
                }
                frame.storeBytes(
                    of: entry.requestID.littleEndian, toByteOffset: Limits.frameHeaderBytes - 8, as: UInt64.self)
                frame[frame.count - 1] = verdict.rawValue
                bytes.append(contentsOf: frame)
            }
        }
    }

    /// Appends the frames of answers with the same error to all requests.
    package func append(error: ServiceError, to bytes: inout [UInt8]) {
        for entry in entries {
            FrameWriter.appendError(error, operation: operation.rawValue, requestID: entry.requestID, to: &bytes)
        }
    }
}
