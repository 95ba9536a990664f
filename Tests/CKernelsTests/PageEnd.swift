import Foundation

/// Memory that ends at a page which nobody may touch: a read behind the end is a crash.
final class PageEnd {
    private let pages: UnsafeMutableRawPointer
    private let bytes: Int
    /// The first address behind the readable memory.
    let end: UnsafeMutablePointer<UInt8>

    /// Throws when the system refuses the memory.
    init(bytes least: Int) throws {
        let page = Int(getpagesize())
        let readable = (least + page - 1) / page * page
        bytes = readable + page
        let flags = MAP_PRIVATE | MAP_ANONYMOUS
        guard let pages = mmap(nil, bytes, PROT_READ | PROT_WRITE, CInt(flags), -1, 0), pages != MAP_FAILED else {
            throw POSIXError(.ENOMEM)
        }
        guard mprotect(pages + readable, page, PROT_NONE) == 0 else { throw POSIXError(.ENOMEM) }
        self.pages = pages
        end = (pages + readable).assumingMemoryBound(to: UInt8.self)
    }

    deinit {
        munmap(pages, bytes)
    }

    /// Puts `bytes` right before the end; their address.
    func place(_ bytes: [UInt8]) -> UnsafePointer<UInt8> {
        let start = end - bytes.count
        start.update(from: bytes, count: bytes.count)
        return UnsafePointer(start)
    }
}
