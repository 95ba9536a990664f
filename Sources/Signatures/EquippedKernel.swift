import CKernels
import Core

/// A P-256 kernel with the memory that it needs. One object serves one thread at a time.
final class EquippedKernel {
    let kernel: UnsafePointer<rg_p256_functions>
    let generator: UnsafePointer<UInt64>
    /// The generator's table, if this object built it; otherwise empty.
    private let ownGenerator: ScratchBuffer<UInt64>
    private let workspace: ScratchBuffer<UInt8>
    private let tables: ScratchBuffer<UInt8>

    /// Bytes behind the outcomes that a kernel must not write.
    private static let guardBytes = 64
    /// The value of the outcomes before a kernel writes them. No outcome has this value.
    private static let untouched: UInt8 = 0xa5

    /// Uses `generator`, a table that the kernel built before and that outlives this object. Without one it builds its
    /// own, which takes some tens of milliseconds.
    init(_ kernel: UnsafePointer<rg_p256_functions>, generator: UnsafePointer<UInt64>? = nil) {
        self.kernel = kernel
        workspace = ScratchBuffer(uninitializedCount: kernel.pointee.workspace_bytes, alignment: RG_P256_ALIGNMENT)
        tables = ScratchBuffer(
            uninitializedCount: Int(kernel.pointee.known_bytes) * RG_P256_BATCH_MAX, alignment: RG_P256_ALIGNMENT)
        ownGenerator = ScratchBuffer(
            uninitializedCount: generator == nil ? RG_P256_GENERATOR_BYTES / MemoryLayout<UInt64>.stride : 0,
            alignment: RG_P256_ALIGNMENT)
        if generator == nil { kernel.pointee.build_generator(ownGenerator.baseAddress, workspace.baseAddress) }
        self.generator = generator ?? UnsafePointer(ownGenerator.baseAddress)
    }

    /// Runs the kernel on 1 to `RG_P256_BATCH_MAX` checks and returns the outcomes. Returns `nil` when the kernel
    /// leaves an outcome unwritten or writes behind the last.
    func outcomes(of cases: some RandomAccessCollection<SignatureCase>) -> [UInt8]? {
        withChecks(cases) { checks, outcomes in
            kernel.pointee.verify(checks, cases.count, generator, workspace.baseAddress, outcomes)
            return true
        }
    }

    /// Does the same with a table for each key. Returns `nil` also when the kernel refuses to build a table.
    func knownOutcomes(of cases: some RandomAccessCollection<SignatureCase>) -> [UInt8]? {
        withChecks(cases) { checks, outcomes in
            // Each key once: building a table takes as long as several verifications.
            var numbers: [[UInt8]: Int] = [:]
            var points: [UnsafePointer<UInt8>?] = []
            let numberOfCase = cases.enumerated().map { index, check in
                if let number = numbers[check.point] { return number }
                numbers[check.point] = points.count
                points.append(checks[index].point)
                return points.count - 1
            }
            let table = points.indices.map { number in
                UnsafeMutablePointer<UInt64>?(
                    UnsafeMutableRawPointer(tables.baseAddress + Int(kernel.pointee.known_bytes) * number)
                        .assumingMemoryBound(to: UInt64.self))
            }
            for first in stride(from: 0, to: points.count, by: RG_P256_BUILD_MAX) {
                let range = first..<min(first + RG_P256_BUILD_MAX, points.count)
                let isBuilt = Array(points[range]).withUnsafeBufferPointer { points in
                    Array(table[range]).withUnsafeBufferPointer { table in
                        kernel.pointee.build_known(
                            points.baseAddress, table.baseAddress, range.count, workspace.baseAddress)
                    }
                }
                guard isBuilt != 0 else { return false }
            }
            // A kernel must not read the points of keys that have tables, so the points are removed.
            for index in 0..<cases.count { checks[index].point = nil }
            let read = numberOfCase.map { number in table[number].map { UnsafePointer($0) } }
            kernel.pointee.verify_known(checks, read, cases.count, generator, workspace.baseAddress, outcomes)
            return true
        }
    }

    private func withChecks(
        _ cases: some RandomAccessCollection<SignatureCase>,
        _ body: (UnsafeMutablePointer<rg_p256_check>, UnsafeMutablePointer<UInt8>) -> Bool
    ) -> [UInt8]? {
        precondition(
            (1...RG_P256_BATCH_MAX).contains(cases.count), "a batch does not have 1 to \(RG_P256_BATCH_MAX) checks")
        let points = ScratchBuffer<UInt8>(repeating: 0, count: 65 * cases.count)
        let checks = ScratchBuffer<rg_p256_check>(repeating: rg_p256_check(), count: cases.count)
        for (index, check) in cases.enumerated() {
            precondition(check.point.count <= 65, "a point has more than 65 bytes")
            let point = points.baseAddress + 65 * index
            point.update(from: check.point, count: check.point.count)
            checks[index].point = UnsafePointer(point)
            withUnsafeMutableBytes(of: &checks[index].r) { $0.copyBytes(from: check.r) }
            withUnsafeMutableBytes(of: &checks[index].s) { $0.copyBytes(from: check.s) }
            withUnsafeMutableBytes(of: &checks[index].digest) { $0.copyBytes(from: check.digest) }
        }
        var outcomes = [UInt8](repeating: Self.untouched, count: cases.count + Self.guardBytes)
        let isDone = outcomes.withUnsafeMutableBufferPointer { outcomes in
            outcomes.baseAddress.map { body(checks.baseAddress, $0) } ?? false
        }
        guard isDone, !outcomes[..<cases.count].contains(Self.untouched),
            outcomes[cases.count...].allSatisfy({ $0 == Self.untouched })
        else { return nil }
        return Array(outcomes[..<cases.count])
    }
}
