@testable import Collaboration
import Foundation
import Testing

@Suite("Links of the web")
struct WebLinkTests {
    @Test(
        "Spellings of one link have one normal form",
        arguments: [
            (
                ["https://a.example", "HTTPS://A.Example:443/", "https://a.example:/", "https://a.example/?"],
                "https://a.example/"
            ),
            (
                ["http://a.example:80/b/", "http://a.example:0080/./b", "http://a.example/x/../b#"],
                "http://a.example/b"
            ),
            (["https://a.example/%7Eb/%41", "https://a.example/~b/A"], "https://a.example/~b/A"),
            (["https://a.example/%2fb%3a", "https://a.example/%2Fb%3A"], "https://a.example/%2Fb%3A"),
            (["https://a.example/../../b/%2E./c/."], "https://a.example/c"),
            (["https://a.example/b?q=%7e%3d&r#%5f"], "https://a.example/b?q=~%3D&r#_"),
            (["https://A%2eexample:8443/b"], "https://a.example:8443/b"),
            (["https://me:secret@a.example/"], "https://me:secret@a.example/"),
            (["https://[::1]:443/b", "https://[::1]/b"], "https://[::1]/b"),
            (["https://a.example/b//c//", "https://a.example/b//c"], "https://a.example/b//c"),
        ])
    func normalForms(_ spellings: [String], _ form: String) throws {
        for spelling in spellings {
            let link = try #require(WebLink(spelling), "\(spelling)")
            #expect(link.text == form, "\(spelling)")
            #expect(WebLink(spelling) == WebLink(spellings[0]))
        }
    }

    @Test("Different links have different normal forms")
    func differences() {
        let links = [
            "https://a.example/b", "http://a.example/b", "https://a.example:444/b", "https://b.example/b",
            "https://a.example/B", "https://a.example/b/c", "https://a.example/b?", "https://a.example/b?c",
            "https://a.example/b#c", "https://a.example/b%2Fc", "https://a@a.example/b", "https://@a.example/b",
            "https://a.example//b",
        ].map { WebLink($0) }
        #expect(!links.contains(nil))
        #expect(links[6] == links[0], "an empty query is none")
        #expect(Set(links).count == links.count - 1)
    }

    @Test(
        "What is no link of the web has no normal form",
        arguments: [
            "", "a", "//a.example", "https:", "https:/a.example", "https://", "https:///b", "https://:443/b",
            "https://a.example:x/", "https://a.example:65536/", "https://a:1:2/", "https://a.example/%", "https://a/%4",
            "https://a.example/%zz", "https://a.example/ b", "https://a.example/ü", "https://a.example\\b",
            "https://a.example/b\\c", "https://a.example/b\u{7f}", "https://[::1/b", "https://a]/b", "https://a[b]/",
            "javascript:alert(1)", "mailto:a@a.example", "file:///b", "ftp://a.example/b", "https@a.example",
            "x:https://a",
            "https://a.example@/",
        ])
    func others(_ text: String) {
        #expect(WebLink(text) == nil)
    }

    @Test("An item of a shelf is the same however its link is spelled")
    func shelfItems() throws {
        let world = World()
        let bo = try account("bo")
        func share(_ text: String) throws {
            try world.send(
                RecordShare(
                    url: try url(text), app: "app", sharer: Sharer(name: "Ana"),
                    conversation: Conversation(identifier: "c"), recipients: [ShareRecipient(bo)]))
        }
        for text in ["https://a.example/b", "https://A.EXAMPLE:443/b/", "https://a.example/b?c"] { try share(text) }
        let consent = SetConsent(of: bo, .everything, isAllowed: true)
        try world.send(consent)
        #expect(try world.send(ReadShelf(of: bo, for: .everyApp)).count == 2)
        let other = try url("HTTPS://a.example/./b")
        #expect(try world.send(ReadAttribution(other, of: bo, for: .everyApp)).attributions.count == 1)
        try world.send(RemoveHighlight(other, of: bo, for: .everyApp))
        #expect(try world.send(ReadShelf(of: bo, for: .everyApp)).count == 1)
    }
}
