import Core

/// Where the fields of a grant stand, in bytes from its start. Numbers are little-endian.
///
///     0  version (1: 1)   1  permission (1)   2  role (1)   3  zero (5)
///     8  expiry, milliseconds of the durable clock (8)   16  sequence of the change log (8)
///    24  collaboration (16)   40  device key (16)   56  root hash (32)   88  tag (24)
///
/// Collaboration and device key are fingerprints. The tag is HMAC-SHA256 of the 88 bytes before it, cut to 24, under a
/// key that is derived from the service's root secret: grants survive restarts.
package enum GrantLayout {
    static let version = 0
    static let permission = version + 1
    static let role = permission + 1
    /// Zero bytes up to the expiry.
    static let reserved = role + 1
    static let expiry = 8
    static let sequence = expiry + MemoryLayout<UInt64>.size
    static let collaboration = sequence + MemoryLayout<UInt64>.size
    static let deviceKey = collaboration + Fingerprint.byteCount
    static let rootHash = deviceKey + Fingerprint.byteCount
    /// The bytes before the tag are authenticated by it.
    package static let tag = rootHash + Digest.byteCount
    /// What is left of the grant.
    package static let tagBytes = Limits.grantBytes - tag
    package static let byteCount = Limits.grantBytes

    /// The only version of grants there is.
    static let currentVersion: UInt8 = 1
}
