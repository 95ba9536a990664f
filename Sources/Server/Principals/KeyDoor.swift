/// Where a key is presented, by the operation that the audit names.
enum KeyDoor: String, Hashable, Sendable {
    case hello
    /// An operator's page.
    case page
}
