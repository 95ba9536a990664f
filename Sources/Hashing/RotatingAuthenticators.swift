/// The batch authenticators of some keys, for messages of one length. It follows the keys when they are replaced.
///
/// One value serves one thread at a time.
struct RotatingAuthenticators {
    private let keys: RotatingKeys
    private let length: Int
    private let hashing: BatchHashing
    private let wantsOther: Bool
    private var version: UInt64
    /// The present key's.
    private(set) var current: BatchAuthenticator
    /// The other key's; `nil` when there is none, or when it is not wanted.
    private(set) var other: BatchAuthenticator?

    /// `length`: the number of bytes of every message; `wantsOther`: whether the other key is used, too.
    init(_ keys: RotatingKeys, length: Int, hashing: BatchHashing, wantsOther: Bool) {
        let (pair, version) = keys.versioned
        self.keys = keys
        self.length = length
        self.hashing = hashing
        self.wantsOther = wantsOther
        self.version = version
        current = BatchAuthenticator(pair.current, length: length, hashing: hashing)
        if wantsOther, let key = pair.other {
            other = BatchAuthenticator(key, length: length, hashing: hashing)
        }
    }

    /// Takes the present keys, if they were replaced since the last call.
    mutating func follow() {
        guard keys.version != version else { return }
        self = RotatingAuthenticators(keys, length: length, hashing: hashing, wantsOther: wantsOther)
    }
}
