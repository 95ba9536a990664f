import Core
import Foundation
import Principals
import Transport

@testable import Collaboration

/// Values that are written as texts. The first byte says which one is read.
enum FuzzedTexts {
    static let subject = FuzzSubject("texts", bytesMax: 192, seeds: seeds) { input in
        guard let first = input.first, Int(first) < readers.count else { return }
        guard let text = String(validating: input.dropFirst(), as: UTF8.self) else { return }
        guard let again = readers[Int(first)].again(text) else { return }
        try demand(again.utf8.elementsEqual(text.utf8), "\(readers[Int(first)].example): “\(text)” became “\(again)”")
    }

    /// An example of a text, and the text of the value that is read from a text; `nil` when none is.
    private static let readers: [(example: String, again: @Sendable (String) -> String?)] = [
        ("rgk_a1b2c3d4e5f60718_AAECAwQFBgcICQoLDA0ODxAREhMUFRYXGBkaGxwdHh8", { APIKey($0)?.text }),
        ("a1b2c3d4e5f60718", { KeyIdentifier($0)?.description }),
        ("backend-1", { PrincipalName($0)?.text }),
        ("decks/*x", { CollaborationPrefix($0)?.description }),
        ("deck-42", { CollaborationIdentifier($0)?.description }),
        ("spiffe://example.org/backend", { CertificateName($0)?.description }),
        ("dns:backend.example.org", { CertificateName($0)?.description }),
        ("subject:CN=a,O=b", { CertificateName($0)?.description }),
        ("AAECAwQFBgcICQoLDA0ODw", { InvitationToken($0)?.text }),
        ("AAECAwQFBgcICQoLDA0ODw", { ConversationHandle($0)?.description }),
        ("AAEC_-8", { Base64URL.bytes($0).map { Base64URL.text($0) } }),
        // Hexadecimal of either case.
        ("00ff", { text in [UInt8](hexadecimal: text).map { $0.hexadecimal == text.lowercased() ? text : "others" } }),
        (String(repeating: "0a", count: 32), { text in Digest(hexadecimal: text).map { _ in text } }),
        // A port may have zeros before it and a sign; a host may have brackets that it does not need.
        (
            "[::1]:7570",
            { text in Endpoint(text).flatMap { Endpoint($0.description) == $0 ? text : "another endpoint" } }
        ),
        ("unix:/run/a.sock", { text in Endpoint(text).map { $0.path == nil ? text : $0.description } }),
        (String(repeating: "AAAA", count: 37) + "AA", { AccessGrant(text: $0)?.text }),
    ]

    private static func seeds() -> [[UInt8]] {
        readers.enumerated().map { [UInt8($0.offset)] + Array($0.element.example.utf8) }
    }
}

/// Links, in their normal form.
enum FuzzedLinks {
    static let subject = FuzzSubject("links", bytesMax: 256, seeds: seeds) { input in
        guard let text = String(validating: input, as: UTF8.self), let link = WebLink(text) else { return }
        let normal = link.text
        guard let again = WebLink(normal) else { throw Finding("the normal form “\(normal)” is no link") }
        try demand(again == link && again.text == normal, "the normal form “\(normal)” became “\(again.text)”")
        try demand(
            normal.utf8.allSatisfy { (0x21...0x7e).contains($0) }, "a normal form has a character that no link has")
        try demand(
            !link.segments.contains { $0 == "." || $0 == ".." }, "the normal form “\(normal)” has dot segments")
        try checkHost(link, text)
        try checkBase(text)
    }

    /// Browsers and Foundation go to the host that we compare.
    private static func checkHost(_ link: WebLink, _ text: String) throws {
        guard let url = URL(string: text, encodingInvalidCharacters: false), let theirs = url.host(percentEncoded: true)
        else { return }
        guard let host = WebLink(theirs.contains(":") ? "https://[\(theirs)]/" : "https://\(theirs)/")?.host else {
            return
        }
        // Foundation leaves the brackets out.
        func bare(_ host: String) -> String { host.filter { $0 != "[" && $0 != "]" } }
        try demand(
            bare(host) == bare(link.host), "the host of “\(text)” is “\(link.host)”, for Foundation it is “\(theirs)”")
    }

    /// A link below the base leads to one collaboration, also in its normal form.
    private static func checkBase(_ text: String) throws {
        guard let url = URL(string: text, encodingInvalidCharacters: false), let link = WebLink(url) else { return }
        var settings = CollaborationSettings()
        settings.linkBase = "https://example.com/c"
        _ = CollaborationSettings.fault(ofLinkBase: text)
        guard let normal = URL(string: link.text, encodingInvalidCharacters: false) else { return }
        try demand(
            settings.collaboration(of: url) == settings.collaboration(of: normal),
            "the normal form of a link leads elsewhere")
        guard let collaboration = settings.collaboration(of: url) else { return }
        try demand(
            text.lowercased().hasPrefix("https://") && link.text.hasPrefix("https://example.com/c/"),
            "“\(text)” leads to \(collaboration)")
    }

    private static func seeds() -> [[UInt8]] {
        [
            "https://example.com/c/deck-42/page/3?a=b#c", "HTTP://user@EXAMPLE.com:80/%7ea/../b/./c/",
            "https://[::1]:443/", "https://example.com:8443", "http://a/%41%2f?#", "https://example.com//c//",
            "https://ex%61mple.com/c/%64", "https://example.com@other.example/c/x", "https://example.com/c/..%2fx",
        ].map { Array($0.utf8) }
    }
}
