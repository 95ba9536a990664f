import CKernels
package import Core
package import Kernels

/// SHA-256 of many messages at once, with the kernels that this processor can run. Without kernels libcrypto hashes one
/// message after the other.
package struct BatchHashing: Sendable {
    /// The wide kernel hashes sixteen messages in a step, the narrow one two. Either may be missing.
    private let wide: Kernel?
    private let narrow: Kernel?

    /// The kernels that this process uses: its processor can run them, and they passed their self-test.
    package static let standard = BatchHashing(with: .permitted)

    /// Tests the kernels before use, which takes a few milliseconds.
    package init(with features: ProcessorFeatures) {
        let kernels = Kernel.runnable(with: features).filter { kernel in
            // A kernel that fails its test is not used; libcrypto replaces it.
            kernel.sha256.map { HashSelfTest.failure(of: $0) == nil } ?? false
        }
        wide = kernels.first { ($0.sha256?.pointee.width ?? 0) > 2 }
        narrow = kernels.first { ($0.sha256?.pointee.width ?? 0) <= 2 }
    }

    /// The names of the kernels in use.
    package var kernelNames: [String] { [wide, narrow].compactMap { $0?.name } }

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

    /// Splits a batch between the kernels. The wide kernel hashes whole steps, and also a rest of more than half a
    /// step. The narrow kernel hashes a shorter rest. One step of the wide kernel takes as long as eight messages in
    /// the narrow one.
    private func split(
        _ count: Int, perform: (UnsafePointer<rg_sha256_functions>, Range<Int>) -> Void, otherwise: (Int) -> Void
    ) {
        precondition(count >= 0, "the number of messages is negative")
        var start = 0
        if let functions = wide?.sha256 {
            let rest = count % functions.pointee.width
            let taken = rest > functions.pointee.width / 2 || narrow == nil ? count : count - rest
            if taken > 0 { perform(functions, 0..<taken) }
            start = taken
        }
        assert(start <= count, "the wide kernel hashed more messages than there are")
        guard start < count else { return }
        if let functions = narrow?.sha256 {
            perform(functions, start..<count)
        } else {
            for index in start..<count { otherwise(index) }
        }
    }
}
