import Core

/// Makes the tags of many messages at once, under the present key. Each message has the same length, and its tag is
/// written behind it, where `TagChecker` finds it.
///
/// One object serves one thread at a time.
package final class TagMaker {
    /// The most messages in one call.
    package static let capacity = BatchAuthenticator.capacity

    private let length: Int
    private let tagBytes: Int
    private var authenticators: RotatingAuthenticators

    /// `length`: the number of bytes of every message; `tagBytes`: those of the tag behind it, at most 32.
    package init(_ keys: RotatingKeys, length: Int, tagBytes: Int, hashing: BatchHashing = .standard) {
        precondition(tagBytes > 0 && tagBytes <= Digest.byteCount, "a tag is empty or longer than its hash")
        self.length = length
        self.tagBytes = tagBytes
        authenticators = RotatingAuthenticators(keys, length: length, hashing: hashing, wantsOther: false)
    }

    /// Writes the tag of each of `count` messages, at most `capacity`, behind the message. `message` returns the
    /// address of a message, with room for its tag.
    package func tag(_ count: Int, message: (Int) -> UnsafeMutableRawPointer) {
        authenticators.follow()
        let tags = authenticators.current.tags(of: count) { UnsafeRawPointer(message($0)) }
        for place in 0..<count {
            tags[place].withUnsafeBytes {
                UnsafeMutableRawBufferPointer(start: message(place) + length, count: tagBytes)
                    .copyMemory(from: UnsafeRawBufferPointer(rebasing: $0.prefix(tagBytes)))
            }
        }
    }
}
