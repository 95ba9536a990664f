/// A stored value, borrowed. Every value of every database begins with a seal, but those that `ListReserve` names,
/// which no answer depends on:
///
///     0  version (6): the sequence of the mutation that wrote the value
///     6  check (2) of the database's name and the key alone: damage of a key makes searches miss it
///     8  checksum (8) of the database's name, the key, the version and the contents
///    16  contents
///
/// The seal finds damage. It does not protect against somebody who can write to the disk.
struct SealedValue {
    static let sealBytes = 16
    /// Versions are below this.
    static let versionMax: UInt64 = 1 << 48

    let version: UInt64
    let checksum: UInt64
    let contents: UnsafeRawBufferPointer
    private let keyCheck: UInt64

    /// `nil` when the bytes are shorter than a seal. The checksum is not checked.
    @inline(__always)
    init?(_ bytes: UnsafeRawBufferPointer) {
        guard bytes.count >= SealedValue.sealBytes else { return nil }
        let first = UInt64(littleEndian: bytes.loadUnaligned(fromByteOffset: 0, as: UInt64.self))
        (version, keyCheck) = (first % SealedValue.versionMax, first / SealedValue.versionMax)
        checksum = UInt64(littleEndian: bytes.loadUnaligned(fromByteOffset: 8, as: UInt64.self))
        contents = UnsafeRawBufferPointer(rebasing: bytes[SealedValue.sealBytes...])
    }

    /// `seed`: that of the database and the key.
    func isGenuine(seed: UInt64) -> Bool {
        isOfKey(seed: seed) && checksum == SealedValue.checksum(of: contents, version: version, seed: seed)
    }

    /// Whether the key is the one that was written, even if the value is not. Another key passes with a probability of
    /// 2^-16.
    func isOfKey(seed: UInt64) -> Bool { keyCheck == seed / SealedValue.versionMax }

    /// The bytes of a value, and its checksum.
    static func bytes(
        of contents: [UInt8], version: UInt64, seed: UInt64
    ) -> (bytes: [UInt8], checksum: UInt64) {
        let checksum = contents.withUnsafeBytes { SealedValue.checksum(of: $0, version: version, seed: seed) }
        var bytes: [UInt8] = []
        bytes.reserveCapacity(sealBytes + contents.count)
        precondition(version < versionMax, "a version is too large for its seal")
        bytes.appendInteger(version | seed / versionMax * versionMax)
        bytes.appendInteger(checksum)
        bytes.append(contentsOf: contents)
        return (bytes, checksum)
    }

    private static func checksum(of contents: UnsafeRawBufferPointer, version: UInt64, seed: UInt64) -> UInt64 {
        // A multiplication by an odd number maps no two versions to the same number.
        Checksum.of(contents, seed: seed ^ (version &+ 1) &* 0x9e37_79b9_7f4a_7c15)
    }
}
