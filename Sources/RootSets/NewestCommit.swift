import Synchronization

/// LMDB's number of the newest commit that a process has acknowledged, or found when it opened the storage. It stays
/// when the storage is opened again: a file that has become older meanwhile is noticed.
final class NewestCommit: Sendable {
    private let value = Atomic<Int>(0)

    @inline(__always)
    var number: Int { value.load(ordering: .acquiring) }

    /// The number never becomes smaller.
    func note(_ number: Int) { value.max(number, ordering: .releasing) }
}
