import CKernels
package import Core

/// Verifies batches of ECDSA signatures over P-256 (FIPS 186-5, 6.4.2). Its engine decides whether kernels and the
/// tables of known keys are used, or libcrypto. The outcomes are the same. High s is valid.
///
/// A verifier allocates its memory once and serves one thread at a time, so each worker has its own.
package final class SignatureVerifier {
    private let engine: SignatureEngine
    private let libcrypto: LibcryptoVerifier
    /// What this verifier needs for kernels; `nil` while it has met none.
    private var equipment: Equipment?
    private let new: KernelBatch
    private let known: KernelBatch
    /// Whether the key of each check of the last batch had a table.
    private var usedTable: [Bool] = []
    /// The hash and the table of each check's key.
    private var hashes: [UInt64] = []
    private var tables: [UnsafePointer<UInt64>?] = []
    /// Checks until the next sample for the cross-check.
    private var untilSample: Int

    /// A kernel, and this verifier's own memory for it.
    private final class Equipment {
        let kernel: SignatureKernel
        let knownKeys: KnownKeys?
        let reader: KnownKeys.Reader?
        let workspace: ScratchBuffer<UInt8>

        init(_ equipment: SignatureEngine.Equipment) {
            kernel = equipment.kernel
            knownKeys = equipment.knownKeys
            reader = equipment.knownKeys?.makeReader()
            workspace = ScratchBuffer(
                uninitializedCount: equipment.kernel.workspaceBytes, alignment: RG_P256_ALIGNMENT)
        }
    }

    /// `engine` is shared by all verifiers of a service.
    ///
    /// Throws `internalFault` when libcrypto can't allocate.
    package init(_ engine: SignatureEngine = .libcrypto) throws(ServiceError) {
        self.engine = engine
        libcrypto = try LibcryptoVerifier()
        equipment = engine.equipment.map { Equipment($0) }
        new = KernelBatch()
        known = KernelBatch()
        untilSample = engine.sampleInterval
    }

    /// Writes the outcome of every check. `outcomes` is at least as long as `checks`.
    ///
    /// Throws `internalFault` when libcrypto runs out of memory. Then no outcome is valid.
    package func verify(
        _ checks: UnsafeBufferPointer<SignatureCheck>, into outcomes: UnsafeMutableBufferPointer<SignatureOutcome>
    ) throws(ServiceError) {
        precondition(outcomes.count >= checks.count, "there is no room for every outcome")
        if equipment == nil { equipment = engine.equipment.map { Equipment($0) } }
        guard let equipment = inUse else {
            for index in checks.indices { outcomes[index] = try libcrypto.verify(checks[index]) }
            return
        }
        guard !checks.isEmpty else { return }
        precondition(known.isEmpty && new.isEmpty, "the last batch was not emptied")
        equipment.reader?.begin()
        defer {
            // When libcrypto throws, the batch still holds checks that must not get into the next one.
            (known.count, new.count) = (0, 0)
            equipment.reader?.end()
        }
        if usedTable.count < checks.count { usedTable = [Bool](repeating: false, count: checks.count) }
        let knownKeys = equipment.knownKeys.flatMap { $0.isEmpty ? nil : $0 }
        if let knownKeys { findTables(of: checks, in: knownKeys) }
        for index in checks.indices {
            if knownKeys != nil, let table = tables[index] {
                known.append(checks[index], at: index, table: table)
                usedTable[index] = true
                if known.isFull { try run(known, equipment, checks, outcomes) }
            } else {
                new.append(checks[index], at: index)
                usedTable[index] = false
                if new.isFull { try run(new, equipment, checks, outcomes) }
            }
        }
        if !known.isEmpty { try run(known, equipment, checks, outcomes) }
        if !new.isEmpty { try run(new, equipment, checks, outcomes) }
        sample(checks, outcomes)
    }

    /// The kernel, unless it was switched off.
    private var inUse: Equipment? { engine.isOff ? nil : equipment }

    private func findTables(of checks: UnsafeBufferPointer<SignatureCheck>, in knownKeys: KnownKeys) {
        if tables.count < checks.count { tables = [UnsafePointer<UInt64>?](repeating: nil, count: checks.count) }
        if hashes.count < checks.count { hashes = [UInt64](repeating: 0, count: checks.count) }
        hashes.withUnsafeMutableBufferPointer { hashes in
            tables.withUnsafeMutableBufferPointer { tables in
                guard let hashes = hashes.baseAddress, let tables = tables.baseAddress else { return }
                knownKeys.find(checks, hashes: hashes, tables: tables)
            }
        }
    }

    /// Verifies one signature. Throws `internalFault` when libcrypto runs out of memory.
    package func verify(_ check: SignatureCheck) throws(ServiceError) -> SignatureOutcome {
        var outcome = SignatureOutcome.invalid
        try withUnsafePointer(to: check) { check throws(ServiceError) in
            try withUnsafeMutablePointer(to: &outcome) { outcome throws(ServiceError) in
                try verify(
                    UnsafeBufferPointer(start: check, count: 1),
                    into: UnsafeMutableBufferPointer(start: outcome, count: 1))
            }
        }
        return outcome
    }

    /// Whether the key of this check of the last batch had a table. Always true when there are no tables, because then
    /// no key can get one.
    package func wasKnown(_ index: Int) -> Bool {
        inUse?.knownKeys == nil || usedTable.indices.contains(index) && usedTable[index]
    }

    /// Offers keys without a table whose proofs were granted. A key that is offered again gets a table.
    ///
    /// `points`: X9.63 points.
    package func granted(_ points: UnsafeBufferPointer<UnsafeRawBufferPointer>) {
        guard let knownKeys = inUse?.knownKeys, !points.isEmpty else { return }
        if hashes.count < points.count { hashes = [UInt64](repeating: 0, count: points.count) }
        hashes.withUnsafeMutableBufferPointer { hashes in
            if let hashes = hashes.baseAddress { knownKeys.offer(points, hashes: hashes) }
        }
    }

    /// Offers the key of one proof.
    package func granted(_ point: UnsafeRawBufferPointer) {
        withUnsafePointer(to: point) { granted(UnsafeBufferPointer(start: $0, count: 1)) }
    }

    /// Runs a batch through a kernel and empties it. libcrypto decides what the kernel leaves undecided.
    private func run(
        _ batch: KernelBatch, _ equipment: Equipment,
        _ checks: UnsafeBufferPointer<SignatureCheck>, _ outcomes: UnsafeMutableBufferPointer<SignatureOutcome>
    ) throws(ServiceError) {
        defer { batch.count = 0 }
        equipment.kernel.verify(batch, workspace: equipment.workspace.baseAddress)
        for place in 0..<batch.count {
            let position = batch.positions[place]
            assert(checks.indices.contains(position), "a check's position is outside of its batch")
            switch batch.outcomes[place] {
            case UInt8(RG_P256_VALID.rawValue): outcomes[position] = .valid
            case UInt8(RG_P256_INVALID.rawValue): outcomes[position] = .invalid
            case UInt8(RG_P256_BAD_KEY.rawValue): outcomes[position] = .badKey
            default: outcomes[position] = try libcrypto.verify(checks[position])
            }
        }
    }

    /// Queues the service's first batch, and one in so many of the later outcomes, for the cross-check.
    private func sample(
        _ checks: UnsafeBufferPointer<SignatureCheck>, _ outcomes: UnsafeMutableBufferPointer<SignatureOutcome>
    ) {
        if engine.takesFirstBatch() {
            for index in checks.indices { engine.crossCheck(checks[index], outcomes[index]) }
            return
        }
        guard engine.sampleInterval > 0 else { return }
        untilSample -= checks.count
        while untilSample <= 0 {
            let index = checks.count - 1 + untilSample
            if checks.indices.contains(index) { engine.crossCheck(checks[index], outcomes[index]) }
            untilSample += engine.sampleInterval
        }
    }
}

/// The checks of one call of a kernel, and their outcomes.
final class KernelBatch {
    static let capacity = RG_P256_BATCH_MAX

    let checks = ScratchBuffer<rg_p256_check>(repeating: rg_p256_check(), count: KernelBatch.capacity)
    let tables = ScratchBuffer<UnsafePointer<UInt64>?>(repeating: nil, count: KernelBatch.capacity)
    let outcomes = ScratchBuffer<UInt8>(repeating: 0, count: KernelBatch.capacity)
    /// The position of each check in the caller's batch.
    let positions = ScratchBuffer<Int>(repeating: 0, count: KernelBatch.capacity)
    var count = 0
    /// Whether the keys have tables.
    private(set) var isKnown = false

    var isFull: Bool { count == KernelBatch.capacity }
    var isEmpty: Bool { count == 0 }

    /// Copies what the kernel needs, except the point, which is borrowed. Either all checks of a batch have a table or
    /// none has.
    func append(_ check: SignatureCheck, at position: Int, table: UnsafePointer<UInt64>? = nil) {
        precondition(!isFull, "a batch has more checks than its capacity")
        assert(count == 0 || isKnown == (table != nil), "a batch mixes keys with and without tables")
        checks[count].point = check.point.baseAddress?.assumingMemoryBound(to: UInt8.self)
        withUnsafeBytes(of: check.scalars) { scalars in
            withUnsafeMutableBytes(of: &checks[count].r) { $0.copyBytes(from: scalars[..<32]) }
            withUnsafeMutableBytes(of: &checks[count].s) { $0.copyBytes(from: scalars[32...]) }
        }
        check.digest.withUnsafeBytes { digest in
            withUnsafeMutableBytes(of: &checks[count].digest) { $0.copyBytes(from: digest) }
        }
        tables[count] = table
        positions[count] = position
        isKnown = table != nil
        count += 1
    }
}
