/// Tells somebody, on any thread, that a start goes on.
package struct StartExtension: Sendable {
    /// Nobody is told.
    package static let none = StartExtension { _, _ in }

    private let body: @Sendable (UInt64, String) -> Void

    /// `body` gets for how many seconds the start goes on at least, and what it does, for people.
    package init(_ body: @escaping @Sendable (_ seconds: UInt64, _ status: String) -> Void) { self.body = body }

    package func callAsFunction(_ seconds: UInt64, _ status: String) { body(seconds, status) }
}
