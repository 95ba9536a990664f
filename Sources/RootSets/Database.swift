/// The databases of the environment; see `BucketKey.swift` for what they hold.
enum DatabaseName: Int, CaseIterable, Sendable {
    case packed, large, log, mutations, records, meta

    /// The name in the file.
    var text: String { "\(self)" }
}

/// One database, as every transaction uses it.
struct Database: Sendable {
    let name: DatabaseName
    /// LMDB's number of the database.
    let handle: UInt32
    /// What makes a checksum depend on the database.
    private let seed: UInt64
    private let trust: DatabaseTrust

    init(_ name: DatabaseName, handle: UInt32, _ trust: DatabaseTrust) {
        self.name = name
        self.handle = handle
        self.trust = trust
        seed = Database.seed(of: name)
    }

    private static func seed(of name: DatabaseName) -> UInt64 {
        name.text.utf8.reduce(0) { $0 &* 0x100_0000_01b3 ^ UInt64($1) }
    }

    /// What makes a checksum depend on the database and the key.
    static func seed(of key: UnsafeRawBufferPointer, in name: DatabaseName) -> UInt64 {
        Checksum.of(key, seed: seed(of: name))
    }

    /// What makes a checksum depend on the database and the key.
    @inline(__always)
    func seed(of key: UnsafeRawBufferPointer) -> UInt64 { Checksum.of(key, seed: seed) }

    /// Waits until the check of the start has left the database. Throws `damaged` when entries of it are missing or out
    /// of date. To be called before anything is searched: what is not found may be missing.
    @inline(__always)
    func checkTrust() throws(StorageFailure) { try trust.check(name) }

    /// Reads a value and checks that it is what was written at `key`. Throws `damaged` when it is not.
    func open(_ value: UnsafeRawBufferPointer, at key: UnsafeRawBufferPointer) throws(StorageFailure) -> SealedValue {
        guard let sealed = genuine(value, at: key) else { throw damage(at: key) }
        return sealed
    }

    /// Reads a value; `nil` when it is not what was written at `key`.
    func genuine(_ value: UnsafeRawBufferPointer, at key: UnsafeRawBufferPointer) -> SealedValue? {
        guard let sealed = SealedValue(value), sealed.isGenuine(seed: seed(of: key)) else { return nil }
        return sealed
    }

    /// Notes that the value at `key` is not what was written. Returns the failure, which tells a peer no key.
    func damage(at key: UnsafeRawBufferPointer) -> StorageFailure {
        // A page that can't be read is seen as zeros.
        if let fault = trust.fault ?? trust.cut { return fault }
        trust.health.report(.damaged, "\(shown(key)) is not what was written")
        return .damaged("an entry of the database \(name) is not what was written")
    }

    /// The entry at `key`, for people: what it is, and its key.
    func shown(_ key: UnsafeRawBufferPointer) -> String {
        let hexadecimal = Array(key.prefix(64)).hexadecimal + (key.count > 64 ? "..." : "")
        switch name {
        case .packed: return "the bucket of collaborations up to hash \(hexadecimal)"
        case .large:
            let identifier = String(decoding: key.prefix { $0 > BucketKey.last }, as: UTF8.self)
            return "a bucket of roots of \(identifier) (key \(hexadecimal))"
        case .log: return "change \(key.reduce(0 as UInt64) { $0 << 8 | UInt64($1) }) of the log"
        case .mutations: return "the identifier \(hexadecimal) of a change"
        case .records: return "the record with key \(hexadecimal)"
        case .meta: return "the storage's \(String(decoding: key, as: UTF8.self))"
        }
    }
}
