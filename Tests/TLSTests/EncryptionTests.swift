import Core
import Foundation
import Identity
import TestSupport
import Testing
import Transport

@testable import TLS

@Suite("Encrypted connections", .serialized)
struct EncryptionTests {
    @Test("Bytes of every length come back as they were sent")
    func lengths() throws {
        let folder = try CertificateFolder()
        let echo = try EncryptedEcho(folder.settings)
        let peer = try EncryptedPeer(echo.endpoint, folder.options)
        var random = SeededGenerator(seed: runSeed)
        // A record has at most 16,384 bytes.
        let lengths = [1, 2, 100, 16_383, 16_384, 16_385, 32_768, 65_537, 300_000]
        for length in lengths { #expect(peer.echoes(random.bytes(length)), "\(length) bytes") }
        #expect((peer.stream as? TLSStream)?.version == "TLSv1.3")
    }

    @Test("Megabytes go in both directions at once")
    func bothDirections() throws {
        let folder = try CertificateFolder()
        let echo = try EncryptedEcho(folder.settings)
        let peer = try EncryptedPeer(echo.endpoint, folder.options)
        var random = SeededGenerator(seed: runSeed)
        let bytes = random.bytes(8 << 20)
        let received = Shared<[UInt8]>([])
        nonisolated(unsafe) let shared = peer
        onThreads(2) { number in
            if number == 0 { shared.send(bytes) } else { received.with { $0 = shared.receive(bytes.count) } }
        }
        #expect(received.value == bytes)
    }

    @Test("Many small pieces arrive in order, on many connections at once")
    func smallPieces() throws {
        let folder = try CertificateFolder()
        let echo = try EncryptedEcho(folder.settings)
        let dialer = try Dialer(echo.endpoint, tls: folder.options)
        let wrong = Shared(0)
        onThreads(8) { number in
            guard let peer = try? EncryptedPeer(dialer) else {
                wrong.increment()
                return
            }
            let bytes = (0..<2000).map { UInt8(truncatingIfNeeded: $0 * (number + 3)) }
            for byte in bytes { peer.send([byte]) }
            if peer.receive(bytes.count) != bytes { wrong.increment() }
        }
        #expect(wrong.value == 0)
    }

    @Test("A client that connects again resumes its session, and does not after the certificates were read again")
    func resumption() throws {
        let folder = try CertificateFolder()
        let echo = try EncryptedEcho(folder.settings)
        let dialer = try Dialer(echo.endpoint, tls: folder.options)
        for _ in 0..<4 { #expect(try EncryptedPeer(dialer).echoes()) }
        #expect(echo.resumed.value == 3)
        echo.tls.reload()
        for _ in 0..<3 { #expect(try EncryptedPeer(dialer).echoes()) }
        #expect(echo.resumed.value == 5)
    }

    @Test("The service learns a client's names, subject and fingerprint, also when a session is resumed")
    func clientCertificate() throws {
        let folder = try CertificateFolder()
        let echo = try EncryptedEcho(folder.mutualSettings)
        let plan = CertificatePlan {
            $0.commonName = "deck, \"writer\""
            $0.names = [.uri("spiffe://example.com/backend"), .dns("backend.example.com"), .uri("urn:second")]
            $0.usages = [.client]
        }
        let issuedAt = Int64(Date().timeIntervalSince1970)
        let issued = folder.authority.issue(plan)
        let dialer = try Dialer(echo.endpoint, tls: folder.options(with: issued))
        for _ in 0..<2 { #expect(try EncryptedPeer(dialer).echoes()) }
        #expect(echo.resumed.value == 1)
        let base64 = issued.certificate.split(separator: "\n").dropFirst().dropLast().joined()
        let der = try #require(Data(base64Encoded: base64))
        let fingerprint = try #require(Digest(ReferenceSHA256.hash(Array(der))))
        let endsAt = try #require(echo.certificates.value.first??.endsAt)
        #expect((3599...3660).contains(endsAt - issuedAt))
        let expected = PeerCertificate(
            uris: ["spiffe://example.com/backend", "urn:second"], dnsNames: ["backend.example.com"],
            subject: "CN=deck\\, \\\"writer\\\"", fingerprint: fingerprint, endsAt: endsAt)
        #expect(echo.certificates.value == [expected, expected])
    }

    @Test("A client without a certificate has none, and a plain socket neither")
    func noCertificate() throws {
        let folder = try CertificateFolder()
        let echo = try EncryptedEcho(folder.settings)
        #expect(try EncryptedPeer(echo.endpoint, folder.options).echoes())
        #expect(echo.certificates.value == [nil])
        #expect(PlainStream(-1).peerCertificate == nil)
    }

    @Test("A connection that ends without saying so is closed like any other")
    func abruptEnd() throws {
        let folder = try CertificateFolder()
        let echo = try EncryptedEcho(folder.settings)
        for howSudden in [SHUT_WR, SHUT_RDWR] {
            let peer = try EncryptedPeer(echo.endpoint, folder.options)
            #expect(peer.echoes())
            shutdown(peer.stream.descriptor, CInt(howSudden))
        }
        #expect(becomesTrue { echo.closed.value == 2 })
    }

    @Test("Bytes and the end that arrive together are both seen")
    func bytesAndEnd() throws {
        let folder = try CertificateFolder()
        let echo = try EncryptedEcho(folder.settings)
        for length in [1, 100, 20_000] {
            let peer = try EncryptedPeer(echo.endpoint, folder.options)
            peer.send([UInt8](repeating: 7, count: length))
            peer.stream.endSending()
        }
        #expect(becomesTrue { echo.closed.value == 3 })
    }

    @Test("Writing to a connection that the peer has closed does not end the process")
    func brokenPipe() throws {
        let folder = try CertificateFolder()
        let peer: EncryptedPeer
        do {
            let echo = try EncryptedEcho(folder.settings)
            peer = try EncryptedPeer(echo.endpoint, folder.options)
            #expect(peer.echoes())
        }
        // The echo is gone. The first bytes are answered with a reset, the next ones meet it.
        for _ in 0..<20 { peer.send([UInt8](repeating: 1, count: 100_000)) }
        #expect(peer.receive(1).isEmpty)
    }
}
