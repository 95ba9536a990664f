import Core
import Testing

/// The relations between limits that other code relies on.
struct LimitsTests {
    private let verifyHead = 16
    private let proofHead = 16
    private let identifierField = 1 + Limits.collaborationBytesMax

    @Test("The longest proof that is not malformed fits a frame alone")
    func longestProof() {
        let proof =
            proofHead + Limits.publicKeyBytesMax + 32 * Limits.inclusionHashesMax + Limits.signatureBytesMax
            + Limits.signedDataBytesMax
        #expect(verifyHead + identifierField + proof <= Limits.frameBodyBytesMax)
    }

    @Test("A verify of the most proofs with trees of 256 leaves and challenges fits a frame")
    func mostProofs() {
        let challengeBytes = 48
        let proof = proofHead + Limits.publicKeyBytesMax + 32 * 8 + Limits.signatureBytesMax + challengeBytes
        #expect(
            verifyHead + identifierField + Limits.proofsPerRequestMax * proof <= Limits.frameBodyBytesMax)
    }

    @Test("The most collaborations with the longest identifiers and a small proof each fit a frame")
    func mostCollaborations() {
        let proof = proofHead + 65 + 32 * 3 + Limits.signatureBytesMax + 48
        #expect(
            verifyHead + Limits.collaborationsPerRequestMax * (identifierField + proof) <= Limits.frameBodyBytesMax)
    }

    @Test("The positions and counts of a verify fit their fields")
    func verifyFields() {
        #expect(Limits.collaborationsPerRequestMax <= Int(UInt16.max))
        #expect(Limits.signedDataBytesMax < Int(UInt16.max))
        #expect(Limits.publicKeyBytesMax < Int(UInt8.max))
        #expect(Limits.signatureBytesMax < Int(UInt8.max))
        #expect(Limits.inclusionHashesMax < Int(UInt8.max))
        #expect(Limits.collaborationBytesMax < Int(UInt8.max))
        #expect(Limits.errorTextBytesMax <= Int(UInt16.max))
        #expect(Limits.frameBodyBytesMax <= Int(UInt32.max))
    }

    @Test("The answer to a verify of the most proofs with root hashes fits a frame")
    func verifyAnswer() {
        #expect(8 + Limits.proofsPerRequestMax * (1 + 32) <= Limits.frameBodyBytesMax)
    }

    @Test("An add of the most root hashes fits a frame")
    func mostRoots() {
        let body = Limits.mutationIdentifierBytes + identifierField + 4 + 32 * Limits.rootsPerRequestMax
        #expect(body <= Limits.frameBodyBytesMax)
    }

    @Test("Every full page fits a frame")
    func pages() {
        #expect(8 + 32 * Limits.rootsPerPageMax <= Limits.frameBodyBytesMax)
        #expect(8 + Limits.collaborationsPerPageMax * (13 + identifierField) <= Limits.frameBodyBytesMax)
        #expect(16 + 48 * Limits.challengesPerRequestMax <= Limits.frameBodyBytesMax)
    }

    @Test("A page of changes that just missed its end and takes the biggest record still fits a frame")
    func changesPage() {
        let record = 8 + 8 + Limits.mutationIdentifierBytes + 2 + 1 + 1 + 4 + identifierField
        let biggest = record + 32 * Limits.rootsPerRequestMax
        #expect(8 + Limits.changesPageBytesMax + biggest < Limits.frameBodyBytesMax)
    }

    @Test("The smallest memory for requests has room for the longest request, and its reserve for the longest removal")
    func smallestMemory() {
        let reserve = max(Limits.urgentMemoryBytesMin, Limits.requestMemoryBytesMin / Limits.urgentMemoryPart)
        #expect(Limits.memoryPerRequestMax <= Limits.requestMemoryBytesMin - reserve)
        #expect(Limits.urgentMemoryPerRequestMax <= (reserve + 1) / 2)
        // While a frame's buffer grows, there is the one of half its size, too.
        #expect(3 * (Limits.frameHeaderBytes + Limits.frameBodyBytesMax) / 2 <= Limits.memoryPerRequestMax)
        // An error answer has its code, its length and its detail before the text.
        #expect(Limits.frameHeaderBytes + 8 + Limits.errorTextBytesMax <= Limits.requestOverheadBytes)
        // A request's name is known before its bytes are counted.
        let name = Limits.frameHeaderBytes + Limits.mutationIdentifierBytes + 1 + Limits.requestNameBytesMax
        #expect(name <= Limits.uncountedFrameBytesMax)
        let record = 8 + 8 + Limits.mutationIdentifierBytes + 2 + 1 + 1 + 4 + identifierField
        #expect(
            8 + Limits.changesPageBytesMax + record + 32 * Limits.rootsPerRequestMax <= Limits.changesAnswerBytesMax)
    }

    @Test("The biggest mutation fits one commit, and one commit fits the queue")
    func commits() {
        #expect(Limits.frameBodyBytesMax <= Limits.mutationBytesPerCommitMax)
        #expect(Limits.mutationBytesPerCommitMax <= Limits.mutationBytesQueuedMax)
        #expect(Limits.mutationsPerCommitMax <= Limits.mutationsQueuedMax)
    }

    @Test("A turn is no longer than a pass, and a pass no longer than a request")
    func passes() {
        #expect(Limits.proofsPerTurn <= Limits.proofsPerPassMax)
        #expect(Limits.proofsPerPassMax <= Limits.proofsPerRequestMax)
    }

    @Test("The longest encodings are what their formats come to")
    func encodings() {
        let subjectPublicKeyInfo = 2 + (2 + 9 + 10) + (2 + 1 + 65)
        #expect(Limits.publicKeyBytesMax == subjectPublicKeyInfo)
        #expect(Limits.signatureBytesMax == 2 + 2 * (2 + 33))
    }

    @Test("What one request of the collaboration layer may change fits into one edit")
    func edits() {
        // A share writes up to five records for each recipient, and for each thumbnail that it leaves up to four.
        #expect(Limits.recipientsPerShareMax * (5 + 4) + 4 <= Limits.recordsPerEditMax)
        // A thumbnail is a record, and travels in base64url.
        #expect(Limits.thumbnailBytesMax <= Limits.recordValueBytesMax)
        #expect(Limits.thumbnailBytesMax * 4 / 3 + 8 * Limits.linkBytesMax <= Limits.collaborationRequestBytesMax)
        #expect(Limits.thumbnailPartBytesMax >= Limits.thumbnailBytesMax)
        // Removing a participant takes up to ten records, adding one two.
        #expect(Limits.participantsPerRequestMax * 10 <= Limits.recordsPerEditMax)
        // The longest key: two identifiers and a digest, with a byte before and one behind each identifier.
        #expect(1 + 2 * (Limits.collaborationBytesMax + 1) + Digest.byteCount <= Limits.recordKeyBytesMax)
        #expect(Limits.collaborationRequestBytesMax + 256 <= Limits.frameBodyBytesMax)
        // A page of a feed ends with a whole post.
        #expect(Limits.noticesPageBytesMax + 2 * Limits.recordValueBytesMax <= Limits.frameBodyBytesMax)
        // The place of an event in its post is a byte.
        #expect(Limits.noticesPerPostMax <= 256)
    }

    @Test("The limits that PROTOCOL.md names have its numbers")
    func stated() {
        #expect(Limits.frameBodyBytesMax == 2_097_152)
        #expect(Limits.frameHeaderBytes == 16)
        #expect(Limits.errorTextBytesMax == 512)
        #expect(Limits.requestsInFlightPerConnectionMax == 128)
        #expect(Limits.unsentBytesPerConnectionMax == 256 * 1024)
        #expect(Limits.collaborationBytesMax == 128)
        #expect(Limits.mutationIdentifierBytes == 16)
        #expect(Limits.nonceWindowSecondsMin == 1)
        #expect(Limits.nonceWindowSecondsMax == 604_800)
        #expect(Limits.deviceNonceBytesMin == 16)
        #expect(Limits.signedDataBytesMax == 4096)
        #expect(Limits.inclusionHashesMax == 32)
        #expect(Limits.pingBytesMax == 64)
        #expect(Limits.challengesPerRequestMax == 4096)
        #expect(Limits.proofsPerRequestMax == 4096)
        #expect(Limits.collaborationsPerRequestMax == 4096)
        #expect(Limits.rootsPerRequestMax == 32_768)
        #expect(Limits.rootsPerPageMax == 4096)
        #expect(Limits.collaborationsPerPageMax == 1024)
        #expect(Limits.changesPerPageMax == 1024)
        #expect(Limits.collaborationRequestBytesMax == 256 * 1024)
        #expect(Limits.jsonDepthMax == 32)
        #expect(Limits.shelfOffsetMax == 1_048_576)
        #expect(Limits.requestNameBytesMax == 64)
        #expect(Limits.textBytesMax == 512)
        #expect(Limits.linkBytesMax == 2048)
        #expect(Limits.linkBaseBytesMax == 1024)
        // Each byte of an identifier takes three in a link at most.
        #expect(Limits.linkBaseBytesMax + 1 + 3 * Limits.collaborationBytesMax <= Limits.linkBytesMax)
        #expect(Limits.participantsPerRequestMax == 400)
        #expect(Limits.noticesPerPostMax == 64)
        #expect(Limits.followMillisecondsMax == 60_000)
        #expect(Limits.followsPerConnectionMax == 1024)
        #expect(Limits.recipientsPerShareMax == 128)
        #expect(Limits.highlightsPerPageMax == 64)
        #expect(Limits.thumbnailBytesMax == 65_536)
        #expect(Limits.thumbnailsBytesMax == 1 << 30)
        #expect(Limits.attributionsPerItemMax == 8)
        #expect(Limits.grantsPerCheckMax == 4096)
        let pages = [
            Limits.participantsPerPageMax, Limits.noticesPerPageMax, Limits.invitationsPerPageMax,
            Limits.sharesPerPageMax,
        ]
        #expect(pages == [256, 256, 256, 256])
    }
}
