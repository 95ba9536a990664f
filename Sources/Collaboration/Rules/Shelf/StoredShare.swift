import Core
import Foundation

/// The latest share of an item in a conversation, as its record has it. What people read is stored as JSON members
/// without braces, so that a page joins them.
struct StoredShare {
    let head: ShareHead
    let handle: ConversationHandle
    /// The SHA-256 of the stored thumbnail.
    let thumbnail: Digest?
    /// The collaboration that the link leads to.
    let collaboration: CollaborationIdentifier?
    /// `"app": ..., "subtitle": ..., "thumbnail": ..., "title": ..., "url": ...`.
    let item: ArraySlice<UInt8>
    /// `"conversation": ..., "sharer": ...`: not for apps.
    let people: ArraySlice<UInt8>

    /// What is the same for all recipients of a share.
    struct Text {
        let item: [UInt8]
        let people: [UInt8]

        init(_ share: RecordShare, _ thumbnail: ThumbnailReference?) throws(ServiceError) {
            let item = Item(
                url: share.url, title: share.title, subtitle: share.subtitle, thumbnail: thumbnail, app: share.app)
            self.item = Array(try JSON.encode(item).dropFirst().dropLast())
            let people = People(sharer: share.sharer, conversation: share.conversation)
            self.people = Array(try JSON.encode(people).dropFirst().dropLast())
        }
    }

    private struct Opener: Decodable {
        let app: String
    }

    private struct Item: Encodable {
        let url: URL
        let title: String?
        let subtitle: String?
        let thumbnail: ThumbnailReference?
        let app: String
    }

    private struct People: Codable {
        let sharer: Sharer
        let conversation: Conversation
    }

    init(
        head: ShareHead, handle: ConversationHandle, thumbnail: Digest?, collaboration: CollaborationIdentifier?,
        _ text: Text
    ) {
        self.head = head
        self.handle = handle
        self.thumbnail = thumbnail
        self.collaboration = collaboration
        item = text.item[...]
        people = text.people[...]
    }

    /// The record's value; see Signals.swift.
    var bytes: [UInt8] {
        var bytes = head.bytes + handle.bytes + (thumbnail?.bytes ?? [])
        if let collaboration {
            bytes.append(UInt8(collaboration.utf8.count))
            bytes += collaboration.utf8
        }
        bytes.appendInteger(UInt16(item.count))
        return bytes + item + people
    }

    /// `nil` when the bytes are something else.
    init?(_ value: [UInt8]) {
        guard let head = value.withRawBytes({ ShareHead($0) }) else { return nil }
        var rest = value.dropFirst(ShareHead.byteCount)
        func take(_ count: Int) -> [UInt8]? {
            guard rest.count >= count else { return nil }
            defer { rest = rest.dropFirst(count) }
            return Array(rest.prefix(count))
        }
        guard let handle = take(ConversationHandle.byteCount).flatMap({ ConversationHandle(bytes: $0) }) else {
            return nil
        }
        self.head = head
        self.handle = handle
        if head.hasThumbnail {
            guard let hash = take(Digest.byteCount).flatMap({ Digest($0) }) else { return nil }
            thumbnail = hash
        } else {
            thumbnail = nil
        }
        if head.leadsToCollaboration {
            guard let count = take(1)?.first,
                let identifier = take(Int(count)).flatMap({ CollaborationIdentifier(utf8: $0) })
            else { return nil }
            collaboration = identifier
        } else {
            collaboration = nil
        }
        guard let length = take(2) else { return nil }
        let itemCount = Int(length[0]) | Int(length[1]) << 8
        guard rest.count >= itemCount else { return nil }
        item = rest.prefix(itemCount)
        people = rest.dropFirst(itemCount)
    }

    var date: Date { Date(timeIntervalSince1970: Double(head.milliseconds) / 1000) }

    /// The share as the caller may see it: an app gets the handle alone.
    func attribution(for scope: ShelfScope) throws(ServiceError) -> Attribution {
        let people = scope == .everyApp ? try named() : nil
        return Attribution(
            handle: handle, date: date, isPinned: head.isPinned, sharer: people?.sharer,
            conversation: people?.conversation)
    }

    /// The attribution as JSON, as the caller may see it.
    func appendAttribution(for scope: ShelfScope, to json: inout [UInt8]) {
        json.append(UInt8(ascii: "{"))
        if scope == .everyApp {
            json += people
            json.append(UInt8(ascii: ","))
        }
        json += Array(
            #""date":\#(head.milliseconds),"handle":"\#(handle)","isPinned":\#(head.isPinned)}"#.utf8)
    }

    /// The app that opens the link.
    func app() throws(ServiceError) -> String { try decoded(Opener.self, item).app }

    /// Who shared it, and where.
    private func named() throws(ServiceError) -> People { try decoded(People.self, people) }

    private func decoded<Value: Decodable>(_ type: Value.Type, _ members: ArraySlice<UInt8>) throws(ServiceError)
        -> Value
    {
        let json = [UInt8(ascii: "{")] + members + [UInt8(ascii: "}")]
        return try StoredRecord(key: [], version: 0, value: json).decoded(type)
    }
}

extension StoredRecord {
    /// The share that the record is of.
    ///
    /// Throws `storageDamaged` when it is something else.
    func share() throws(ServiceError) -> StoredShare {
        guard let share = StoredShare(value) else {
            throw ServiceError(.storageDamaged, "the record of a share is damaged")
        }
        return share
    }
}
