/// Something that a person did with an item. The suggestion is computed from these signals.
public enum HighlightSignal: String, Hashable, Sendable, Codable, CaseIterable {
    case viewed
    case interacted
    /// The item was shown where the app shows what was shared.
    case shown
}
