import CKernels
package import Core
package import Kernels

/// SHA-256 of many messages at once, with the kernels that are the quickest on this processor. Where no kernel is,
/// libcrypto hashes one message after the other.
package struct BatchHashing: Sendable {
    /// The functions of the plan's contenders; `nil` for libcrypto.
    private let functions: [Functions]
    private let plan: BatchPlan
    /// Of the kernels that are in use and, where it is, of libcrypto.
    package let rates: [KernelRate]
    /// Kernels that are not used because they failed their self-test, and what they did wrong.
    package let failures: [String]

    private struct Functions: @unchecked Sendable {
        // Sendable without the compiler's proof: points to constants.
        let kernel: UnsafePointer<rg_sha256_functions>?
    }

    /// The kernels that this process uses: its processor can run them, they passed their self-test, and they are the
    /// quickest for some size of batch.
    package static let standard = BatchHashing(KernelChoice.current.candidates(.hashing, with: .permitted))

    /// Tests and times these kernels before use, which takes a few milliseconds. They have functions for hashing, and
    /// the processor can run them. A single one does all the work; several, and libcrypto, are given what they are the
    /// quickest for.
    package init(_ kernels: [Kernel]) {
        var passed: [Kernel] = [], failures: [String] = []
        for kernel in kernels {
            guard let functions = kernel.sha256 else { continue }
            // A kernel that fails its test is not used; others or libcrypto replace it.
            if let failure = HashSelfTest.failure(of: functions) {
                failures.append("\(kernel.name): \(failure)")
            } else {
                passed.append(kernel)
            }
        }
        let withLibcrypto = passed.isEmpty || kernels.count > 1
        functions = passed.map { Functions(kernel: $0.sha256) } + (withLibcrypto ? [Functions(kernel: nil)] : [])
        plan = BatchHashing.measuredPlan(functions)
        rates = KernelRate.rates(.hashes, plan, names: passed.map(\.name) + [KernelRate.libcryptoName])
        self.failures = failures
    }

    /// Times how quickly nodes are hashed. Longer messages only have more blocks.
    private static func measuredPlan(_ functions: [Functions]) -> BatchPlan {
        let largest = BatchPlan.sizes.max() ?? 1
        let children = ScratchBuffer<UInt8>(repeating: 7, count: 64 * largest)
        let digests = ScratchBuffer<Digest>(repeating: .zero, count: largest)
        let contenders = functions.map { contender in
            BatchTimer.Contender(width: contender.kernel.map { Int($0.pointee.width) } ?? 1) { count in
                if let kernel = contender.kernel {
                    kernel.pointee.nodes(
                        children.baseAddress,
                        UnsafeMutableRawPointer(digests.baseAddress).assumingMemoryBound(to: UInt8.self), count)
                } else {
                    for index in 0..<count { digests[index] = SHA256.node(at: children.baseAddress + 64 * index) }
                }
            }
        }
        return BatchPlan(BatchTimer(repetitions: { 2 * largest / $0 }).times(of: contenders), capacity: largest)
    }

    /// The names of the kernels in use.
    package var kernelNames: [String] { rates.map(\.name).filter { $0 != KernelRate.libcryptoName } }

    /// Hashes `count` inner nodes. The 64 bytes of each node's children follow one another at `children`.
    package func nodes(at children: UnsafeRawPointer, count: Int, into digests: UnsafeMutablePointer<Digest>) {
        split(
            count,
            perform: { functions, range in
                functions.pointee.nodes(
                    (children + 64 * range.lowerBound).assumingMemoryBound(to: UInt8.self),
                    UnsafeMutableRawPointer(digests + range.lowerBound).assumingMemoryBound(to: UInt8.self), range.count
                )
            }, otherwise: { digests[$0] = SHA256.node(at: children + 64 * $0) })
    }

    /// Hashes messages that are all `length` bytes long.
    package func hash(
        _ messages: UnsafeBufferPointer<UnsafePointer<UInt8>?>, length: Int,
        into digests: UnsafeMutablePointer<Digest>
    ) {
        split(
            messages.count,
            perform: { functions, range in
                functions.pointee.messages(
                    messages.baseAddress.map { $0 + range.lowerBound }, length,
                    UnsafeMutableRawPointer(digests + range.lowerBound).assumingMemoryBound(to: UInt8.self), range.count
                )
            },
            otherwise: {
                digests[$0] = SHA256.hash(UnsafeRawBufferPointer(start: messages[$0], count: length))
            })
    }

    /// Splits a batch by the plan. Of a batch that is larger than what the plan decides for, all but a rest is given to
    /// what is the quickest for the largest.
    private func split(
        _ count: Int, perform: (UnsafePointer<rg_sha256_functions>, Range<Int>) -> Void, otherwise: (Int) -> Void
    ) {
        precondition(count >= 0, "the number of messages is negative")
        func run(_ contender: Int, _ range: Range<Int>) {
            guard !range.isEmpty else { return }
            if let kernel = functions[contender].kernel {
                perform(kernel, range)
            } else {
                for index in range { otherwise(index) }
            }
        }
        let bulk = plan[plan.capacity].first
        var start = count - count % plan.capacity
        let split = plan[count - start]
        // One call for both where it is the same contender.
        let end = start + split.count
        if split.first == bulk { start = 0 } else { run(bulk, 0..<start) }
        run(split.first, start..<end)
        run(split.rest, end..<count)
    }
}
