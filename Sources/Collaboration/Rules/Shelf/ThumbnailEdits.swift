import Core

/// Changes of the stored thumbnails that belong to one edit. A thumbnail is stored once, by its SHA-256, for all shares
/// of all people. It is removed when the last share that has it gets another one.
///
/// `w hash` is written with every change of the shares that have a thumbnail. An edit that adds a share requires that
/// the record exists. One that removes a share requires the version that it has read. So no thumbnail is
/// removed that a share has just taken, and of two shares that leave it at once the second sees that it is the last.
struct ThumbnailEdits {
    private(set) var records: [RecordEdit] = []
    /// Changes of the parts' bytes, by the first byte of the hashes.
    private var bytes: [UInt8: (hash: Digest, change: Int)] = [:]
    /// Keys of the shares that leave a thumbnail.
    private var leaving: [Digest: [[UInt8]]] = [:]

    /// The share at `key` no longer has the thumbnail.
    mutating func leave(_ hash: Digest, _ key: [UInt8]) {
        leaving[hash, default: []].append(key)
    }

    /// The shares at `keys` take the thumbnail.
    mutating func take(
        _ hash: Digest, _ image: [UInt8], _ keys: [[UInt8]], _ reader: borrowing some RecordReader & ~Copyable
    ) throws(ServiceError) {
        guard !keys.isEmpty else { return }
        for key in keys { records.append(RecordEdit(RecordKeys.thumbnailHolder(hash, key), value: [])) }
        let isStored = try reader.record(RecordKeys.thumbnailChange(hash)) != nil
        var count: [UInt8] = []
        count.appendInteger(UInt64(image.count).bigEndian)
        records.append(
            RecordEdit(RecordKeys.thumbnailChange(hash), value: count, expecting: isStored ? .present : .absent))
        guard !isStored else { return }
        records.append(RecordEdit(RecordKeys.thumbnail(hash), value: image, expecting: .absent))
        add(image.count, hash)
    }

    /// Completes the changes.
    ///
    /// Throws `limitExceeded` when there is no room for a new thumbnail.
    mutating func finish(_ reader: borrowing some RecordReader & ~Copyable) throws(ServiceError) {
        for (hash, keys) in leaving {
            guard let known = try reader.record(RecordKeys.thumbnailChange(hash)) else { continue }
            let holders = Set(keys.map { RecordKeys.thumbnailHolder(hash, $0) })
            for holder in holders { records.append(RecordEdit(holder, value: nil)) }
            var isLast = true
            try reader.visitRecords(in: RecordKeys.thumbnailHolders(hash)) { key, _ in
                isLast = holders.contains(Array(key))
                return isLast
            }
            records.append(
                RecordEdit(
                    known.key, value: isLast ? nil : known.value, expecting: .version(known.version)))
            guard isLast else { continue }
            records.append(RecordEdit(RecordKeys.thumbnail(hash), value: nil))
            add(-ThumbnailEdits.bounded(try known.number()), hash)
        }
        leaving = [:]
        for (hash, change) in bytes.values where change != 0 {
            let key = RecordKeys.thumbnailPart(hash)
            let known = try reader.record(key)
            let after = ThumbnailEdits.bounded(try known?.number() ?? 0) + change
            guard change < 0 || after <= Limits.thumbnailPartBytesMax else {
                throw ServiceError(
                    .limitExceeded, detail: UInt32(Limits.thumbnailPartBytesMax),
                    "there is no room for another thumbnail: give a link to it, or share without one")
            }
            var value: [UInt8] = []
            value.appendInteger(UInt64(max(0, after)).bigEndian)
            records.append(
                RecordEdit(
                    key, value: after > 0 ? value : nil, expecting: known.map { .version($0.version) } ?? .absent))
        }
        bytes = [:]
    }

    /// A stored count of bytes. No part has more than its limit, whatever the record says.
    private static func bounded(_ count: UInt64) -> Int { Int(min(count, UInt64(Limits.thumbnailPartBytesMax))) }

    private mutating func add(_ count: Int, _ hash: Digest) {
        bytes[hash.bytes.first ?? 0, default: (hash, 0)].change += count
    }
}
