/// The batch authenticators of some keys, for messages of one length. It follows the keys when they are replaced.
///
/// One value serves one thread at a time.
struct RotatingAuthenticators {
    private let keys: RotatingKeys
    private let length: Int
    private let hashing: BatchHashing
    private let wantsPrevious: Bool
    private var version: UInt64
    /// The present key's.
    private(set) var current: BatchAuthenticator
    /// That of the key before; `nil` when there is none, or when it is not wanted.
    private(set) var previous: BatchAuthenticator?

    /// `length`: the number of bytes of every message; `wantsPrevious`: whether the key before the present one is used.
    init(_ keys: RotatingKeys, length: Int, hashing: BatchHashing, wantsPrevious: Bool) {
        let (pair, version) = keys.versioned
        self.keys = keys
        self.length = length
        self.hashing = hashing
        self.wantsPrevious = wantsPrevious
        self.version = version
        current = BatchAuthenticator(pair.current, length: length, hashing: hashing)
        if wantsPrevious, let key = pair.previous {
            previous = BatchAuthenticator(key, length: length, hashing: hashing)
        }
    }

    /// Takes the present keys, if they were replaced since the last call.
    mutating func follow() {
        guard keys.version != version else { return }
        self = RotatingAuthenticators(keys, length: length, hashing: hashing, wantsPrevious: wantsPrevious)
    }
}
