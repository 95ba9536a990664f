import Core
import Foundation
import Identity
import RootgateClient
import ServiceTestSupport
import TestSupport
import Testing
import Transport

@testable import Server
@testable import Verification

@Suite("The page that explains proofs")
struct ExplainPageTests {
    private func makeService(_ adjust: (inout Configuration) -> Void = { _ in }) throws -> (TestService, Endpoint) {
        let service = try TestService { configuration in
            configuration.operatorEndpoints = [Endpoint(host: "127.0.0.1", port: 0)]
            configuration.showsRecords = true
            adjust(&configuration)
        }
        return (service, try #require(service.service.operatorEndpoints.first))
    }

    private func explain(_ endpoint: Endpoint, _ line: String, in collaboration: String = "") throws -> String {
        let body = "proof=\(FormFields.encoded(line))&collaboration=\(FormFields.encoded(collaboration))"
        return try PageVisitor.answer(of: endpoint, to: [PageVisitor.form("/explain", body)])
    }

    /// The outcomes of the checks that a page lists, by their titles.
    private func outcomes(_ page: String) -> [String: String] {
        let list = page.matches(of: /<li class="(?:good|bad|open)"><b>(.*?)<\/b> <span class="outcome">(.*?)<\/span>/)
        return Dictionary(list.map { (String($0.1), String($0.2)) }) { $1 }
    }

    @Test("A proof is drawn and judged, looking spends nothing, and a refusal names its check")
    func proofs() async throws {
        let (service, endpoint) = try makeService()
        let small = try await SmallCollaboration(try service.client())
        let proof = try await small.proof(device: 1)
        let line = proof.jsonLine
        for _ in 0..<2 {
            let page = try explain(endpoint, line, in: "small")
            #expect(page.contains("The service would <b>grant</b> this proof now"))
            let found = outcomes(page)
            #expect(found.count == 10 && found.values.filter { $0 == "passed" }.count == 9)
            #expect(found["spending the challenge or nonce"] == "not checked")
            #expect(page.contains("class=\"root member\"") && !page.contains("class=\"root stranger\""))
            #expect(page.contains("<code>\(small.person.rootHash.description)</code>"))
        }
        let verdicts = service.service.pool.verdictCounts.filter { $0.count > 0 }
        #expect(verdicts.isEmpty)
        #expect(try await small.client.verify(proof, in: small.collaboration) == .granted)
        let again = try explain(endpoint, line, in: "small")
        #expect(outcomes(again)["the challenge or nonce"] == "failed: challenge-replayed")
        let elsewhere = try explain(endpoint, line, in: "no such")
        #expect(outcomes(elsewhere)["the collaboration"] == "failed: unknown-collaboration")
        let unnamed = try explain(endpoint, line)
        #expect(outcomes(unnamed)["membership"] == "not checked" && unnamed.contains("class=\"root\""))
        #expect(
            try service.service.resources.rootSets.read { snapshot throws(ServiceError) in try snapshot.lastSequence() }
                == 2)
    }

    @Test("Without --console no collaboration is looked up, whatever a form says")
    func withoutRecords() async throws {
        let (service, endpoint) = try makeService { $0.showsRecords = false }
        let small = try await SmallCollaboration(try service.client())
        let page = try explain(endpoint, try await small.proof().jsonLine, in: "small")
        let found = outcomes(page)
        #expect(found["the collaboration"] == "not checked" && found["membership"] == "not checked")
        #expect(found["the signature"] == "passed" && !page.contains("class=\"root member\""))
    }

    @Test("What is no proof is named, and stays text", arguments: MarkupTests.hostile)
    func hostileInput(_ text: String) throws {
        let (service, endpoint) = try makeService()
        for (line, name) in [(text, ""), ("{\"a\":\"b\"}", text), ("{\"\(text)\":1}", text)] {
            let page = try explain(endpoint, line, in: name)
            let body = try #require(page.range(of: "\r\n\r\n").map { page[$0.upperBound...] })
            let tags = body.matches(of: /<([a-z]+)/).map { String($0.1) }
            #expect(!tags.contains("img") && !tags.contains("script"), "\(tags)")
            #expect(body.components(separatedBy: "</textarea>").count == 2)
            #expect(page.hasPrefix("HTTP/1.1 200 ") || page.hasPrefix("HTTP/1.1 400 "))
        }
        withExtendedLifetime(service) {}
    }

    @Test("An empty form, several lines and an identifier that can't be get a sentence")
    func problems() throws {
        let (service, endpoint) = try makeService()
        for (line, name, text) in [
            ("", "", "There is no proof."), ("{}\n{}", "", "This is more than one line"),
            ("{}", "a\u{1}", "No collaboration can have this identifier."),
        ] {
            let page = try explain(endpoint, line, in: name)
            #expect(page.hasPrefix("HTTP/1.1 400 ") && page.contains(text), "\(line)")
        }
        withExtendedLifetime(service) {}
    }

    @Test("The picture has each node on its side of the tree, as the index's bits say")
    func picture() throws {
        func digest(_ byte: Int) throws -> Digest { try #require(Digest([UInt8](repeating: UInt8(byte), count: 32))) }
        let levels = try (0..<3).map { level in
            Explanation.Level(
                node: try digest(level), sibling: try digest(0xa0 + level), isRight: level == 1,
                parent: try digest(level + 1))
        }
        let html = ProofPicture(leaf: try digest(0), levels: levels, isMember: nil).markup.html
        let boxes = html.matches(of: /<g class="([a-z ]+)"><rect x="(\d+)" y="(\d+)".*?class="hash"[^>]*>([0-9a-f]{2})/)
        let found = boxes.map { "\($0.1) \($0.2) \($0.3) \($0.4)" }
        #expect(
            found == [
                "sibling 232 226 a0", "way leaf 54 226 00", "sibling 54 152 a1", "way 232 152 01", "sibling 232 78 a2",
                "way 54 78 02", "root 143 4 03",
            ])
        #expect(html.contains("bits, the root&#39;s first: 010."))
        #expect(html.contains(">bit 1</text>") && html.contains("viewBox=\"0 0 380 270\""))
        let alone = ProofPicture(leaf: try digest(0), levels: [], isMember: true).markup.html
        #expect(alone.contains("leaf and root hash") && alone.contains("class=\"root member\""))
        let deepest = ProofPicture(
            leaf: try digest(0), levels: [Explanation.Level](repeating: levels[0], count: 32), isMember: false)
        #expect(deepest.markup.html.utf8.count < 40_000)
    }

    // MARK: The sample

    @Test("A sample lists refused proofs and opens them, says whom they may tell about, and is off without its option")
    func sample() async throws {
        let (service, endpoint) = try makeService { $0.sampledProofs = 2 }
        #expect(try PageVisitor.page("/explain", of: endpoint).body.contains("None was refused yet."))
        let small = try await SmallCollaboration(try service.client(), named: "<script>alert(1)</script>")
        let good = try await small.proof()
        var proof = good
        for index in 1...3 {
            proof.publicKeyIndex = UInt64(index) << 40
            #expect(try await small.client.verify(proof, in: small.collaboration) == .badIndex)
        }
        #expect(try await small.client.verify(good, in: small.collaboration) == .granted)
        let list = try PageVisitor.page("/explain", of: endpoint).body
        #expect(list.contains("sample=3\"") && list.contains("sample=2\"") && !list.contains("sample=1\""))
        #expect(
            list.contains("<bdi>&lt;script&gt;alert(1)&lt;/script&gt;</bdi>")
                && list.contains("can tell who was refused"))
        let page = try PageVisitor.page("/explain?sample=3", of: endpoint)
        #expect(page.status == 200 && outcomes(page.body)["the index"] == "failed: bad-index")
        for gone in ["1", "99", "x", ""] {
            #expect(try PageVisitor.page("/explain?sample=\(gone)", of: endpoint).status == 404)
        }
        let (other, place) = try makeService()
        #expect(other.service.resources.sample == nil)
        #expect(try PageVisitor.page("/explain", of: place).body.contains("The service keeps none."))
        #expect(try PageVisitor.page("/explain?sample=1", of: place).status == 404)
    }
}

extension SignedIdentityProof {
    /// The proof as a device's line of JSON.
    var jsonLine: String {
        func text(_ bytes: [UInt8]) -> String { "\"\(Data(bytes).base64EncodedString())\"" }
        let hashes = inclusionHashes.map { text($0.bytes) }.joined(separator: ",")
        return "{\"publicKey\":\(text(publicKey)),\"publicKeyIndex\":\(publicKeyIndex),\"inclusionHashes\":[\(hashes)],"
            + "\"signature\":\(text(signature)),\"data\":\(text(data)),\"signatureFormat\":\"\(signatureFormat.name)\"}"
    }
}
