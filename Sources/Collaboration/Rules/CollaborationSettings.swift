/// What an operator decides about the collaboration layer.
package struct CollaborationSettings: Hashable, Sendable {
    /// The beginning of universal links, as `https://example.com/c`; `nil`: no collaboration can be started.
    package var linkBase: String?
    /// How long notices are kept.
    package var noticeSeconds: Double = 30 * 24 * 3600
    /// How many posts of a collaboration are kept at least. Older ones are deleted at some later post.
    package var noticeCount = 1000

    package init() {}
}
