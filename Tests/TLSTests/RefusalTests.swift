import Core
import Foundation
import Identity
import TestSupport
import Testing
import Transport

@testable import TLS

@Suite("Refused certificates and names", .serialized)
struct RefusalTests {
    @Test(
        "A client says what is wrong with the service's certificate",
        arguments: [
            (CertificatePlan { $0.validTo = -10 }, "its certificate has expired"),
            (CertificatePlan { $0.validFrom = 1800 }, "its certificate is not valid yet"),
            (CertificatePlan { $0.names = [.dns("other.example.com")] }, "its certificate is for another name"),
            (CertificatePlan { $0.names = [.dns("127.0.0.1")] }, "its certificate is for another name"),
            (
                CertificatePlan {
                    $0.names = []
                    $0.commonName = "localhost"
                }, "its certificate is for another name"
            ),
            (CertificatePlan { $0.usages = [.client] }, "its certificate is not for this usage"),
        ])
    func serverCertificate(plan: CertificatePlan, reason: String) throws {
        let folder = try CertificateFolder { $0 = plan }
        let echo = try EncryptedEcho(folder.settings)
        let found = try #require(refusal(echo.endpoint, folder.options))
        #expect(found.contains(reason), "\(found)")
        #expect(echo.opened.value == 0)
    }

    @Test("A client trusts neither an unknown authority nor a certificate that has signed itself")
    func unknownAuthorities() throws {
        let folder = try CertificateFolder()
        let echo = try EncryptedEcho(folder.settings)
        let stranger = try SimulatedAuthority("a stranger").write(to: folder.directory.path, as: "stranger")
        let unknown = try #require(refusal(echo.endpoint, TLSOptions(authoritiesPath: stranger)))
        #expect(unknown.contains("its certificate is from an unknown authority"), "\(unknown)")
        let system = try #require(refusal(echo.endpoint, TLSOptions()))
        #expect(system.contains("its certificate is from an unknown authority"), "\(system)")
        #expect(echo.says("it refused this side's certificate: unknown authority"))

        try folder.replace(SimulatedAuthority.selfSigned())
        echo.tls.reload()
        let own = try #require(refusal(echo.endpoint, folder.options))
        #expect(own.contains("its certificate is self-signed"), "\(own)")
    }

    @Test("A host name is matched with names, an address with addresses, and an option overrides both")
    func names() throws {
        let folder = try CertificateFolder { $0.names = [.dns("gate.example.com"), .address([127, 0, 0, 1])] }
        let echo = try EncryptedEcho(folder.settings)
        var options = folder.options
        #expect(refusal(echo.endpoint, options) == nil)
        let byName = Endpoint(host: "localhost", port: echo.endpoint.port)
        #expect(refusal(byName, options)?.contains("its certificate is for another name than localhost") == true)
        options.serverName = "gate.example.com"
        #expect(refusal(byName, options) == nil)
        options.serverName = "127.0.0.2"
        let byAddress = refusal(echo.endpoint, options)
        #expect(byAddress?.contains("its certificate is for another name than 127.0.0.2") == true)
    }

    @Test(
        "The service says what is wrong with a client's certificate, and the client learns that it is refused",
        arguments: [
            (CertificatePlan { $0.validTo = -10 }, "its certificate has expired", "expired"),
            (CertificatePlan { $0.validFrom = 1800 }, "its certificate is not valid yet", "certificate"),
            (CertificatePlan { $0.usages = [.server] }, "its certificate is not for this usage", "not for this usage"),
            (
                CertificatePlan { $0.names = [.dns("good.example.com\0.evil.example.com")] },
                "its certificate has a name with a byte 0", "closed"
            ),
            (CertificatePlan { $0.commonName = "good\0evil" }, "its certificate has a name with a byte 0", "closed"),
            (
                CertificatePlan { $0.names = [.uri("spiffe://a/\0b")] }, "its certificate has a name with a byte 0",
                "closed"
            ),
        ])
    func clientCertificate(plan: CertificatePlan, line: String, answer: String) throws {
        let folder = try CertificateFolder()
        let echo = try EncryptedEcho(folder.mutualSettings)
        let found = try #require(refusal(echo.endpoint, try folder.options(with: plan)))
        #expect(found.contains(answer), "\(found)")
        #expect(echo.says("refused a TLS connection from 127.0.0.1:"))
        #expect(echo.says(line), "\(echo.lines.value)")
        #expect(echo.opened.value == 0)
    }

    @Test("A client without a certificate, with a stranger's or with one that has signed itself is refused")
    func wrongClients() throws {
        let folder = try CertificateFolder()
        let echo = try EncryptedEcho(folder.mutualSettings)
        let missing = try #require(refusal(echo.endpoint, folder.options))
        #expect(missing.contains("it demands a certificate of this side"), "\(missing)")
        #expect(echo.says("it has no certificate"))

        let authority = SimulatedAuthority("a stranger")
        let stranger = try folder.options(with: CertificatePlan(), of: authority, as: "stranger")
        // The chain ends with the stranger's own certificate. That does not make the first one self-signed.
        let chain = try #require(stranger.certificatePath)
        let rootPath = try authority.write(to: folder.directory.path, as: "root")
        let root = try String(contentsOfFile: rootPath, encoding: .utf8)
        let first = try String(contentsOfFile: chain, encoding: .utf8)
        try (first + root).write(toFile: chain, atomically: true, encoding: .utf8)
        let wrong = try #require(refusal(echo.endpoint, stranger))
        #expect(wrong.contains("it refused this side's certificate: unknown authority"), "\(wrong)")
        #expect(echo.says("its certificate is from an unknown authority"))
        #expect(!echo.lines.value.contains { $0.contains("self-signed") })

        let own = try folder.options(with: SimulatedAuthority.selfSigned(), as: "own")
        #expect(refusal(echo.endpoint, own) != nil)
        #expect(echo.says("its certificate is self-signed"))
        #expect(echo.opened.value == 0)

        #expect(refusal(echo.endpoint, try folder.options(with: CertificatePlan(), as: "good")) == nil)
    }

    @Test("A certificate whose only name is the common name of its subject is for no host")
    func commonNameOnly() throws {
        let folder = try CertificateFolder {
            $0.names = []
            $0.commonName = "localhost"
        }
        let echo = try EncryptedEcho(folder.settings)
        let found = refusal(Endpoint(host: "localhost", port: echo.endpoint.port), folder.options)
        #expect(found?.contains("its certificate is for another name") == true, "\(found ?? "it is trusted")")
    }

    @Test("As many authorities as the limit may stand between a certificate and a trusted one, and one more may not")
    func longChains() throws {
        let folder = try CertificateFolder()
        let echo = try EncryptedEcho(folder.mutualSettings)
        for excess in [0, 1] {
            var issuer = folder.authority
            for number in 0..<Limits.certificateChainMax + excess {
                issuer = SimulatedAuthority("authority \(number)", signedBy: issuer)
            }
            let own = issuer.issue()
            let chain = SimulatedCertificate(certificate: own.certificate + issuer.chain, key: own.key)
            let found = refusal(echo.endpoint, try folder.options(with: chain))
            #expect((found == nil) == (excess == 0), "\(found ?? "it got in")")
        }
        #expect(echo.says("its chain of certificates is too long"), "\(echo.lines.value)")
    }

    /// An authority between the trusted one and a certificate, and what the service says of a chain with it; `nil`: it
    /// accepts the chain.
    struct Intermediate: CustomTestStringConvertible, Sendable {
        let testDescription: String
        let line: String?
        let make: @Sendable (SimulatedAuthority) -> SimulatedAuthority

        init(
            _ name: String, _ line: String?, _ make: @escaping @Sendable (SimulatedAuthority) -> SimulatedAuthority
        ) {
            (testDescription, self.line, self.make) = (name, line, make)
        }
    }

    private static let constraints = "its certificate has a name that its authority may not sign (name constraints)"

    @Test(
        "An authority in a chain is held to what its certificate says",
        arguments: [
            Intermediate("good", nil) { SimulatedAuthority("good", signedBy: $0) },
            Intermediate("expired", "its certificate has expired") {
                SimulatedAuthority("expired", signedBy: $0) { $0.validTo = -10 }
            },
            Intermediate("not valid yet", "its certificate is not valid yet") {
                SimulatedAuthority("not valid yet", signedBy: $0) { $0.validFrom = 1800 }
            },
            Intermediate("no authority", "its certificate is signed by one that is no authority") {
                SimulatedAuthority("no authority", signedBy: $0) { $0.isAuthority = false }
            },
            Intermediate("one authority too many", "its chain has more authorities than one of them allows") {
                SimulatedAuthority(
                    "below", signedBy: SimulatedAuthority("above", signedBy: $0) { $0.authoritiesMax = 0 })
            },
            Intermediate("for another domain", constraints) {
                SimulatedAuthority("for another domain", signedBy: $0) { $0.permittedDomain = "example.com" }
            },
            Intermediate("for this domain", nil) {
                SimulatedAuthority("for this domain", signedBy: $0) { $0.permittedDomain = "localhost" }
            },
            Intermediate("the trusted one's name with another key", "its certificate's signature is wrong") {
                _ in
                SimulatedAuthority("simulated authority", signedBy: SimulatedAuthority("stranger"))
            },
        ])
    func intermediates(intermediate: Intermediate) throws {
        let folder = try CertificateFolder()
        let echo = try EncryptedEcho(folder.mutualSettings)
        let issuer = intermediate.make(folder.authority)
        let own = issuer.issue(CertificatePlan { $0.names = [.dns("localhost")] })
        let chain = SimulatedCertificate(certificate: own.certificate + issuer.chain, key: own.key)
        let found = refusal(echo.endpoint, try folder.options(with: chain))
        #expect((found == nil) == (intermediate.line == nil), "\(found ?? "it got in")")
        if let line = intermediate.line { #expect(echo.says(line), "\(echo.lines.value)") }
        #expect(echo.opened.value == (found == nil ? 1 : 0))
    }

    @Test("A peer's certificates that have more bytes than the limit are refused")
    func largeChains() throws {
        let folder = try CertificateFolder()
        let echo = try EncryptedEcho(folder.mutualSettings)
        let own = folder.authority.issue()
        // What base64 takes more than the certificate itself is a third.
        let count = Limits.certificateListBytesMax / (folder.authority.pem.utf8.count * 3 / 4 - 60) + 2
        for copies in [count / 2, count] {
            let chain = String(repeating: folder.authority.pem, count: copies)
            let found = refusal(
                echo.endpoint,
                try folder.options(with: SimulatedCertificate(certificate: own.certificate + chain, key: own.key)))
            #expect((found == nil) == (copies < count), "\(found ?? "it got in") with \(copies)")
        }
        #expect(echo.says("its chain of certificates is too large"), "\(echo.lines.value)")
    }

    @Test("A session of a certificate that has expired since is not resumed")
    func expiryOfSession() throws {
        let folder = try CertificateFolder()
        let echo = try EncryptedEcho(folder.mutualSettings)
        let dialer = try Dialer(echo.endpoint, tls: folder.options(with: CertificatePlan { $0.validTo = 3 }))
        #expect(try EncryptedPeer(dialer).echoes())
        Thread.sleep(forTimeInterval: 4.1)
        let peer = try? EncryptedPeer(dialer)
        #expect(peer?.isTurnedAway() ?? true)
        #expect(echo.says("its certificate has expired"))
        #expect(echo.opened.value == 1)
    }

    @Test(
        "Files that can't be used are named with what is wrong",
        arguments: [
            ("missing", "missing", "the certificate DIR/missing.pem can't be read: No such file or directory"),
            ("server", "other", "the key DIR/other.key belongs to another certificate than DIR/server.pem"),
            ("broken", "server", "the certificate DIR/broken.pem can't be used: "),
            ("server", "broken", "the key DIR/broken.key can't be used: "),
            ("server", "secret", "the key DIR/secret.key can't be used: "),
        ])
    func files(certificate: String, key: String, reason: String) throws {
        let folder = try CertificateFolder()
        let path = folder.directory.path
        _ = try folder.authority.issue().write(to: folder.directory.path, as: "other")
        _ = try SimulatedCertificate(certificate: "no certificate\n", key: "no key\n").write(
            to: path, as: "broken")
        let made = succeeds(
            "openssl",
            ["ec", "-aes128", "-passout", "pass:x", "-in", "\(path)/server.key", "-out", "\(path)/secret.key"])
        guard made || key != "secret" else {
            print("SKIPPED: openssl has made no key with a password")
            return
        }
        do throws(TLSFailure) {
            _ = try ServerTLS(
                ServerTLSSettings(certificatePath: "\(path)/\(certificate).pem", keyPath: "\(path)/\(key).key"))
            Issue.record("the files were used")
        } catch {
            let line = error.description.replacing(path, with: "DIR")
            #expect(line.hasPrefix(reason), "\(line)")
            #expect(!line.contains("\n"))
        }
    }
}
