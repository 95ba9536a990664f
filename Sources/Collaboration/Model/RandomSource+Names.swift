import Core

extension RandomSource {
    /// 16 random bytes, but for the first bit: in base64url they begin with a letter, which command lines take for
    /// nothing else.
    func nameBytes() -> [UInt8] {
        var bytes = bytes(16)
        bytes[0] &= 0x7f
        return bytes
    }
}
