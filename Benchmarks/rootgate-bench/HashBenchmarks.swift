import COpenSSL
import Core
import Hashing
import Kernels
import Merkle
import Verification

let hashBenchmarks = [
    Benchmark("sha256.node", "SHA-256 of 64 bytes, 256 at a time, one core") { scale in
        nodes("sha256.node", scale, .standard)
    },
    Benchmark("root.proof", "root from a 65-byte key and 3 siblings, 256 at a time, one core") { scale in
        var siblings = [UInt8](repeating: 4, count: 96 * batch)
        let keys = [UInt8](repeating: 4, count: 65 * batch)
        let hasher = RootHasher(capacity: batch)
        let selection = Array(0..<batch)
        var roots = [Digest](repeating: .zero, count: batch)
        let rounds = scale.alternate {
            scale.rate(items: batch) {
                keys.withUnsafeBytes { keys in
                    siblings.withUnsafeBytes { siblings in
                        guard let path = siblings.baseAddress else { return }
                        let nothing = UnsafeRawBufferPointer(start: nil, count: 0)
                        let proofs = selection.map { index in
                            BorrowedProof(
                                collaboration: nothing,
                                publicKey: UnsafeRawBufferPointer(rebasing: keys[65 * index..<65 * index + 65]),
                                publicKeyIndex: UInt64(index & 7), inclusionHashes: path + 96 * index,
                                inclusionHashCount: 3)
                        }
                        proofs.withUnsafeBufferPointer { proofs in
                            selection.withUnsafeBufferPointer { selection in
                                roots.withUnsafeMutableBufferPointer { roots in
                                    hasher.compute(of: proofs, selection: selection, into: roots)
                                }
                            }
                        }
                    }
                }
                roots[0].withUnsafeBytes { siblings[0] = $0[0] }
            }
        } _: {
            // The simplest code: one-shot hashes of concatenated arrays of fixed size.
            var local = [UInt8](repeating: 0, count: 32)
            var pair = [UInt8](repeating: 0, count: 64)
            return scale.rate(items: batch) {
                for index in 0..<batch {
                    COpenSSL.SHA256(keys, 65, &local)
                    for level in 0..<3 {
                        let isRight = index >> level & 1 == 1
                        pair.withUnsafeMutableBytes { pair in
                            for byte in 0..<32 {
                                pair[(isRight ? 32 : 0) + byte] = local[byte]
                                pair[(isRight ? 0 : 32) + byte] = siblings[96 * index + 32 * level + byte]
                            }
                        }
                        COpenSSL.SHA256(pair, 64, &local)
                    }
                }
                siblings[0] = local[0]
            }
        }
        return Measurement("root.proof", unit: "roots/s", rounds: rounds, against: "OpenSSL SHA256(), 3 siblings")
    },
    Benchmark("challenge.issue", "challenges made for one request of 4,096, one core") { scale in
        let key = [UInt8](repeating: 7, count: 32)
        let book = ChallengeBook(keys: RotatingKeys(KeyPair(current: MessageAuthenticator(key: key))))
        let maker = book.makeTagMaker()
        let count = Limits.challengesPerRequestMax
        var bytes = [UInt8](repeating: 0, count: count * ChallengeBook.challengeBytes)
        let reference = try LibcryptoAuthenticator(key: key)
        let rounds = scale.alternate {
            scale.rate(items: count) {
                bytes.withUnsafeMutableBytes { bytes in
                    if let start = bytes.baseAddress { book.issue(count, to: start, with: maker) }
                }
            }
        } _: {
            scale.rate(items: count) {
                bytes.withUnsafeMutableBytes { bytes in
                    guard let start = bytes.baseAddress else { return }
                    for index in 0..<count { reference.writeTag(behind: start + 48 * index, length: 24) }
                }
            }
        }
        return Measurement("challenge.issue", unit: "challenges/s", rounds: rounds, against: "OpenSSL EVP_MAC")
    },
]

/// The same for each kernel that this machine can run, whatever a service would use.
let hashKernelBenchmarks = Kernel.runnable(with: .permitted).filter { $0.kind == .hashing }.map { kernel in
    Benchmark(
        "sha256.node.\(kernel.shortName)", "SHA-256 of 64 bytes, 256 at a time, one core, with \(kernel.name) alone"
    ) { scale in
        nodes("sha256.node.\(kernel.shortName)", scale, BatchHashing([kernel]))
    }
}

private let batch = 256

/// Batches of nodes on one thread.
private func nodes(_ name: String, _ scale: Scale, _ hashing: BatchHashing) -> Measurement {
    var children = [UInt8](repeating: 7, count: 64 * batch)
    var digests = [Digest](repeating: .zero, count: batch)
    let rounds = scale.alternate {
        scale.rate(items: batch) {
            children.withUnsafeBytes { children in
                digests.withUnsafeMutableBufferPointer { digests in
                    guard let start = children.baseAddress, let first = digests.baseAddress else { return }
                    hashing.nodes(at: start, count: batch, into: first)
                }
            }
            digests[0].withUnsafeBytes { children[0] = $0[0] }
        }
    } _: {
        // OpenSSL's quickest interface, the low-level one: several times as quick as SHA256().
        var digest = [UInt8](repeating: 0, count: 32)
        var context = SHA256_CTX()
        return scale.rate(items: batch) {
            for index in 0..<batch {
                children.withUnsafeBytes { children in
                    SHA256_Init(&context)
                    SHA256_Update(&context, children.baseAddress.map { $0 + 64 * index }, 64)
                    SHA256_Final(&digest, &context)
                }
            }
            children[0] = digest[0]
        }
    }
    return Measurement(name, unit: "hashes/s", rounds: rounds, against: "OpenSSL SHA256_Init/Update/Final")
}

/// HMAC-SHA256 with libcrypto's interface, one message after the other. The key is set once.
private final class LibcryptoAuthenticator {
    private let context: OpaquePointer
    private var tag = [UInt8](repeating: 0, count: 32)

    init(key: [UInt8]) throws {
        var name = Array("SHA256".utf8CString)
        let mac = EVP_MAC_fetch(nil, "HMAC", nil)
        defer { EVP_MAC_free(mac) }
        guard let context = EVP_MAC_CTX_new(mac) else { throw ServiceError(.internalFault, "libcrypto has no HMAC") }
        self.context = context
        let isSet = name.withUnsafeMutableBufferPointer { name in
            var parameters = [
                OSSL_PARAM_construct_utf8_string("digest", name.baseAddress, 0), OSSL_PARAM_construct_end(),
            ]
            return EVP_MAC_init(context, key, key.count, &parameters) == 1
        }
        guard isSet else { throw ServiceError(.internalFault, "libcrypto takes no key for HMAC") }
    }

    deinit { EVP_MAC_CTX_free(context) }

    /// Writes the first 24 bytes of the message's tag behind it.
    func writeTag(behind message: UnsafeMutableRawPointer, length: Int) {
        var count = 0
        let isDone =
            EVP_MAC_init(context, nil, 0, nil) == 1
            && EVP_MAC_update(context, message.assumingMemoryBound(to: UInt8.self), length) == 1
            && EVP_MAC_final(context, &tag, &count, tag.count) == 1
        precondition(isDone && count == tag.count, "libcrypto made no tag")
        UnsafeMutableRawBufferPointer(start: message + length, count: 24).copyBytes(from: tag.prefix(24))
    }
}
