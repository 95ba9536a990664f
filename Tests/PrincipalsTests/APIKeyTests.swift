import Core
import Foundation
import Principals
import TestSupport
import Testing

/// Keys as text and as hashes.
struct APIKeyTests {
    @Test("A key's text has 64 characters, leads back to the key, and is not what the key prints")
    func text() throws {
        let key = APIKey.random()
        #expect(key.text.utf8.count == Limits.keyTextBytes)
        #expect(key.text.hasPrefix("rgk_\(key.identifier)_"))
        #expect(try #require(APIKey(key.text)).text == key.text)
        for shown in ["\(key)", String(reflecting: key), "\([key])"] { #expect(!key.text.hasSuffix(shown.suffix(20))) }
    }

    @Test("Two keys have nothing in common")
    func random() {
        let (one, two) = (APIKey.random(), APIKey.random())
        #expect(one.identifier != two.identifier)
        #expect(one.text.suffix(43) != two.text.suffix(43))
    }

    @Test("A text that differs in any place is no key, or another one")
    func otherTexts() throws {
        let text = APIKey.random(.seeded(runSeed)).text
        for place in text.indices {
            for character in ["!", "=", " ", "\u{0}", "é"] {
                var other = text
                other.replaceSubrange(place...place, with: character)
                #expect(APIKey(other) == nil)
            }
        }
        for other in ["", "rgk_", String(text.dropLast()), text + "A", text.uppercased(), " " + text] {
            #expect(APIKey(other) == nil)
        }
    }

    @Test("The hash is the SHA-256 of the salt and the secret, by the reference")
    func hash() throws {
        let key = APIKey.random(.seeded(7))
        let hash = KeyHash(key, random: .seeded(8))
        let base64 = String(key.text.suffix(43).map { $0 == "-" ? "+" : $0 == "_" ? "/" : $0 }) + "="
        let secret = try #require(Data(base64Encoded: base64))
        #expect(hash.hash.bytes == ReferenceSHA256.hash(hash.salt.bytes + Array(secret)))
    }

    @Test("The hash in PROTOCOL.md's example is that of the key in its other example")
    func documentedHash() throws {
        let document = try ProtocolDocument()
        let hello = try #require(document.hexBlocks.first { $0.name == "hello-key-request" }?.bytes)
        let key = try #require(APIKey(String(decoding: hello.suffix(64), as: UTF8.self)))
        let request = try #require(document.jsonBlocks.first { $0.name == "createPrincipal-request" }).text
        let fields = try #require(try JSONSerialization.jsonObject(with: Data(request.utf8)) as? [String: Any])
        let stored = try JSONDecoder().decode(
            KeyHash.self,
            from: try JSONSerialization.data(
                withJSONObject: try #require((fields["key"] as? [String: Any])?["hash"])))
        #expect(stored.matches(key))
    }

    @Test("A hash matches its key and no other one, whichever byte differs")
    func matches() throws {
        let key = APIKey.random()
        let hash = KeyHash(key)
        #expect(hash.matches(key))
        #expect(!hash.matches(.random()))
        var text = Array(key.text)
        for place in 21..<63 {
            let kept = text[place]
            text[place] = kept == "A" ? "B" : "A"
            let other = try #require(APIKey(String(text)))
            #expect(!hash.matches(other), "place \(place)")
            text[place] = kept
        }
    }

    @Test("Hashes are compared by the function whose time does not depend on where they differ, and by nothing else")
    func constantTime() throws {
        let path = URL(fileURLWithPath: #filePath).deletingLastPathComponent().deletingLastPathComponent()
            .deletingLastPathComponent().appendingPathComponent("Sources/Principals/KeyHash.swift")
        let text = try String(contentsOf: path, encoding: .utf8)
        let body =
            try #require(text.components(separatedBy: "func matches(").dropFirst().first)
            .components(separatedBy: "\n    }").first ?? ""
        #expect(body.contains("equalInConstantTime(given, stored, count: Digest.byteCount)"))
        #expect(body.components(separatedBy: "==").count == 2 && body.contains("identifier == key.identifier"))
    }

    @Test("A key with the secret of another one and its own identifier does not match")
    func otherIdentifier() throws {
        let key = APIKey.random()
        let other = try #require(APIKey("rgk_0123456789abcdef_" + key.text.suffix(43)))
        #expect(!KeyHash(key).matches(other))
    }

    @Test("The salt is fresh for every hash")
    func salts() {
        let key = APIKey.random()
        #expect(KeyHash(key) != KeyHash(key))
    }
}
