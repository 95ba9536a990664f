/// One of the two meta pages of LMDB's data file, as its bytes say. Transaction n writes meta page n mod 2, so one of
/// them describes the newest commit, and the other the one before.
///
/// LMDB 0.9 keeps no checksum of it, and believes what it says: where the trees begin, and how long the file is.
struct MetaPage: Equatable {
    /// The place of one tree. In the file it has 48 bytes.
    struct Tree: Equatable {
        static let byteCount = 48
        /// The root of a tree without entries.
        static let noRoot = UInt64.max

        let flags: UInt16
        let depth: Int
        let branches: UInt64
        let leaves: UInt64
        let overflows: UInt64
        let entries: UInt64
        let root: UInt64

        /// `bytes`: at least `byteCount` of them.
        init(_ bytes: UnsafeRawBufferPointer) {
            precondition(bytes.count >= Tree.byteCount, "a tree's place has too few bytes")
            flags = UInt16(littleEndian: bytes.loadUnaligned(fromByteOffset: 4, as: UInt16.self))
            depth = Int(UInt16(littleEndian: bytes.loadUnaligned(fromByteOffset: 6, as: UInt16.self)))
            func word(_ offset: Int) -> UInt64 {
                UInt64(littleEndian: bytes.loadUnaligned(fromByteOffset: offset, as: UInt64.self))
            }
            (branches, leaves, overflows) = (word(8), word(16), word(24))
            (entries, root) = (word(32), word(40))
        }

        /// Whether the numbers can be those of a tree in a file of so many pages.
        func isPlausible(lastPage: UInt64) -> Bool {
            // A leaf has fewer entries than bytes.
            guard branches <= lastPage, leaves <= lastPage, overflows <= lastPage, entries <= lastPage << 16 else {
                return false
            }
            guard root != Tree.noRoot else { return depth == 0 && entries == 0 }
            return root >= 2 && root <= lastPage && depth >= 1 && depth <= PageCheck.depthMax
        }
    }

    /// Bytes of the page that mean something, from its beginning.
    static let byteCount = 152
    /// Where the number of the commit is in the page.
    static let transactionOffset = 144
    /// The largest pages that LMDB has.
    static let pageBytesMax = 32768
    /// So many pages, and as many as the file has, may be missing at its end.
    private static let unwrittenPagesMax = 65536
    /// Flags of trees whose keys are integers in the processor's order.
    static let integerKeys: UInt16 = 0x08
    /// Of the first tree: an environment without a folder of its own, as a copy of one file alone is made by. It says
    /// nothing about the tree.
    private static let fileAlone: UInt16 = 0x4000
    private static let magic: UInt32 = 0xBEEF_C0DE
    private static let version: UInt32 = 1
    private static let flagOfMetaPages: UInt16 = 0x08

    let bytes: [UInt8]
    let pageBytes: Int
    let free: Tree
    let main: Tree
    let lastPage: UInt64
    let transaction: UInt64

    /// Returns `nil` unless the bytes are those of meta page `slot`, 0 or 1, in the format of LMDB 0.9.
    init?(_ bytes: [UInt8], slot: Int) {
        guard bytes.count == MetaPage.byteCount else { return nil }
        func number<T: FixedWidthInteger>(_ offset: Int, _: T.Type) -> T {
            T(littleEndian: bytes.withUnsafeBytes { $0.loadUnaligned(fromByteOffset: offset, as: T.self) })
        }
        guard number(0, UInt64.self) == UInt64(slot), number(10, UInt16.self) == MetaPage.flagOfMetaPages,
            number(16, UInt32.self) == MetaPage.magic, number(20, UInt32.self) == MetaPage.version
        else { return nil }
        // The size of a page stands in a field of the first tree that has no other use.
        let pageBytes = Int(number(40, UInt32.self))
        guard pageBytes >= 4096, pageBytes <= MetaPage.pageBytesMax, pageBytes & (pageBytes - 1) == 0 else {
            return nil
        }
        self.bytes = bytes
        self.pageBytes = pageBytes
        free = bytes.withUnsafeBytes { Tree(UnsafeRawBufferPointer(rebasing: $0[40..<88])) }
        main = bytes.withUnsafeBytes { Tree(UnsafeRawBufferPointer(rebasing: $0[88..<136])) }
        lastPage = number(136, UInt64.self)
        transaction = number(144, UInt64.self)
    }

    /// A number that another meta page has with probability 2^-64.
    var digest: UInt64 { bytes.withUnsafeBytes { Checksum.of($0, seed: 0) } }

    /// Whether its transaction is one that writes this page.
    var isInItsPlace: Bool { transaction == 0 || UInt64(bytes[0]) == transaction & 1 }

    /// The bytes of the file that it describes. Pages at the end that are free need not be there.
    var fileBytes: Int { Int(lastPage + 1) * pageBytes }

    /// Why LMDB must not use this page in a file of so many bytes; `nil` when it may. The file may be a little shorter
    /// than the page says.
    func fault(fileBytes: Int) -> String? {
        guard transaction < 1 << 62 else { return "its transaction number is impossible" }
        guard free.flags & ~MetaPage.fileAlone == MetaPage.integerKeys, main.flags == 0 else {
            return "its flags are not ours"
        }
        guard lastPage >= 1, lastPage < 1 << 46 else { return "its last page is impossible" }
        guard Int(lastPage + 1) <= 2 * (fileBytes / pageBytes) + MetaPage.unwrittenPagesMax else {
            return "the data file is shorter than its contents (\(self.fileBytes) bytes)"
        }
        guard free.isPlausible(lastPage: lastPage), main.isPlausible(lastPage: lastPage) else {
            return "a tree begins outside of the file"
        }
        return nil
    }

    /// The bytes of a copy for the other slot, as if the commit before had written them. LMDB does not use them; it
    /// only opens no file in which a meta page can't be read.
    var copyForOtherSlot: [UInt8] {
        var copy = bytes
        let slot = transaction & 1 ^ 1
        let before = transaction == 0 ? 0 : transaction - 1
        withUnsafeBytes(of: slot.littleEndian) { copy.replaceSubrange(0..<8, with: $0) }
        withUnsafeBytes(of: before.littleEndian) { copy.replaceSubrange(144..<152, with: $0) }
        return copy
    }
}
