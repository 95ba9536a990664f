import CLMDB
import Core
import Foundation
import RootSets

let storageBenchmarks = [
    Benchmark(name: "membership.10k.b256") { scale in try membership("membership.10k.b256", 10_000, scale) },
    Benchmark(name: "membership.1m.b256") { scale in
        try membership("membership.1m.b256", scale.size(1_000_000, tiny: 5000), scale)
    },
    Benchmark(name: "membership.10m.b256") { scale in
        try membership("membership.10m.b256", scale.size(10_000_000, tiny: 5000), scale)
    },
    Benchmark(name: "roots.bytes") { scale in
        let roots = scale.size(10_000_000, tiny: 5000)
        let storage = try SharedStorage.filled(roots)
        let bytes = try storage.sets.read { snapshot throws(ServiceError) in try snapshot.statistics().fileBytes }
        return Measurement("roots.bytes", unit: "bytes/root", values: [Double(bytes) / Double(roots)])
    },
]

/// Filled storage is dear: benchmarks of the same size share it.
enum SharedStorage {
    nonisolated(unsafe) private static var last: FilledStorage?

    /// To be called from the main thread only.
    static func filled(_ roots: Int) throws -> FilledStorage {
        if let last, last.roots == roots { return last }
        last = nil
        let storage = try FilledStorage(roots: roots)
        last = storage
        return storage
    }
}

/// Batches of 256 look-ups of random roots, half of them present, on one thread, against one `mdb_get` each
/// of a database whose keys are collaboration number and root.
private func membership(_ name: String, _ roots: Int, _ scale: Scale) throws -> Measurement {
    let storage = try SharedStorage.filled(roots)
    let naive = try NaiveSets(roots: roots)
    var generator = SystemRandomNumberGenerator()
    // Prepared, as the bytes of a request would be: the look-up is measured, not the making of names.
    let queries = try (0..<65_536).map { _ in
        let number = Int.random(in: 0..<roots, using: &generator)
        let isPresent = Bool.random(using: &generator)
        return (
            name: try Synthetic.collaboration(number / Synthetic.rootsPerCollaboration).utf8,
            key: NaiveSets.key(number, isPresent: isPresent),
            root: Synthetic.root(isPresent ? number : number + roots), isPresent: isPresent
        )
    }
    var next = 0
    func batch() -> Range<Int> {
        defer { next = (next + 256) % queries.count }
        return next..<next + 256
    }
    let lookup = CollaborationLookup()
    // One area for all names, as in a request's body.
    let area = queries.flatMap(\.name)
    let bytes = UnsafeMutableRawBufferPointer.allocate(byteCount: area.count, alignment: 1)
    defer { bytes.deallocate() }
    bytes.copyBytes(from: area)
    var offset = 0
    let names = queries.map { query in
        defer { offset += query.name.count }
        return UnsafeRawBufferPointer(rebasing: bytes[offset..<offset + query.name.count])
    }
    let views = UnsafeMutableBufferPointer<CollaborationView?>.allocate(capacity: 256)
    views.initialize(repeating: nil)
    defer { views.deallocate() }
    let rounds = try scale.alternate {
        try scale.rate(items: 256) {
            let batch = batch()
            let right = try storage.sets.read { snapshot throws(ServiceError) in
                try names.withUnsafeBufferPointer { names throws(ServiceError) in
                    try lookup.find(UnsafeBufferPointer(rebasing: names[batch]), in: snapshot, into: views)
                }
                var right = 0
                for (index, query) in batch.enumerated() {
                    var isMember = false
                    if let view = views[index] { isMember = try snapshot.contains(queries[query].root, in: view) }
                    if isMember == queries[query].isPresent { right += 1 }
                }
                return right
            }
            precondition(right == 256, "a membership answer is wrong")
        }
    } _: {
        try scale.rate(items: 256) {
            let right = try naive.count(batch().map { (queries[$0].key, queries[$0].isPresent) })
            precondition(right == 256, "a baseline answer is wrong")
        }
    }
    return Measurement(name, unit: "look-ups/s", rounds: rounds, against: "naive mdb_get")
}

/// What one writes at first: one LMDB entry for every root, its key the collaboration's number and the root.
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

    init(roots: Int) throws {
        directory = try TemporaryDirectory()
        func check(_ code: CInt) throws {
            guard code == 0 else { throw ServiceError(.storageFailed, String(cString: mdb_strerror(code))) }
        }
        try check(mdb_env_create(&environment))
        try check(mdb_env_set_mapsize(environment, 16 << 30))
        try check(mdb_env_open(environment, directory.path, UInt32(MDB_NOSYNC), 0o600))
        let collaborations = roots / Synthetic.rootsPerCollaboration
        for start in stride(from: 0, to: collaborations, by: 100_000) {
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
