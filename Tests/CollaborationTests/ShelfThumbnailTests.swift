import Collaboration
import Core
import Foundation
import TestSupport
import Testing

@Suite("Rich previews: subtitles and thumbnails")
struct ShelfThumbnailTests {
    private let world = World()
    private let bo: Account
    private let cy: Account

    init() throws {
        bo = try account("bo")
        cy = try account("cy")
        for person in [bo, cy] { try world.send(SetConsent(of: person, .everything, isAllowed: true)) }
    }

    private func link(_ number: Int) throws -> URL { try url("https://decks.example/\(number)") }

    private func request(
        _ number: Int, _ thumbnail: Thumbnail?, with people: [Account]? = nil, in conversation: String = "c",
        subtitle: String? = nil
    ) throws -> RecordShare {
        RecordShare(
            url: try link(number), title: "Title", subtitle: subtitle, thumbnail: thumbnail, app: "app",
            sharer: Sharer(name: "Ana"), conversation: Conversation(identifier: conversation),
            recipients: (people ?? [bo]).map { ShareRecipient($0) })
    }

    private func share(
        _ number: Int, _ image: [UInt8]?, with people: [Account]? = nil, in conversation: String = "c"
    ) throws {
        world.now += 1
        try world.send(try request(number, image.map { .image($0, .png) }, with: people, in: conversation))
    }

    /// The records of one kind.
    private func records(_ kind: Character) -> [StoredRecord] {
        world.storage.records.values.filter { $0.key[0] == kind.asciiValue }
    }

    private func read(
        _ image: [UInt8], of number: Int, on account: Account, for scope: ShelfScope = .app("app")
    ) throws -> ReadThumbnail {
        ReadThumbnail(standIn(image), of: try link(number), on: account, for: scope)
    }

    @Test("An item has the subtitle and the thumbnail of its latest share")
    func latest() throws {
        try world.send(try request(1, .link(try url("https://pictures.example/1.png")), subtitle: "Old"))
        var item = try #require(try world.send(ReadShelf(of: bo, for: .app("app"))).highlights.first)
        #expect(try item.subtitle == "Old" && item.thumbnail == .link(url("https://pictures.example/1.png")))
        world.now += 1
        try world.send(try request(1, .image(png(1), .png), in: "d", subtitle: "New"))
        item = try #require(try world.send(ReadShelf(of: bo, for: .app("app"))).highlights.first)
        #expect(item.subtitle == "New")
        #expect(item.thumbnail == .stored(hash: standIn(png(1)), .png, byteCount: png(1).count))
        world.now += 1
        try world.send(try request(1, nil, in: "d"))
        item = try #require(try world.send(ReadShelf(of: bo, for: .app("app"))).highlights.first)
        #expect(item.subtitle == nil && item.thumbnail == nil)
    }

    @Test("A thumbnail is stored once for all shares and people, and leaves with the last share that has it")
    func storedOnce() throws {
        try share(1, png(1), with: [bo, cy])
        try share(2, png(1), with: [bo])
        #expect(records("z").map(\.value) == [png(1)] && records("q").count == 3)
        try share(1, png(2), with: [bo, cy])
        #expect(Set(records("z").map(\.value)) == [png(1), png(2)])
        try share(2, nil)
        #expect(records("z").map(\.value) == [png(2)] && records("w").count == 1 && records("q").count == 2)
        try share(1, nil, with: [cy])
        #expect(records("z").count == 1)
        try share(1, nil, with: [bo])
        for kind: Character in ["z", "w", "q", "g"] { #expect(records(kind).isEmpty, "\(kind)") }
        try share(1, png(1))
        #expect(try world.send(try read(png(1), of: 1, on: bo)).bytes == png(1))
    }

    @Test("The same share again stores nothing more")
    func again() throws {
        for _ in 0..<3 { try share(1, png(1), with: [bo, cy]) }
        #expect(records("z").count == 1 && records("q").count == 2 && records("w").count == 1)
        #expect(records("h").filter { $0.value.count > 40_000 }.isEmpty)
    }

    @Test("A thumbnail of 64 KiB stands in no record that a page or the ranking reads")
    func large() throws {
        let image = png(0, count: Limits.thumbnailBytesMax)
        #expect(image.count == 65_536)
        try share(1, image)
        #expect(records("z").map(\.value.count) == [65_536])
        #expect(records("h").allSatisfy { $0.value.count < 1024 })
        #expect(try JSON.encode(try world.send(ReadShelf(of: bo, for: .everyApp))).count < 1024)
        #expect(try world.send(try read(image, of: 1, on: bo)).bytes == image)
        #expect(world.code(of: try request(1, .image(image + [0], .png))) == .limitExceeded)
    }

    @Test("A thumbnail is read by those on whose shelf it is, and by nobody who only knows its hash")
    func readers() throws {
        try share(1, png(1))
        try share(2, png(2))
        #expect(try world.send(try read(png(1), of: 1, on: bo)).type == .png)
        #expect(try world.send(try read(png(1), of: 1, on: bo, for: .everyApp)).bytes == png(1))
        for other in [
            try read(png(1), of: 1, on: cy), try read(png(1), of: 2, on: bo), try read(png(3), of: 1, on: bo),
            try read(png(1), of: 1, on: bo, for: .app("other")),
        ] {
            #expect(world.code(of: other) == .unknownHighlight, "\(other)")
        }
        try world.send(SetConsent(of: bo, .app("app"), isAllowed: false))
        #expect(world.code(of: try read(png(1), of: 1, on: bo)) == .unknownHighlight, "it is not on the shelf")
    }

    @Test("A thumbnail that is not what it says, or no link to a page, is malformed")
    func malformed() throws {
        let jpeg: [UInt8] = [0xff, 0xd8, 0xff, 0xe0, 0, 0]
        for (thumbnail, code): (Thumbnail, ServiceError.Code?) in [
            (.image(jpeg, .jpeg), nil), (.image(jpeg, .png), .malformedRequest), (.image([], .png), .malformedRequest),
            (.image(Array("<svg>".utf8), .gif), .malformedRequest),
            (.image(Array("GIF89a".utf8), .gif), nil), (.image(Array("RIFF....WEBPVP8 ".utf8), .webp), nil),
            (.image(Array("RIFF....WAVE".utf8), .webp), .malformedRequest),
            (.image(Array("....ftypheic".utf8), .heic), nil), (.image(Array("....ftypavif".utf8), .avif), nil),
            (.image(Array("....ftypheic".utf8), .avif), .malformedRequest),
            (.link(try url("http://pictures.example/1")), nil),
            (.link(try url("HTTPS://pictures.example/1")), nil),
            (.link(try url("javascript:alert(1)")), .malformedRequest),
            (.link(try url("file:///etc")), .malformedRequest),
            (.link(try url("https:///1")), .malformedRequest), (.link(try url("1.png")), .malformedRequest),
            (.link(try url("https://a.example/" + String(repeating: "a", count: 2048))), .limitExceeded),
        ] {
            #expect(world.code(of: try request(1, thumbnail)) == code, "\(thumbnail)")
        }
        for text in [
            "{}", #"{"data":"AA"}"#, #"{"mediaType":"image/png"}"#, #"{"data":"A","mediaType":"image/png"}"#,
            #"{"data":"AA==","mediaType":"image/png"}"#, #"{"data":"AA","mediaType":"image/svg+xml"}"#,
            #"{"data":"AA","mediaType":"image/png","url":"https://a.example"}"#,
            #"{"mediaType":"image/png","url":"https://a.example"}"#,
        ] {
            let error = thrownServiceError { _ = try JSON.decode(Thumbnail.self, from: Array(text.utf8)) }
            #expect(error?.code == .malformedRequest, "\(text)")
        }
        #expect(world.code(of: try request(1, nil, subtitle: String(repeating: "a", count: 513))) == .limitExceeded)
    }

    @Test("Stored thumbnails take a bounded room, and those that are stored already take no more of it")
    func room() throws {
        // All hashes begin with the same byte, so all images share one part of the room.
        world.sha256 = { bytes in Digest([7] + standIn(Array(bytes.prefix(100))).bytes.dropFirst()) ?? .zero }
        let most = Limits.thumbnailPartBytesMax / Limits.thumbnailBytesMax
        let images = (0...most).map { number -> [UInt8] in
            var image = png(0, count: Limits.thumbnailBytesMax)
            image[20] = UInt8(number)
            return image
        }
        for (number, image) in images.prefix(most).enumerated() { try share(number, image) }
        let error = world.error(of: try request(most, .image(images[most], .png)))
        #expect(error?.code == .limitExceeded && error?.detail == UInt32(Limits.thumbnailPartBytesMax))
        try share(most, images[0])
        try share(most + 1, nil)
        try share(1, nil)
        try share(most + 2, images[most])
        #expect(records("z").count == most)
    }

    @Test("No thumbnail is removed that another share has just taken, and none is left behind")
    func concurrentThumbnails() throws {
        try share(1, png(1))
        world.now += 1
        let leaving = try world.edit(try request(1, nil))
        try share(2, png(1))
        #expect(try world.isStale(leaving), "the other share has it now")
        world.now += 1
        let (first, second) = (try world.edit(try request(1, nil)), try world.edit(try request(2, nil)))
        _ = try world.storage.apply(try #require(first))
        #expect(try world.isStale(second), "it is the last one now")
        world.now += 1
        let taking = try world.edit(try request(3, .image(png(1), .png)))
        try share(2, nil)
        #expect(try world.isStale(taking), "it is not stored any more")
        #expect(records("z").isEmpty)
        try share(1, png(4))
        world.now += 1
        let (third, fourth) = try (
            world.edit(request(2, .image(png(4), .png))), world.edit(request(3, .image(png(4), .png)))
        )
        _ = try world.storage.apply(try #require(third))
        #expect(try !world.isStale(fourth), "two shares take a stored thumbnail at once")
    }
}
