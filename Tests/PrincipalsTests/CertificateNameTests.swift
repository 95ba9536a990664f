import Principals
import Testing

/// Names of certificates, which are compared whole.
struct CertificateNameTests {
    @Test(
        "A SPIFFE identity, a host name and a subject are names as they stand",
        arguments: [
            "spiffe://example.org/ns/prod/sa/gate", "spiffe://a_b-c.example/x", "dns:gate.example.com",
            "subject:CN=gate,O=Example", "subject:CN=\\D0\\B0",
        ])
    func names(text: String) throws {
        #expect(try #require(CertificateName(text)).description == text)
    }

    @Test(
        "Patterns, other schemes and identities that SPIFFE does not allow are refused",
        arguments: [
            "", "gate.example.com", "dns:", "dns:*.example.com", "dns:a..b", "dns:a b", "subject:gate", "subject:",
            "https://example.org/x", "spiffe://", "spiffe://example.org", "spiffe://example.org/", "spiffe:///x",
            "spiffe://example.org/*", "spiffe://Example.org/x", "spiffe://example.org/a//b",
            "spiffe://example.org/../x",
            "spiffe://example.org/./x", "spiffe://example.org/x?y", "spiffe://example.org/x#y",
            "spiffe://user@example.org/x", "spiffe://example.org:443/x", "spiffe://example.org/x/",
            "SPIFFE://example.org/x", "spiffe://ex\u{e4}mple.org/x", "spiffe://example.org/\u{212a}",
        ])
    func refused(text: String) {
        #expect(CertificateName(text) == nil)
    }

    @Test("A name may have 2,048 characters and no more")
    func lengths() {
        let start = "spiffe://example.org/"
        #expect(CertificateName(start + String(repeating: "x", count: 2048 - start.count)) != nil)
        #expect(CertificateName(start + String(repeating: "x", count: 2049 - start.count)) == nil)
    }

    @Test("A certificate has the names that its fields say, and a common name is no host name")
    func ofCertificate() throws {
        let names = CertificateName.all(
            uris: ["spiffe://example.org/x"], dnsNames: ["a.example"], subject: "CN=b.example")
        #expect(names.count == 3)
        for text in ["spiffe://example.org/x", "dns:a.example", "subject:CN=b.example"] {
            #expect(names.contains(try #require(CertificateName(text))))
        }
        for text in [
            "dns:b.example", "subject:CN=b", "dns:example", "dns:A.example", "spiffe://example.org/x/y",
            "subject:CN=b.example,O=c",
        ] {
            #expect(!names.contains(try #require(CertificateName(text))))
        }
    }

    @Test("A certificate with two URIs has no SPIFFE identity")
    func severalURIs() throws {
        let (one, two) = ("spiffe://example.org/x", "spiffe://example.org/y")
        let names = CertificateName.all(uris: [one, two], dnsNames: [], subject: "CN=x")
        #expect(!names.contains(try #require(CertificateName(one))))
        #expect(!names.contains(try #require(CertificateName(two))))
    }

    @Test("A subject that Unicode calls equal to another one is another name")
    func equivalence() throws {
        // U+212A, the sign for kelvin, is canonically equal to K.
        let names = CertificateName.all(uris: [], dnsNames: ["\u{212a}.example"], subject: "CN=\u{212a}")
        #expect("\u{212a}" == "K")
        #expect(!names.contains(try #require(CertificateName("subject:CN=K"))))
        #expect(!names.contains(try #require(CertificateName("dns:K.example"))))
    }
}
