import COpenSSL
import Core
import Hashing
import Merkle

let hashBenchmarks = [
    Benchmark("sha256.node", "SHA-256 of 64 bytes, one after the other, one core") { scale in
        var block = [UInt8](repeating: 7, count: 64)
        let rounds = scale.alternate {
            scale.rate(items: 1000) {
                for _ in 0..<1000 {
                    let digest = block.withUnsafeBytes { $0.baseAddress.map { SHA256.node(at: $0) } ?? .zero }
                    digest.withUnsafeBytes { block[0] = $0[0] }
                }
            }
        } _: {
            var digest = [UInt8](repeating: 0, count: 32)
            return scale.rate(items: 1000) {
                for _ in 0..<1000 {
                    COpenSSL.SHA256(block, 64, &digest)
                    block[0] = digest[0]
                }
            }
        }
        return Measurement("sha256.node", unit: "hashes/s", rounds: rounds, against: "OpenSSL SHA256()")
    },
    Benchmark("root.proof", "root from a key and 3 siblings, one core") { scale in
        let leaf = SHA256.hash([UInt8](repeating: 4, count: 65))
        var siblings = (0..<3).flatMap { [UInt8](repeating: UInt8($0), count: 32) }
        let key = [UInt8](repeating: 4, count: 65)
        let rounds = scale.alternate {
            scale.rate(items: 1000) {
                for index in 0..<1000 {
                    let root = RootHash.climb(
                        from: key.withUnsafeBytes { SHA256.hash($0) }, index: UInt64(index & 7),
                        siblings: siblings.withUnsafeBytes { $0.baseAddress }, count: 3)
                    root.withUnsafeBytes { siblings[0] = $0[0] }
                }
            }
        } _: {
            // What one writes without thinking: one-shot hashes of concatenated arrays of fixed size.
            var local = leaf.bytes
            var pair = [UInt8](repeating: 0, count: 64)
            return scale.rate(items: 1000) {
                for index in 0..<1000 {
                    COpenSSL.SHA256(key, 65, &local)
                    for level in 0..<3 {
                        let isRight = index >> level & 1 == 1
                        pair.withUnsafeMutableBytes { pair in
                            for byte in 0..<32 {
                                pair[(isRight ? 32 : 0) + byte] = local[byte]
                                pair[(isRight ? 0 : 32) + byte] = siblings[32 * level + byte]
                            }
                        }
                        COpenSSL.SHA256(pair, 64, &local)
                    }
                    siblings[0] = local[0]
                }
            }
        }
        return Measurement("root.proof", unit: "roots/s", rounds: rounds, against: "OpenSSL SHA256(), 3 siblings")
    },
]
