import CKernels
import Core
import Kernels

/// Times P-256 kernels, and libcrypto, with genuine signatures.
///
/// Keys with tables are fewer than in a service, so the tables are in the processor's caches.
final class SignatureTiming {
    private let points: ScratchBuffer<UInt8>
    private let checks: ScratchBuffer<rg_p256_check>
    private let outcomes: ScratchBuffer<UInt8>
    /// The same signatures for libcrypto. Their points are in `points`.
    private let libcryptoChecks: [SignatureCheck]
    private let libcrypto: LibcryptoVerifier

    /// `cases`: valid ones, at least one; they are repeated as needed.
    ///
    /// Throws `internalFault` when libcrypto can't allocate.
    init(_ cases: [SignatureCase]) throws(ServiceError) {
        let largest = BatchPlan.sizes.max() ?? 1
        libcrypto = try LibcryptoVerifier()
        points = ScratchBuffer(repeating: 0, count: 65 * largest)
        checks = ScratchBuffer(repeating: rg_p256_check(), count: largest)
        outcomes = ScratchBuffer(repeating: 0, count: largest)
        var libcryptoChecks: [SignatureCheck] = []
        for index in 0..<largest {
            let check = cases[index % cases.count]
            precondition(check.point.count <= 65, "a point has more than 65 bytes")
            let point = points.baseAddress + 65 * index
            point.update(from: check.point, count: check.point.count)
            checks[index].point = UnsafePointer(point)
            var scalars = ScalarPair()
            for place in 0..<32 { (scalars.r[place], scalars.s[place]) = (check.r[place], check.s[place]) }
            withUnsafeMutableBytes(of: &checks[index].r) { $0.copyBytes(from: check.r) }
            withUnsafeMutableBytes(of: &checks[index].s) { $0.copyBytes(from: check.s) }
            withUnsafeMutableBytes(of: &checks[index].digest) { $0.copyBytes(from: check.digest) }
            let digest = check.digest.withUnsafeBytes { $0.baseAddress.map { Digest(at: $0) } } ?? .zero
            libcryptoChecks.append(
                SignatureCheck(
                    point: UnsafeRawBufferPointer(start: point, count: check.point.count), scalars: scalars,
                    digest: digest))
        }
        self.libcryptoChecks = libcryptoChecks
    }

    /// The times of the members, in their order, and then of libcrypto if it takes part.
    func times(of members: [SignatureKernel.Member], isKnown: Bool, withLibcrypto: Bool) -> [BatchPlan.Times] {
        var contenders = members.map { member in
            let equipment = Equipment(member, checks.baseAddress, tableCount: isKnown ? SignatureKernel.buildMax : 0)
            return BatchTimer.Contender(width: Int(member.functions.pointee.width)) { [self] count in
                equipment.verify(checks.baseAddress, count, outcomes.baseAddress)
            }
        }
        if withLibcrypto {
            contenders.append(
                BatchTimer.Contender(width: 1) { [self] count in
                    // The signatures are valid. A lack of memory makes no difference that matters here.
                    for check in libcryptoChecks[..<count] { _ = try? libcrypto.verify(check) }
                })
        }
        return BatchTimer().times(of: contenders)
    }
}

/// A kernel with the memory that it needs while it is timed.
private final class Equipment {
    let member: SignatureKernel.Member
    private let workspace: ScratchBuffer<UInt8>
    private let memory: ScratchBuffer<UInt8>
    /// A table for each check, which need not be that of its key: the outcomes do not matter. Empty where keys are new.
    private let tables: [UnsafePointer<UInt64>?]

    /// `tableCount`: different keys with tables.
    init(_ member: SignatureKernel.Member, _ checks: UnsafePointer<rg_p256_check>, tableCount: Int) {
        self.member = member
        workspace = ScratchBuffer(
            uninitializedCount: Int(member.functions.pointee.workspace_bytes), alignment: RG_P256_ALIGNMENT)
        let tableBytes = Int(member.functions.pointee.known_bytes)
        memory = ScratchBuffer(uninitializedCount: tableBytes * tableCount, alignment: RG_P256_ALIGNMENT)
        let start = UnsafeMutableRawPointer(memory.baseAddress)
        let addresses = (0..<tableCount).map { index in
            Optional((start + tableBytes * index).assumingMemoryBound(to: UInt64.self))
        }
        if tableCount > 0 {
            let points = (0..<tableCount).map { checks[$0].point }
            _ = member.functions.pointee.build_known(points, addresses, tableCount, workspace.baseAddress)
        }
        let largest = tableCount > 0 ? BatchPlan.sizes.max() ?? 1 : 0
        tables = (0..<largest).map { index in addresses[index % tableCount].map { UnsafePointer($0) } }
    }

    func verify(_ checks: UnsafePointer<rg_p256_check>, _ count: Int, _ outcomes: UnsafeMutablePointer<UInt8>) {
        if tables.isEmpty {
            member.functions.pointee.verify(
                checks, count, member.generator.address, workspace.baseAddress, outcomes)
        } else {
            member.functions.pointee.verify_known(
                checks, tables, count, member.generator.address, workspace.baseAddress, outcomes)
        }
    }
}
