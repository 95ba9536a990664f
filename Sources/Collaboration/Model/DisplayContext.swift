/// How an item is shown with its attribution. Being shown in detail is a stronger signal of a person's interest.
public enum DisplayContext: String, Hashable, Sendable, Codable, CaseIterable {
    case summary, detail
}
