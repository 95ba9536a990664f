import Core

extension RandomSource {
    /// 16 random bytes whose first bit is zero. In base64url they begin with a letter, so a command line does not take
    /// them for an option.
    func nameBytes() -> [UInt8] {
        var bytes = bytes(16)
        bytes[0] &= 0x7f
        return bytes
    }
}
