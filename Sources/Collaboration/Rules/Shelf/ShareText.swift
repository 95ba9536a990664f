import Core
import Foundation

/// The latest share of an item in a conversation: the part for people, as JSON members without braces.
struct ShareText {
    let head: ShareHead
    /// `"app": ..., "title": ..., "url": ...`.
    let item: ArraySlice<UInt8>
    /// `"conversation": ..., "date": ..., "sharer": ...`.
    let attribution: ArraySlice<UInt8>

    private struct Item: Encodable {
        let url: URL
        let title: String?
        let app: String
    }

    private struct Shared: Codable {
        let sharer: Sharer
        let conversation: Conversation
        let date: Date
    }

    /// The bytes after the head in a record.
    static func bytes(
        url: URL, title: String?, app: String, sharer: Sharer, conversation: Conversation, date: Date
    ) throws(ServiceError) -> [UInt8] {
        let item = try JSON.encode(Item(url: url, title: title, app: app)).dropFirst().dropLast()
        let shared = try JSON.encode(Shared(sharer: sharer, conversation: conversation, date: date))
            .dropFirst().dropLast()
        var bytes: [UInt8] = []
        bytes.appendInteger(UInt16(item.count))
        return bytes + item + shared
    }

    /// Throws `storageDamaged` when the record is something else.
    init(_ record: StoredRecord, _ head: ShareHead) throws(ServiceError) {
        let text = record.value.dropFirst(ShareHead.byteCount)
        let length = text.prefix(2).reversed().reduce(0) { $0 << 8 | Int($1) }
        guard text.count >= 2 + length else { throw ServiceError(.storageDamaged, "the record of a share is damaged") }
        self.head = head
        item = text.dropFirst(2).prefix(length)
        attribution = text.dropFirst(2 + length)
    }

    func decoded() throws(ServiceError) -> Attribution {
        let json = [UInt8(ascii: "{")] + attribution + [UInt8(ascii: "}")]
        let shared = try StoredRecord(key: [], version: 0, value: json).decoded(Shared.self)
        return Attribution(
            sharer: shared.sharer, conversation: shared.conversation, date: shared.date, isPinned: head.isPinned)
    }
}
