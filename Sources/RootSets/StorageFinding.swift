/// Something in the storage that is not what was written.
package struct StorageFinding: Sendable {
    package enum Kind: String, Sendable {
        /// An entry whose checksum does not fit.
        case entry
        /// Entries that are missing, too many, or older than the others.
        case count
        /// Keys in the wrong order.
        case order
        /// A record of the log that does not follow the one before.
        case chain
        /// The totals, which say what there is.
        case totals
        /// LMDB could not read on.
        case reading
    }

    package let kind: Kind
    /// Databases of which other entries may be missing or out of date.
    let distrusted: [DatabaseName]
    /// What is damaged, with its key.
    package let what: String
    /// What it means, and for whom.
    package let meaning: String

    package var line: String { "\(kind.rawValue): \(what): \(meaning)" }
}
