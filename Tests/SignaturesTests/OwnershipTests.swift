import COpenSSL
import Core
import Foundation
@testable import Signatures
import Synchronization
import Testing

/// libcrypto's memory, counted, with an allocation that fails on demand. For processes that do nothing else.
private enum CountedMemory {
    /// Blocks that are allocated and not freed.
    static let blocks = Atomic<Int>(0)
    /// Allocations that succeed before one fails; negative when none is to fail.
    static let allowed = Atomic<Int>(-1)
    /// Whether one has failed.
    static let hasFailed = Atomic<Bool>(false)

    /// Whether libcrypto uses this memory from now on; false when it has allocated before.
    static func install() -> Bool {
        CRYPTO_set_mem_functions(
            { size, _, _ in CountedMemory.allocate { malloc(size) } },
            { old, size, _, _ in
                guard let old else { return CountedMemory.allocate { malloc(size) } }
                guard size > 0 else {
                    CountedMemory.release(old)
                    return nil
                }
                // A block stays a block.
                return CountedMemory.mayAllocate() ? realloc(old, size) : nil
            },
            { address, _, _ in CountedMemory.release(address) }) == 1
    }

    private static func mayAllocate() -> Bool {
        let left = allowed.load(ordering: .relaxed)
        if left > 0 { allowed.store(left - 1, ordering: .relaxed) }
        // Only one allocation fails, so that cleaning up can allocate.
        if left == 0 {
            hasFailed.store(true, ordering: .relaxed)
            allowed.store(-1, ordering: .relaxed)
        }
        return left != 0
    }

    private static func allocate(_ body: () -> UnsafeMutableRawPointer?) -> UnsafeMutableRawPointer? {
        guard mayAllocate(), let address = body() else { return nil }
        blocks.add(1, ordering: .relaxed)
        return address
    }

    private static func release(_ address: UnsafeMutableRawPointer?) {
        guard let address else { return }
        blocks.subtract(1, ordering: .relaxed)
        free(address)
    }

    /// Lets each allocation of `make` fail in turn, `repeats` times each, until `make` gets by without a failure.
    /// Returns how many fail, and the most blocks that stayed after the repeats of one.
    static func failEachAllocation(of make: () throws -> Void, repeats: Int) -> (failures: Int, blocks: Int) {
        var most = 0
        for number in 0..<10_000 {
            let before = blocks.load(ordering: .relaxed)
            hasFailed.store(false, ordering: .relaxed)
            for _ in 0..<repeats {
                allowed.store(number, ordering: .relaxed)
                try? make()
                allowed.store(-1, ordering: .relaxed)
                ERR_clear_error()
            }
            guard hasFailed.load(ordering: .relaxed) else { return (number, most) }
            most = max(most, blocks.load(ordering: .relaxed) - before)
        }
        return (10_000, most)
    }
}

@Suite("Owners of libcrypto's objects")
struct OwnershipTests {
    /// How often each failure is repeated, and so the number of blocks that a leak of one block adds up to. The error
    /// queue keeps fewer for its next errors.
    private static let repeats = 100

    @Test("An owner whose init fails at any of its allocations frees what it has allocated before")
    func failingInit() async {
        await #expect(processExitsWith: .success) {
            #expect(CountedMemory.install())
            let seed = [UInt8](repeating: 7, count: 48)
            let makers: [(name: String, least: Int, make: () throws -> Void)] = [
                ("an integer", 2, { _ = try Integer(seed, isSecret: true) }),
                ("a context", 1, { _ = try IntegerContext() }),
                ("a signature", 3, { _ = try SignatureValue() }),
                ("a key", 5, { _ = try CurveKey() }),
                ("a verifier", 9, { _ = try LibcryptoVerifier() }),
                ("a library", 9, { _ = try CurveLibrary() }),
                ("a private key", 9, { _ = try PrivateKey(seed: seed) }),
            ]
            for (name, least, make) in makers {
                // libcrypto makes what it keeps for good, with the first success and with the first errors.
                try make()
                _ = CountedMemory.failEachAllocation(of: make, repeats: 1)
                let found = CountedMemory.failEachAllocation(of: make, repeats: OwnershipTests.repeats)
                #expect(found.failures >= least, "\(name): \(found.failures) allocations")
                #expect(found.blocks < OwnershipTests.repeats / 2, "\(name): \(found.blocks) blocks stayed")
            }
        }
    }

    @Test("Owners free everything, and a signature goes from one to the other")
    func freeing() async {
        await #expect(processExitsWith: .success) {
            #expect(CountedMemory.install())
            let digest = Digest.zero
            func use() throws {
                let key = try PrivateKey(seed: [UInt8](repeating: 9, count: 48))
                let scalars = try key.sign(digest)
                let outcome = try key.uncompressedPoint.withUnsafeBytes { point in
                    try LibcryptoVerifier().verify(SignatureCheck(point: point, scalars: scalars, digest: digest))
                }
                #expect(outcome == .valid)
            }
            try use()
            let before = CountedMemory.blocks.load(ordering: .relaxed)
            for _ in 0..<50 { try use() }
            #expect(CountedMemory.blocks.load(ordering: .relaxed) - before < 10)
        }
    }

    @Test(
        "A reader of known keys that begins a batch inside another, or ends one that it did not begin, ends the process"
    )
    func readerTurns() async {
        await #expect(processExitsWith: .failure) {
            let reader = KnownKeys.Reader()
            reader.begin()
            reader.begin()
        }
        await #expect(processExitsWith: .failure) {
            KnownKeys.Reader().end()
        }
    }
}
