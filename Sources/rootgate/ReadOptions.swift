import Core

/// The names of the options that a command has read.
final class ReadOptions: Sendable {
    private let names = Lock<Set<String>>([])

    func insert(_ name: String) { names.withLock { _ = $0.insert(name) } }

    func contains(_ name: String) -> Bool { names.withLock { $0.contains(name) } }
}
