import CLMDB
import Core
import Foundation
import RootSets

let storageBenchmarks = [
    Benchmark("membership.10k.b256", "membership at 10 k roots, batches of 256, one core") { scale in
        try membership("membership.10k.b256", 10_000, scale)
    },
    Benchmark("membership.1m.b256", "membership at 1 M roots, batches of 256, one core", seconds: 16, setUpShare: 0.7) {
        scale in
        try membership("membership.1m.b256", scale.size(1_000_000, tiny: 5000), scale)
    },
    Benchmark(
        "membership.10m.b256", "membership at 10 M roots, batches of 256, one core", seconds: 160, setUpShare: 0.95
    ) { scale in
        try membership("membership.10m.b256", scale.size(10_000_000, tiny: 5000), scale)
    },
    Benchmark("roots.bytes", "file bytes a root at 10 M, added in random order, log included") { scale in
        let roots = scale.size(10_000_000, tiny: 5000)
        let storage = try SharedStorage.filled(roots, scale)
        let bytes = try storage.sets.read { snapshot throws(ServiceError) in try snapshot.statistics().fileBytes }
        return Measurement("roots.bytes", unit: "bytes/root", values: [Double(bytes) / Double(roots)])
    },
]

/// Filling storage takes minutes, so benchmarks of the same size share the filled storage.
enum SharedStorage {
    nonisolated(unsafe) private static var last: FilledStorage?

    static func forget() { last = nil }

    /// To be called from the main thread only.
    static func filled(_ roots: Int, _ scale: Scale) throws -> FilledStorage {
        if let last, last.roots == roots { return last }
        last = nil
        let storage = try FilledStorage(roots: roots, scale)
        last = storage
        return storage
    }
}

/// Batches of 256 look-ups of random roots, half of them present, on one thread, against one `mdb_get` each
/// of a database whose keys are collaboration number and root.
private func membership(_ name: String, _ roots: Int, _ scale: Scale) throws -> Measurement {
    let storage = try SharedStorage.filled(roots, scale)
    let naive = try NaiveSets(roots: roots, scale)
    let probe = try MembershipProbe(roots: roots)
    let keys = probe.queries.map { NaiveSets.key($0.number, isPresent: $0.isPresent) }
    let rounds = try scale.alternate {
        try probe.rate(in: storage.sets, scale)
    } _: {
        try scale.rate(items: MembershipProbe.batch) {
            let right = try naive.count(probe.nextBatch().map { (keys[$0], probe.queries[$0].isPresent) })
            precondition(right == MembershipProbe.batch, "a baseline answer is wrong")
        }
    }
    return Measurement(name, unit: "look-ups/s", rounds: rounds, against: "naive mdb_get")
}

/// Look-ups of random synthetic roots, half of them present. The names are prepared as the bytes of a request would be,
/// so that only the look-up is measured.
final class MembershipProbe {
    static let batch = 256

    struct Query {
        let number: Int
        let isPresent: Bool
        let root: Digest
    }

    let queries: [Query]
    private var next = 0
    private let lookup = CollaborationLookup()
    /// One area for all names, as in a request's body.
    private let area: ScratchBuffer<UInt8>
    private let names: [UnsafeRawBufferPointer]
    private let views = ScratchBuffer<CollaborationView?>(repeating: nil, count: MembershipProbe.batch)

    init(roots: Int) throws {
        var generator = SystemRandomNumberGenerator()
        queries = (0..<65_536).map { _ in
            let number = Int.random(in: 0..<roots, using: &generator)
            let isPresent = Bool.random(using: &generator)
            return Query(
                number: number, isPresent: isPresent, root: Synthetic.root(isPresent ? number : number + roots))
        }
        let texts = try queries.map { try Synthetic.collaboration($0.number / Synthetic.rootsPerCollaboration).utf8 }
        area = ScratchBuffer(uninitializedCount: texts.reduce(0) { $0 + $1.count })
        let bytes = area.bytes
        bytes.copyBytes(from: texts.joined())
        var offset = 0
        names = texts.map { text in
            defer { offset += text.count }
            return UnsafeRawBufferPointer(rebasing: bytes[offset..<offset + text.count])
        }
    }

    func nextBatch() -> Range<Int> {
        defer { next = (next + MembershipProbe.batch) % queries.count }
        return next..<next + MembershipProbe.batch
    }

    /// Look-ups per second on this thread.
    func rate(in sets: RootSets, _ scale: Scale) throws -> Double {
        try scale.rate(items: MembershipProbe.batch) {
            let batch = nextBatch()
            let right = try sets.read { snapshot throws(ServiceError) in
                try names.withUnsafeBufferPointer { names throws(ServiceError) in
                    try lookup.find(UnsafeBufferPointer(rebasing: names[batch]), in: snapshot, into: views.elements)
                }
                var right = 0
                for (index, query) in batch.enumerated() {
                    var isMember = false
                    if let view = views[index] { isMember = try snapshot.contains(queries[query].root, in: view) }
                    if isMember == queries[query].isPresent { right += 1 }
                }
                return right
            }
            precondition(right == MembershipProbe.batch, "a membership answer is wrong")
        }
    }
}

/// The simplest storage: one LMDB entry for every root, whose key is the collaboration's number and the root.
private final class NaiveSets {
    private var environment: OpaquePointer?
    private var transaction: OpaquePointer?
    private var database: MDB_dbi = 0
    private let directory: TemporaryDirectory

    static func key(_ number: Int, isPresent: Bool) -> [UInt8] {
        let collaboration = UInt64(number / Synthetic.rootsPerCollaboration).bigEndian
        var key = withUnsafeBytes(of: collaboration) { Array($0) } + Synthetic.root(number).bytes
        if !isPresent { key[39] ^= 0xff }
        return key
    }

    init(roots: Int, _ scale: Scale) throws {
        directory = try TemporaryDirectory()
        func check(_ code: CInt) throws {
            guard code == 0 else { throw ServiceError(.storageFailed, String(cString: mdb_strerror(code))) }
        }
        try check(mdb_env_create(&environment))
        try check(mdb_env_set_mapsize(environment, 16 << 30))
        try check(mdb_env_open(environment, directory.path, UInt32(MDB_NOSYNC), 0o600))
        let collaborations = roots / Synthetic.rootsPerCollaboration
        for start in stride(from: 0, to: collaborations, by: 100_000) {
            try scale.settingUp("adding roots to the baseline", 0.85 + 0.15 * Double(start) / Double(collaborations))
            var write: OpaquePointer?
            try check(mdb_txn_begin(environment, nil, 0, &write))
            if start == 0 { try check(mdb_dbi_open(write, nil, 0, &database)) }
            for collaboration in start..<min(collaborations, start + 100_000) {
                let first = collaboration * Synthetic.rootsPerCollaboration
                let keys = (first..<first + Synthetic.rootsPerCollaboration)
                    .map { NaiveSets.key($0, isPresent: true) }
                    .sorted { $0.lexicographicallyPrecedes($1) }
                for var key in keys {
                    var value = MDB_val(mv_size: 0, mv_data: nil)
                    let code = key.withUnsafeMutableBytes { bytes in
                        var key = MDB_val(mv_size: bytes.count, mv_data: bytes.baseAddress)
                        return mdb_put(write, database, &key, &value, UInt32(MDB_APPEND))
                    }
                    try check(code)
                }
            }
            try check(mdb_txn_commit(write))
        }
        try check(mdb_txn_begin(environment, nil, UInt32(MDB_RDONLY), &transaction))
        mdb_txn_reset(transaction)
    }

    deinit {
        mdb_txn_abort(transaction)
        mdb_env_close(environment)
    }

    /// How many of the keys are there if and only if they should be.
    func count(_ queries: [(key: [UInt8], isPresent: Bool)]) throws -> Int {
        mdb_txn_renew(transaction)
        defer { mdb_txn_reset(transaction) }
        var right = 0
        for query in queries {
            var value = MDB_val()
            let code = query.key.withUnsafeBytes { bytes in
                var key = MDB_val(mv_size: bytes.count, mv_data: UnsafeMutableRawPointer(mutating: bytes.baseAddress))
                return mdb_get(transaction, database, &key, &value)
            }
            if (code == 0) == query.isPresent { right += 1 }
        }
        return right
    }
}
