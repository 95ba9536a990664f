import Core

/// How much longer an edit makes the records that it replaces.
///
/// Replacements get the room of removals, because they take rights away, too. So records must not become much longer on
/// a full disk: removals would find no page any more. An edit is judged as an addition
/// - when it makes a record longer by more than `Limits.recordGrowthFreeBytesMax`,
/// - when it removes nothing, and all such edits since there was room for additions have made records longer by a
///   quarter of the reserve.
struct RecordGrowth {
    /// By how many bytes all records become longer, and the one that does most. One that becomes shorter counts as 0.
    private(set) var bytes = 0
    private(set) var most = 0

    /// What a replacement of a value adds. `present`: its bytes now; 0 when there is none.
    mutating func add(_ value: [UInt8], insteadOf present: Int) {
        let growth = max(0, SealedValue.sealBytes + value.count - present)
        (bytes, most) = (bytes + growth, max(most, growth))
    }
}
