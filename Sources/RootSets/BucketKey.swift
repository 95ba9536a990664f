import Core

// The six databases of the environment. Integers are little-endian unless stated otherwise. Each value begins with a
// seal: the sequence of the mutation that wrote it, and a checksum; see `SealedValue`.
//
// `packed`: one record for each collaboration, with its policy and its number of roots. A small collaboration's record
// also holds its roots. Records with neighbouring hashes (`NameHash`) share a bucket of one page. So one look-up with
// few cache misses finds policy and set, and a root takes little more than its 32 bytes.
//
//     key    bound: the highest hash that belongs into the bucket (8 bytes, native: MDB_INTEGERKEY)
//     value  see `PackedBucket`
//
// `large`: the roots of collaborations that are too large for a packed record, in sorted buckets:
//
//     key of the last bucket      identifier 01
//     key of any other bucket     identifier 00 bound (8 bytes, big-endian)
//     value                       roots in ascending order
//
// A bucket with a bound holds the roots whose first eight bytes are <= its bound and > the bound before. The last
// bucket holds the rest. Identifiers have no control bytes. So the buckets of one collaboration are adjacent, bounds
// ascending, with the last bucket last. The first key at or after (identifier 00 prefix) is the bucket for roots with
// that prefix.
//
// `log`: the change log. Key: sequence, big-endian. Value: see `LogRecord`.
// `records`: what the layers above keep; see `Applier+Records.swift`.
// `mutations`: mutation identifier (16 bytes) -> sequence (8 bytes), for each record of the log.
// `meta`: "format" -> 4 bytes, "hash key" -> 16 bytes, "totals" -> `Totals`, "sets" -> `SetsVersion`, 8 bytes. In a
// storage that shares a log: "shared" -> `SharedPlace`. While the format is upgraded: "upgrade" ->
// `StorageUpgrade.Progress`. The keys of `ListReserve` keep pages, or ask readers to end.

enum BucketKey {
    static let bounded: UInt8 = 0
    static let last: UInt8 = 1
    static let capacity = Limits.collaborationBytesMax + 9
}
