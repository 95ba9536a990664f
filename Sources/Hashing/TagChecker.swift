import Core

/// Checks the tags of many messages at once. Each message has the same length, and its tag follows it.
///
/// A tag is genuine under the present key or under the other one. Only messages whose tag the present key did not make
/// are hashed again. One object serves one thread at a time.
package final class TagChecker {
    /// The most messages in one call.
    package static let capacity = BatchAuthenticator.capacity

    private let length: Int
    private let tagBytes: Int
    private var authenticators: RotatingAuthenticators
    private let results = ScratchBuffer<Bool>(repeating: false, count: TagChecker.capacity)
    /// The messages that are hashed again.
    private let failed = ScratchBuffer<Int>(repeating: 0, count: TagChecker.capacity)

    /// `length`: the number of bytes of every message; `tagBytes`: those of the tag behind it, at most 32.
    package init(_ keys: RotatingKeys, length: Int, tagBytes: Int, hashing: BatchHashing = .standard) {
        precondition(tagBytes > 0 && tagBytes <= Digest.byteCount, "a tag is empty or longer than its hash")
        self.length = length
        self.tagBytes = tagBytes
        authenticators = RotatingAuthenticators(keys, length: length, hashing: hashing, wantsOther: true)
    }

    /// Tells of each of `count` messages, at most `capacity`, whether its tag is genuine. `message` returns the address
    /// of a message. The result is valid until the next call.
    package func check(_ count: Int, message: (Int) -> UnsafeRawPointer) -> UnsafeBufferPointer<Bool> {
        authenticators.follow()
        let tags = authenticators.current.tags(of: count, message: message)
        var failedCount = 0
        for place in 0..<count {
            let isGenuine = isGenuine(message(place), tags[place])
            results[place] = isGenuine
            failed[failedCount] = place
            failedCount += isGenuine ? 0 : 1
        }
        if failedCount > 0, let other = authenticators.other {
            let tags = other.tags(of: failedCount) { message(failed[$0]) }
            for index in 0..<failedCount {
                results[failed[index]] = isGenuine(message(failed[index]), tags[index])
            }
        }
        return UnsafeBufferPointer(results.prefix(count))
    }

    private func isGenuine(_ message: UnsafeRawPointer, _ tag: Digest) -> Bool {
        tag.withUnsafeBytes { tag in
            guard let expected = tag.baseAddress else { return false }
            return equalInConstantTime(message + length, expected, count: tagBytes)
        }
    }
}
