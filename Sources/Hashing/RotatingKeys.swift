import Core
import Synchronization

/// The keys of one purpose: the present one, which makes tags, and maybe another one, whose tags are genuine, too.
package struct KeyPair: Sendable {
    let current: MessageAuthenticator
    let other: MessageAuthenticator?

    package init(current: MessageAuthenticator, other: MessageAuthenticator? = nil) {
        self.current = current
        self.other = other
    }
}

/// The keys of one purpose, which can be replaced while other threads use them.
package final class RotatingKeys: Sendable {
    private let keys: Lock<KeyPair>
    /// How often the keys were replaced. It is changed while the lock is held.
    private let replacements = Atomic<UInt64>(0)

    package init(_ keys: KeyPair) {
        self.keys = Lock(keys)
    }

    /// Replaces the keys. A tag that is made or checked after this call uses the new ones.
    package func replace(_ keys: KeyPair) {
        self.keys.withLock {
            $0 = keys
            replacements.add(1, ordering: .releasing)
        }
    }

    /// The key that makes tags.
    package var current: MessageAuthenticator { keys.withLock { $0.current } }

    /// Whether the first bytes of the HMAC-SHA256 of `message` under one of the keys are `tag`. The time does not
    /// depend on where the bytes differ.
    package func isGenuine(_ message: UnsafeRawBufferPointer, tag: UnsafeRawBufferPointer) -> Bool {
        let keys = keys.withLock { $0 }
        if isGenuine(message, tag: tag, keys.current) { return true }
        return keys.other.map { isGenuine(message, tag: tag, $0) } ?? false
    }

    private func isGenuine(
        _ message: UnsafeRawBufferPointer, tag: UnsafeRawBufferPointer, _ key: MessageAuthenticator
    ) -> Bool {
        precondition(tag.count > 0 && tag.count <= Digest.byteCount, "a tag is empty or longer than its hash")
        return key.tag(of: message).withUnsafeBytes { expected in
            guard let expected = expected.baseAddress, let given = tag.baseAddress else { return false }
            return equalInConstantTime(given, expected, count: tag.count)
        }
    }

    /// How often the keys were replaced.
    var version: UInt64 { replacements.load(ordering: .acquiring) }

    /// The keys, with the version that they have.
    var versioned: (keys: KeyPair, version: UInt64) { keys.withLock { ($0, version) } }
}
