import Core
import Dispatch
import Foundation
import RootSets
import Synchronization

/// A temporary directory, removed with this object.
final class TemporaryDirectory {
    let path = NSTemporaryDirectory() + "/rootgate-bench-" + UUID().uuidString

    init() throws {
        try FileManager.default.createDirectory(atPath: path, withIntermediateDirectories: true)
    }

    deinit {
        try? FileManager.default.removeItem(atPath: path)
    }
}

/// The root hash and the collaboration of a number, without keeping a list of millions: a bijective mix of
/// 64-bit words stands for SHA-256, which would only make building slower.
enum Synthetic {
    static let rootsPerCollaboration = 5

    static func root(_ number: Int) -> Digest {
        var words: [UInt64] = []
        var state = UInt64(number)
        for _ in 0..<4 {
            state &+= 0x9e37_79b9_7f4a_7c15
            var z = state
            z = (z ^ (z >> 30)) &* 0xbf58_476d_1ce4_e5b9
            z = (z ^ (z >> 27)) &* 0x94d0_49bb_1331_11eb
            words.append(z ^ (z >> 31))
        }
        return words.withUnsafeBytes { Digest($0) } ?? .zero
    }

    static func collaboration(_ number: Int) throws -> CollaborationIdentifier {
        guard let identifier = CollaborationIdentifier("collaboration-\(number)") else {
            throw ServiceError(.internalFault, "an identifier is not valid")
        }
        return identifier
    }
}

extension RootSets {
    /// Applies mutations with many under way at once; waits until all are durable.
    ///
    /// Throws the first refusal.
    func applyAll(_ count: Int, _ mutation: (Int) throws -> Mutation) throws {
        let failure = FirstFailure()
        let window = DispatchSemaphore(value: 32_768)
        let group = DispatchGroup()
        for number in 0..<count {
            let next = try mutation(number)
            window.wait()
            group.enter()
            submit(next) { result in
                if case .failure(let error) = result { failure.note(error) }
                window.signal()
                group.leave()
            }
        }
        group.wait()
        if let error = failure.error { throw error }
    }
}

private final class FirstFailure: Sendable {
    private let first = Mutex<ServiceError?>(nil)
    func note(_ error: ServiceError) { first.withLock { $0 = $0 ?? error } }
    var error: ServiceError? { first.withLock { $0 } }
}

/// Root sets with `roots` synthetic roots, 5 a collaboration, added one root at a time in random order.
struct FilledStorage {
    let directory: TemporaryDirectory
    let sets: RootSets
    let roots: Int

    init(roots: Int) throws {
        directory = try TemporaryDirectory()
        sets = try RootSets(RootSets.Configuration(directory: directory.path))
        self.roots = roots
        let collaborations = roots / Synthetic.rootsPerCollaboration
        try sets.applyAll(collaborations) { number in
            Mutation(.createCollaboration(try Synthetic.collaboration(number), .challenge))
        }
        // A permutation without a table: steps of a number that has no factor in common with the count.
        var step = Int(Double(roots) * 0.618_033_988_749)
        while gcd(step, roots) != 1 { step += 1 }
        var place = 0
        try sets.applyAll(roots) { _ in
            defer { place = (place + step) % roots }
            return Mutation(
                .addRoots(try Synthetic.collaboration(place / Synthetic.rootsPerCollaboration), [Synthetic.root(place)])
            )
        }
    }

    private func gcd(_ a: Int, _ b: Int) -> Int { b == 0 ? a : gcd(b, a % b) }
}
