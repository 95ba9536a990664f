import Core
import Foundation
import RootSets
import Transport

/// What a service of a cluster tells the others of itself: the value of its key in etcd, which ends with its lease.
package struct GateRecord: Codable, Equatable, Sendable {
    /// The number of the last segment that it has applied.
    package var segment: UInt64
    /// The sequence of the last change in it.
    package var sequence: UInt64
    /// The digest of what it holds behind that segment, in hex.
    package var contents: String?
    /// The number of the last checkpoint that it has passed, and the digest of what it held there, in hex.
    package var checkpoint: UInt64?
    package var digest: String?
    /// Where others get snapshots of its storage.
    package var address: String?
    /// The number of the last segment that is in the snapshot which it gives to others now: they need what follows.
    package var snapshot: UInt64?
    /// The names of the generations of the secret that it accepts, the present one first.
    package var secrets: [String]?
    /// The hash of the first segment of the log that it has applied, in hex: another one is of another cluster.
    package var founding: String?
    /// For how many milliseconds without news of the log it answers what others may have changed.
    package var staleness: UInt64?

    init(
        _ progress: SharedProgress, address: Endpoint? = nil, snapshot: UInt64? = nil, secrets: [String]? = nil,
        staleness: UInt64? = nil
    ) {
        founding = progress.founding.map { "\($0)" }
        self.staleness = staleness
        self.address = address?.description
        (self.snapshot, self.secrets) = (snapshot, secrets)
        (segment, sequence) = (progress.segment, progress.sequence)
        contents = progress.digest.map { "\($0)" }
        checkpoint = progress.checkpoint?.segment
        digest = progress.checkpoint.map { "\($0.digest)" }
    }

    init?(_ bytes: [UInt8]) {
        guard bytes.count <= Limits.gateRecordBytesMax,
            let record = try? JSONDecoder().decode(GateRecord.self, from: Data(bytes))
        else { return nil }
        self = record
        // What no service tells is left out. What others wait for is kept.
        if let names = secrets, names.count > Limits.gateSecretsMax || !names.allSatisfy(GateRecord.isName) {
            secrets = nil
        }
        if let text = founding, text.utf8.count != 2 * Digest.byteCount || text != text.escapingControls {
            founding = nil
        }
        if let text = address, text.utf8.count > Limits.gateAddressBytesMax || text != text.escapingControls {
            address = nil
        }
    }

    private static func isName(_ text: String) -> Bool {
        text.utf8.count <= Limits.gateSecretNameBytesMax && text.utf8.allSatisfy { (0x21...0x7e).contains($0) }
    }

    var bytes: [UInt8] {
        let encoder = JSONEncoder()
        encoder.outputFormatting = .sortedKeys
        return (try? Array(encoder.encode(self))) ?? []
    }

    /// How people are told of the service.
    package var name: String { address ?? "a service without an address" }

    /// Whether two services have storages of different clusters, as far as they tell.
    func isStranger(to other: GateRecord) -> Bool {
        guard let founding, let others = other.founding else { return false }
        return founding != others
    }

    /// Whether nothing is answered by this service that a change refuses, or will be: it has applied the change, or
    /// can't answer without it. `milliseconds`: for how long the change has been in the log at least.
    func has(_ sequence: UInt64, inLogFor milliseconds: UInt64) -> Bool {
        if self.sequence >= sequence { return true }
        guard let staleness, milliseconds >= Limits.clusterLeaseMarginMilliseconds else { return false }
        return milliseconds - Limits.clusterLeaseMarginMilliseconds >= staleness
    }

    /// Whether one of two services takes what the other one authenticates for forged.
    func hasForeignSecret(to other: GateRecord) -> Bool {
        guard let own = secrets, let others = other.secrets, let used = own.first, let usedThere = others.first
        else { return false }
        return !own.contains(usedThere) || !others.contains(used)
    }

    /// Whether most of the others that have passed the same checkpoint agree with each other, and not with this one.
    func isOutvoted(by others: [GateRecord]) -> Bool {
        let digests = others.filter { $0.checkpoint != nil && $0.checkpoint == checkpoint }.compactMap(\.digest)
        guard let digest, !digests.contains(digest) else { return false }
        let counts = Dictionary(digests.map { ($0, 1) }, uniquingKeysWith: +)
        return counts.values.contains { $0 >= 2 && 2 * $0 > digests.count }
    }
}
