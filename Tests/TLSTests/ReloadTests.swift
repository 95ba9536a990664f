import Core
import Foundation
import Identity
import TestSupport
import Testing
import Transport

@testable import TLS

@Suite("Replacing certificates while the service runs", .serialized)
struct ReloadTests {
    @Test("New connections get the new certificate soon after the files change, and the old ones go on")
    func change() throws {
        let folder = try CertificateFolder()
        let echo = try EncryptedEcho(folder.settings)
        let early = try EncryptedPeer(echo.endpoint, folder.options)
        #expect(early.echoes())
        // Only who trusts the new authority can get in with it.
        let second = SimulatedAuthority("a second authority")
        let options = TLSOptions(authoritiesPath: try second.write(to: folder.directory.path, as: "second"))
        #expect(refusal(echo.endpoint, options) != nil)
        try folder.replace(second.issue())
        #expect(becomesTrue { refusal(echo.endpoint, options) == nil })
        #expect(refusal(echo.endpoint, folder.options) != nil)
        #expect(early.echoes())
        #expect(echo.says("the certificates were read again: CN=a test, valid until "))
    }

    @Test("A broken file keeps the old certificate and says so, and a good one is read after it")
    func broken() throws {
        let folder = try CertificateFolder()
        let echo = try EncryptedEcho(folder.settings)
        let other = folder.authority.issue()
        try folder.replace(SimulatedCertificate(certificate: "no certificate", key: other.key))
        #expect(echo.says("can't be used"))
        #expect(echo.says("the certificates that were in use stay in use"))
        #expect(refusal(echo.endpoint, folder.options) == nil)
        try FileManager.default.removeItem(atPath: folder.settings.certificatePath)
        #expect(echo.says("can't be read: No such file or directory"))
        #expect(refusal(echo.endpoint, folder.options) == nil)
        // Nobody waits for whoever may write to a pipe.
        #expect(mkfifo(folder.settings.certificatePath, 0o600) == 0)
        #expect(echo.says("can't be read: it is no plain file"))
        #expect(refusal(echo.endpoint, folder.options) == nil)
        try FileManager.default.removeItem(atPath: folder.settings.certificatePath)
        try folder.replace(other)
        #expect(echo.says("the certificates were read again"))
        #expect(refusal(echo.endpoint, folder.options) == nil)
    }

    @Test("A key that is written a little later than its certificate does no harm")
    func mismatch() throws {
        let folder = try CertificateFolder()
        let echo = try EncryptedEcho(folder.settings)
        let other = folder.authority.issue()
        let key = try Data(contentsOf: URL(fileURLWithPath: folder.settings.keyPath))
        try folder.replace(
            SimulatedCertificate(certificate: other.certificate, key: String(decoding: key, as: UTF8.self)))
        echo.tls.reload()
        #expect(echo.says("belongs to another certificate"))
        #expect(refusal(echo.endpoint, folder.options) == nil)
        try folder.replace(other)
        #expect(echo.says("the certificates were read again"))
    }

    @Test("A hundred new certificates under load drop no connection and refuse none")
    func underLoad() throws {
        let folder = try CertificateFolder()
        let echo = try EncryptedEcho(folder.mutualSettings)
        let dialer = try Dialer(echo.endpoint, tls: folder.options(with: CertificatePlan()))
        let (isOver, failed, rounds, newcomers) = (Shared(false), Shared(0), Shared(0), Shared(0))
        let count = 100
        let issued = (0..<count).map { number in
            folder.authority.issue(CertificatePlan { $0.commonName = "certificate \(number)" })
        }
        let (path, tls) = (folder.directory.path, echo.tls)
        let rotating = Thread {
            for certificate in issued {
                // Who connects meanwhile has a moment with each certificate.
                let begun = newcomers.value
                if (try? certificate.write(to: path, as: "server")) == nil { failed.increment() }
                tls.reload()
                if !becomesTrue({ newcomers.value > begun }) { failed.increment() }
            }
            isOver.with { $0 = true }
        }
        rotating.start()
        onThreads(4) { number in
            guard let lasting = try? EncryptedPeer(dialer) else {
                failed.increment()
                return
            }
            while !isOver.value {
                if !lasting.echoes() { failed.increment() }
                if rounds.increment() % 4 == number {
                    let isIn = (try? EncryptedPeer(dialer))?.echoes() == true
                    (isIn ? newcomers : failed).increment()
                }
            }
        }
        #expect(failed.value == 0)
        #expect(newcomers.value >= count)
        // A look between the writing of a certificate and that of its key finds them not to match, and keeps the last.
        for number in 0..<count { #expect(echo.says("the certificates were read again: CN=certificate \(number), ")) }
        print("\(count) certificates, \(newcomers.value) new connections, \(rounds.value) echoes, 0 failed")
    }

    @Test("A certificate that is out of time is used, and a line says so")
    func outOfTime() throws {
        let folder = try CertificateFolder { $0.validTo = -10 }
        let echo = try EncryptedEcho(folder.settings)
        #expect(echo.says("has expired: clients will refuse it"))
        try folder.replace(folder.authority.issue(CertificatePlan { $0.validFrom = 1000 }))
        #expect(echo.says("is not valid yet: clients will refuse it"))
    }

    @Test("A client reads its own files again when they have changed, and keeps what it has when they are broken")
    func clientFiles() throws {
        let folder = try CertificateFolder()
        let echo = try EncryptedEcho(folder.mutualSettings)
        let dialer = try Dialer(echo.endpoint, tls: folder.options(with: CertificatePlan { $0.commonName = "first" }))
        #expect(try EncryptedPeer(dialer).echoes())
        _ = try folder.options(with: CertificatePlan { $0.commonName = "second" })
        #expect(try EncryptedPeer(dialer).echoes())
        _ = try folder.options(with: SimulatedCertificate(certificate: "none", key: "none"))
        #expect(try EncryptedPeer(dialer).echoes())
        #expect(echo.certificates.value.map(\.?.subject) == ["CN=first", "CN=second", "CN=second"])
    }
}
