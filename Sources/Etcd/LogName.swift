/// The name of a log, which different clusters in one etcd have different ones of: 1 to 64 small letters, digits and
/// hyphens. So no key of one log lies among those of another.
package struct LogName: Hashable, Sendable, CustomStringConvertible {
    package let text: String

    /// `nil` unless `text` is a name.
    package init?(_ text: String) {
        let bytes = Set("abcdefghijklmnopqrstuvwxyz0123456789-".utf8)
        guard (1...64).contains(text.utf8.count), text.utf8.allSatisfy({ bytes.contains($0) }) else { return nil }
        self.text = text
    }

    package var description: String { text }
}
