import Collaboration
import Core
import Foundation
import TestSupport
import Testing

@Suite("Values of the layer as text")
struct ValuesTests {
    @Test("Base64url has the alphabet for links and no padding, and comes back as it was")
    func base64() {
        #expect(Base64URL.text([]) == "")
        #expect(Base64URL.text([0xfb, 0xff, 0xfe]) == "-__-")
        #expect(Base64URL.text([0]) == "AA")
        #expect(Base64URL.text([0, 0]) == "AAA")
        var generator = SeededGenerator(seed: runSeed)
        for count in 0..<70 {
            let bytes = generator.bytes(count)
            #expect(Base64URL.bytes(Base64URL.text(bytes)) == bytes, "seed \(runSeed), \(count) bytes")
        }
    }

    @Test("Base64url with padding, another alphabet, stray bits or other characters is nothing")
    func base64Rejects() {
        for text in [
            "A", "AAAAA", "AA==", "AA=", "+__+", "-/_-", "AB", "AAB", " AA", "AA\n", "A A", "AÄ", "AA.A", "%41A",
        ] {
            #expect(Base64URL.bytes(text) == nil, "\(text)")
        }
    }

    @Test("An account's name has 1 to 128 bytes of UTF-8 without control characters")
    func accounts() throws {
        for name in ["a", "ana@example.com", "Ünïcode 🗝", String(repeating: "é", count: 64)] {
            let account = try #require(Account(name))
            #expect(account.description == name)
            #expect(try travelled([account]) == [account])
        }
        for name in [
            "", String(repeating: "a", count: 129), String(repeating: "é", count: 65), "a\u{0}", "\n", "\u{7f}",
        ] {
            #expect(Account(name) == nil)
            let error = thrownServiceError {
                _ = try JSON.decode([Account].self, from: try JSON.encode([name]))
            }
            #expect(error?.code == .malformedRequest)
        }
    }

    @Test("Accounts are told apart by their bytes, as the records tell them apart")
    func accountBytes() throws {
        let (composed, decomposed) = (try account("\u{e9}"), try account("e\u{301}"))
        #expect(composed != decomposed)
        #expect(Set([composed, decomposed, try account("\u{e9}")]).count == 2)
    }

    @Test("Identifiers of apps, conversations, options and items have to be in normal form C")
    func normalForm() throws {
        let (world, bo) = (World(), try account("bo"))
        let collaboration = try world.start()
        let cases: [(String, ServiceError.Code?)] = [("com.\u{e9}", nil), ("com.e\u{301}", .malformedRequest)]
        for (name, code) in cases {
            #expect(world.code(of: SetConsent(of: bo, .app(name), isAllowed: false)) == code)
            #expect(world.code(of: SetConsent(of: bo, .conversation(name), isAllowed: false)) == code)
            #expect(world.code(of: ReadShelf(of: bo, for: .app(name))) == code)
            let items = [CustomItem(identifier: name, title: "A")]
            #expect(world.code(of: CustomizeDetails(of: collaboration, customItems: .set(items))) == code)
            for isGroup in [false, true] {
                let option = CollaborationOption(title: "A", identifier: isGroup ? "a" : name, isSelected: true)
                let group = OptionsGroup(identifier: isGroup ? name : "g", options: [option])
                let options = ShareOptions(optionsGroups: [group])
                #expect(world.code(of: UpdateShareOptions(collaboration, replacing: options)) == code)
            }
        }
    }

    @Test("A token is 22 characters of text that lead back to it")
    func tokens() throws {
        let token = InvitationToken.random()
        #expect(token.text.utf8.count == 22)
        #expect(InvitationToken(token.text) == token)
        #expect(try travelled([token]) == [token])
        #expect(InvitationToken.random() != token)
        for text in [
            "", "AAAA", token.text + "==", token.text + "AA", String(token.text.dropLast()),
            "!" + token.text.dropFirst(),
        ] {
            #expect(InvitationToken(text) == nil, "\(text)")
            let error = thrownServiceError {
                _ = try JSON.decode([InvitationToken].self, from: try JSON.encode([text]))
            }
            #expect(error?.code == .malformedRequest)
        }
    }

    @Test("A grant is 150 characters of text that lead back to it")
    func grants() throws {
        var generator = SeededGenerator(seed: runSeed)
        let grant = try #require(AccessGrant(bytes: generator.bytes(AccessGrant.byteCount)))
        #expect(grant.text.utf8.count == 150)
        #expect(AccessGrant(text: grant.text) == grant)
        #expect(try travelled([grant]) == [grant])
        for count in [0, 1, 88, 111, 113] { #expect(AccessGrant(bytes: generator.bytes(count)) == nil) }
        for text in [
            "", grant.text + "=", grant.text + "AA", String(grant.text.dropLast(2)), "+" + grant.text.dropFirst(),
        ] {
            #expect(AccessGrant(text: text) == nil)
            let error = thrownServiceError { _ = try JSON.decode([AccessGrant].self, from: try JSON.encode([text])) }
            #expect(error?.code == .malformedRequest)
        }
    }

    /// 16 bytes that ascend from `first`.
    private func fingerprint(_ first: UInt8) -> Fingerprint? {
        (first..<first + 16).map { $0 }.withRawBytes { $0.baseAddress.map { Fingerprint(at: $0) } }
    }

    @Test("The fields of a grant are at their documented offsets and are read as they were written")
    func claims() throws {
        let claim = GrantClaim(
            permission: .readOnly, role: .administrator, expiry: 0x0102_0304_0506_0708, sequence: 0x1112_1314_1516_1718,
            collaboration: try #require(fingerprint(0x20)), deviceKey: try #require(fingerprint(0x30)),
            rootHash: person(5).rootHash)
        var bytes: [UInt8] = []
        claim.append(to: &bytes)
        #expect(bytes.count == GrantLayout.tag && GrantLayout.tag == 88 && GrantLayout.byteCount == 112)
        #expect(bytes[..<8] == [1, 1, 2, 0, 0, 0, 0, 0])
        #expect(bytes[8..<16] == [8, 7, 6, 5, 4, 3, 2, 1])
        #expect(bytes[16..<24] == [0x18, 0x17, 0x16, 0x15, 0x14, 0x13, 0x12, 0x11])
        #expect(Array(bytes[24..<56]) == Array(0x20..<0x40))
        #expect(Array(bytes[56..<88]) == person(5).rootHash.bytes)
        #expect(bytes.withRawBytes { GrantClaim($0) } == claim)
        for count in 0..<bytes.count { #expect(Array(bytes[..<count]).withRawBytes { GrantClaim($0) } == nil) }
        for (place, wrong) in [(0, UInt8(0)), (0, 2), (1, 0), (1, 3), (2, 0), (2, 4), (3, 1), (7, 1)] {
            var changed = bytes
            changed[place] = wrong
            #expect(changed.withRawBytes { GrantClaim($0) } == nil, "byte \(place) is \(wrong)")
        }
    }

    @Test("Levels of consent come back from JSON as they were, and others are malformed")
    func consentLevels() throws {
        let levels: [ConsentLevel] = [.everything, .app("app"), .conversation("c")]
        #expect(try travelled(levels) == levels)
        #expect(
            String(decoding: try JSON.encode(levels), as: UTF8.self)
                == #"[{"everything":true},{"app":"app"},{"conversation":"c"}]"#)
        for text in [#"{"everything":false}"#, "{}", #"{"app":1}"#, #"{"shelf":"a"}"#] {
            let error = thrownServiceError { _ = try JSON.decode(ConsentLevel.self, from: Array(text.utf8)) }
            #expect(error?.code == .malformedRequest, "\(text)")
        }
    }

    @Test("Requests are read by their names, and others are unknown or malformed")
    func parsing() throws {
        let request = try Requests.parse("stopSharing", Array(#"{"collaboration":"deck"}"#.utf8))
        #expect(request as? StopSharing == StopSharing(try #require(CollaborationIdentifier("deck"))))
        #expect(thrownServiceError { _ = try Requests.parse("dance", Array("{}".utf8)) }?.code == .unknownOperation)
        let error = thrownServiceError { _ = try Requests.parse("stopSharing", Array("{}".utf8)) }
        #expect(error?.code == .malformedRequest && error?.reason.contains("collaboration") == true)
        for text in [
            "", "[", "null", #"{"collaboration":null}"#, #"{"collaboration":""}"#, #"{"collaboration":"a\u0000"}"#,
        ] {
            let error = thrownServiceError { _ = try Requests.parse("stopSharing", Array(text.utf8)) }
            #expect(error?.code == .malformedRequest, "\(text)")
        }
    }
}

struct DateTests {
    @Test(
        "Dates are whole milliseconds in JSON, whenever they are",
        arguments: [
            0, 1, 999, 1001, 1002, 1_000_000_001, 1_795_276_677_475, -1, -62_135_596_800_000, 9_000_000_000_000_000,
        ] as [Int64])
    func milliseconds(_ milliseconds: Int64) throws {
        let date = Date(timeIntervalSince1970: Double(milliseconds) / 1000)
        #expect(String(decoding: try JSON.encode([date]), as: UTF8.self) == "[\(milliseconds)]")
        let read = try JSON.decode([Date].self, from: Array("[\(milliseconds)]".utf8))
        #expect(try JSON.encode(read) == Array("[\(milliseconds)]".utf8))
    }

    @Test("Dates beyond the range of milliseconds become the farthest date in it")
    func farDates() throws {
        let dates = [Date(timeIntervalSince1970: 1e300), Date(timeIntervalSince1970: -1e300)]
        #expect(String(decoding: try JSON.encode(dates), as: UTF8.self) == "[9000000000000000,-9000000000000000]")
    }
}
