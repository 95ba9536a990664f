import CKernels
import Core

/// A P-256 kernel with the memory that it asks for. Serves one thread at a time.
final class EquippedKernel {
    let kernel: UnsafePointer<rg_p256_functions>
    let generator: UnsafePointer<UInt64>
    /// The generator's table, if it is this object's own.
    private let ownGenerator: UnsafeMutablePointer<UInt64>?
    private let workspace: UnsafeMutableRawPointer
    private let tables: UnsafeMutableRawPointer

    /// Bytes behind the outcomes that no kernel may touch.
    private static let guardBytes = 64
    /// What the outcomes hold before a kernel writes them; no outcome is this.
    private static let untouched: UInt8 = 0xa5

    /// With a generator's table that the kernel built before and that outlives this object, or with one of its
    /// own, which takes some tens of milliseconds.
    init(_ kernel: UnsafePointer<rg_p256_functions>, generator: UnsafePointer<UInt64>? = nil) {
        func allocate(_ byteCount: Int) -> UnsafeMutableRawPointer {
            .allocate(byteCount: byteCount, alignment: RG_P256_ALIGNMENT)
        }
        self.kernel = kernel
        workspace = allocate(kernel.pointee.workspace_bytes)
        tables = allocate(RG_P256_KNOWN_BYTES * RG_P256_BATCH_MAX)
        if let generator {
            ownGenerator = nil
            self.generator = generator
        } else {
            let table = allocate(RG_P256_GENERATOR_BYTES).assumingMemoryBound(to: UInt64.self)
            kernel.pointee.build_generator(table, workspace)
            ownGenerator = table
            self.generator = UnsafePointer(table)
        }
    }

    deinit {
        ownGenerator?.deallocate()
        workspace.deallocate()
        tables.deallocate()
    }

    /// What the kernel says of 1 to `RG_P256_BATCH_MAX` checks; `nil` when it leaves an outcome unwritten or
    /// writes behind the last.
    func outcomes(of cases: some RandomAccessCollection<SignatureCase>) -> [UInt8]? {
        withChecks(cases) { checks, outcomes in
            kernel.pointee.verify(checks, cases.count, generator, workspace, outcomes)
            return true
        }
    }

    /// The same with a table for each key; all points are on the curve. `nil` also when the kernel refuses a key.
    func knownOutcomes(of cases: some RandomAccessCollection<SignatureCase>) -> [UInt8]? {
        withChecks(cases) { checks, outcomes in
            let table = (0..<cases.count).map { index in
                UnsafeMutablePointer<UInt64>?(
                    (tables + RG_P256_KNOWN_BYTES * index).assumingMemoryBound(to: UInt64.self))
            }
            let points = (0..<cases.count).map { checks[$0].point }
            for first in stride(from: 0, to: cases.count, by: RG_P256_BUILD_MAX) {
                let range = first..<min(first + RG_P256_BUILD_MAX, cases.count)
                let isBuilt = Array(points[range]).withUnsafeBufferPointer { points in
                    Array(table[range]).withUnsafeBufferPointer { table in
                        kernel.pointee.build_known(points.baseAddress, table.baseAddress, range.count, workspace)
                    }
                }
                guard isBuilt != 0 else { return false }
            }
            // Keys with tables have their points left out, since those are not read.
            for index in 0..<cases.count { checks[index].point = nil }
            let read = table.map { UnsafePointer<UInt64>($0) }
            kernel.pointee.verify_known(checks, read, cases.count, generator, workspace, outcomes)
            return true
        }
    }

    private func withChecks(
        _ cases: some RandomAccessCollection<SignatureCase>,
        _ body: (UnsafeMutablePointer<rg_p256_check>, UnsafeMutablePointer<UInt8>) -> Bool
    ) -> [UInt8]? {
        let points = UnsafeMutablePointer<UInt8>.allocate(capacity: 65 * cases.count)
        let checks = UnsafeMutablePointer<rg_p256_check>.allocate(capacity: cases.count)
        defer {
            points.deallocate()
            checks.deallocate()
        }
        for (index, check) in cases.enumerated() {
            let point = points + 65 * index
            point.update(from: check.point, count: check.point.count)
            (checks + index).initialize(to: rg_p256_check())
            checks[index].point = UnsafePointer(point)
            withUnsafeMutableBytes(of: &checks[index].r) { $0.copyBytes(from: check.r) }
            withUnsafeMutableBytes(of: &checks[index].s) { $0.copyBytes(from: check.s) }
            withUnsafeMutableBytes(of: &checks[index].digest) { $0.copyBytes(from: check.digest) }
        }
        var outcomes = [UInt8](repeating: Self.untouched, count: cases.count + Self.guardBytes)
        let isDone = outcomes.withUnsafeMutableBufferPointer { outcomes in
            outcomes.baseAddress.map { body(checks, $0) } ?? false
        }
        guard isDone, !outcomes[..<cases.count].contains(Self.untouched),
            outcomes[cases.count...].allSatisfy({ $0 == Self.untouched })
        else { return nil }
        return Array(outcomes[..<cases.count])
    }
}
