/// The format of a thumbnail. The first bytes of an image tell it.
public enum ImageType: String, Hashable, Sendable, Codable, CaseIterable {
    case png = "image/png"
    case jpeg = "image/jpeg"
    case gif = "image/gif"
    case webp = "image/webp"
    case heic = "image/heic"
    case avif = "image/avif"

    /// The format that the bytes begin as; `nil` when they are none of these.
    public init?(of bytes: [UInt8]) {
        func stands(_ text: String, at offset: Int) -> Bool {
            bytes.dropFirst(offset).prefix(text.utf8.count).elementsEqual(text.utf8)
        }
        if bytes.starts(with: [0x89, 0x50, 0x4e, 0x47, 0x0d, 0x0a, 0x1a, 0x0a]) {
            self = .png
        } else if bytes.starts(with: [0xff, 0xd8, 0xff]) {
            self = .jpeg
        } else if stands("GIF87a", at: 0) || stands("GIF89a", at: 0) {
            self = .gif
        } else if stands("RIFF", at: 0), stands("WEBP", at: 8) {
            self = .webp
        } else if stands("ftypheic", at: 4) || stands("ftypheix", at: 4) {
            self = .heic
        } else if stands("ftypavif", at: 4) {
            self = .avif
        } else {
            return nil
        }
    }
}
