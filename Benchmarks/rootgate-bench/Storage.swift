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

/// The root hash and the collaboration of a number. They are computed, so that no list of millions is kept; a
/// bijective mix of 64-bit words replaces SHA-256, which would only make set-up slower.
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
    /// Applies mutations with many under way at once; waits until all are durable. `progress` gets the share that was
    /// submitted, from 0 to 1, now and then.
    ///
    /// Throws the first refusal, and what `progress` and `mutation` throw.
    func applyAll(
        _ count: Int, progress: (Double) throws -> Void = { _ in }, _ mutation: (Int) throws -> Mutation
    ) throws {
        let failure = FirstFailure()
        let window = DispatchSemaphore(value: 32_768)
        let group = DispatchGroup()
        // What was submitted is finished before an error ends it: it uses the sets.
        defer { group.wait() }
        for number in 0..<count {
            if number % 16_384 == 0 { try progress(Double(number) / Double(count)) }
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

    /// Throws `SetUpTooLong`, and what the storage throws.
    init(roots: Int, _ scale: Scale) throws {
        directory = try TemporaryDirectory()
        sets = try RootSets(RootSets.Configuration(directory: directory.path))
        self.roots = roots
        let collaborations = roots / Synthetic.rootsPerCollaboration
        let what = "adding \(grouped(roots)) roots"
        try sets.applyAll(collaborations, progress: { try scale.settingUp(what, 0.15 * $0) }) { number in
            Mutation(.createCollaboration(try Synthetic.collaboration(number), .challenge))
        }
        // A permutation without a table: steps of a number that has no factor in common with the count.
        var step = Int(Double(roots) * 0.618_033_988_749)
        while gcd(step, roots) != 1 { step += 1 }
        var place = 0
        try sets.applyAll(roots, progress: { try scale.settingUp(what, 0.15 + 0.7 * $0) }) { _ in
            defer { place = (place + step) % roots }
            return Mutation(
                .addRoots(try Synthetic.collaboration(place / Synthetic.rootsPerCollaboration), [Synthetic.root(place)])
            )
        }
    }

    private func gcd(_ a: Int, _ b: Int) -> Int { b == 0 ? a : gcd(b, a % b) }
}
