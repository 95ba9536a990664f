import Core
import Foundation
import Identity
import TestSupport
import Testing
import Transport

@testable import TLS

/// Handshakes with a client that shares no code with ours: the command `openssl s_client`.
@Suite(
    "The openssl command as the client", .serialized,
    .enabled(if: openssl != nil, "there is no openssl command"))
struct OpenSSLClientTests {
    /// What the client printed, and whether its handshake succeeded.
    private func connect(
        to echo: EncryptedEcho, _ folder: CertificateFolder, _ words: [String], input: String = ""
    ) throws -> (output: String, succeeded: Bool) {
        let arguments = [
            "s_client", "-connect", "\(echo.endpoint)", "-CAfile", folder.authorityPath, "-verify_return_error",
            "-verify_ip", "127.0.0.1",
        ]
        let result = try runProgram(try #require(openssl), arguments + words, input: input)
        return (result.output + result.errors, result.code == 0)
    }

    /// Connects, and ends when a line has come back: the ticket of the session comes before it.
    private func converse(with echo: EncryptedEcho, _ folder: CertificateFolder, _ words: [String]) throws {
        let process = Process()
        let (input, output) = (Pipe(), Pipe())
        process.executableURL = URL(fileURLWithPath: try #require(openssl))
        process.arguments =
            ["s_client", "-connect", "\(echo.endpoint)", "-CAfile", folder.authorityPath] + words
        (process.standardInput, process.standardOutput) = (input, output)
        process.standardError = FileHandle.nullDevice
        try process.run()
        try input.fileHandleForWriting.write(contentsOf: Data("a line\n".utf8))
        var printed = ""
        while !printed.contains("a line") {
            let more = output.fileHandleForReading.availableData
            guard !more.isEmpty else { break }
            printed += String(decoding: more, as: UTF8.self)
        }
        #expect(printed.contains("a line"))
        // It ends at the end of its input.
        try input.fileHandleForWriting.close()
        process.waitUntilExit()
    }

    private let alpn = ["-alpn", ApplicationProtocol.rootgate.rawValue]

    /// Renews the keys so many times, with a line of data behind each, and waits until that comes back. Returns how
    /// many have come back.
    private func renew(
        _ count: Int, _ letter: String, data: String, with echo: EncryptedEcho, _ folder: CertificateFolder
    ) throws -> Int {
        let process = Process()
        let (input, output) = (Pipe(), Pipe())
        process.executableURL = URL(fileURLWithPath: try #require(openssl))
        process.arguments = ["s_client", "-connect", "\(echo.endpoint)", "-CAfile", folder.authorityPath] + alpn
        (process.standardInput, process.standardOutput, process.standardError) = (input, output, output)
        try process.run()
        defer {
            try? input.fileHandleForWriting.close()
            process.waitUntilExit()
        }
        // The command may have ended.
        signal(SIGPIPE, SIG_IGN)
        func write(_ line: String) -> Bool {
            (try? input.fileHandleForWriting.write(contentsOf: Data("\(line)\n".utf8))) != nil
        }
        var printed = ""
        /// Waits until the command has printed a text. False when it ends before.
        func prints(_ text: String) -> Bool {
            while !printed.contains(text) {
                let more = output.fileHandleForReading.availableData
                guard !more.isEmpty else { return false }
                printed = String((printed + String(decoding: more, as: UTF8.self)).suffix(100_000))
            }
            return true
        }
        for number in 0..<count {
            // The command takes a letter as one only at the beginning of what it reads, so nothing may follow at once.
            printed = ""
            guard write(letter), prints("KEYUPDATE"), write("\(data) number \(number)."),
                prints(" number \(number).")
            else { return number }
        }
        return count
    }

    @Test("It may renew its keys now and then, but not many times without data", arguments: ["k", "K"])
    func keyUpdates(_ letter: String) throws {
        let folder = try CertificateFolder()
        let echo = try EncryptedEcho(folder.settings)
        let peer = try EncryptedPeer(echo.endpoint, folder.options)
        #expect(try renew(40, letter, data: "x", with: echo, folder) == Limits.recordsWithoutDataMax)
        #expect(peer.echoes())
        // Much data in between allows more.
        let data = String(repeating: "y", count: Limits.bytesPerRecordWithoutData)
        #expect(try renew(40, letter, data: data, with: echo, folder) == 40)
    }

    @Test("It agrees on TLS 1.3 and rootgate/1, and verifies the certificate")
    func agreement() throws {
        let folder = try CertificateFolder()
        let echo = try EncryptedEcho(folder.settings)
        let (output, succeeded) = try connect(to: echo, folder, alpn)
        #expect(succeeded, "\(output)")
        for text in [
            "New, TLSv1.3, Cipher is TLS_", "ALPN protocol: rootgate/1", "Verify return code: 0 (ok)",
            "Server public key is 256 bit",
        ] { #expect(output.contains(text)) }
    }

    @Test("TLS 1.2 is spoken with the flag only, and TLS 1.1 never")
    func versions() throws {
        let folder = try CertificateFolder()
        let strict = try EncryptedEcho(folder.settings)
        var settings = folder.settings
        settings.allowsTLS12 = true
        let lenient = try EncryptedEcho(settings)

        let refused = try connect(to: strict, folder, alpn + ["-tls1_2"])
        #expect(!refused.succeeded && refused.output.contains("alert protocol version"), "\(refused.output)")
        #expect(strict.says("its TLS version is not allowed"))
        let allowed = try connect(to: lenient, folder, alpn + ["-tls1_2"])
        #expect(allowed.succeeded && allowed.output.contains("New, TLSv1.2, Cipher is ECDHE-"), "\(allowed.output)")
        let newer = try connect(to: lenient, folder, alpn)
        #expect(newer.output.contains("New, TLSv1.3"), "\(newer.output)")
        for echo in [strict, lenient] {
            for version in ["-tls1_1", "-tls1"] {
                let old = try connect(to: echo, folder, alpn + [version, "-cipher", "DEFAULT:@SECLEVEL=0"])
                #expect(!old.succeeded && old.output.contains("alert protocol version"), "\(old.output)")
            }
        }
        #expect(lenient.says("its TLS version is not allowed"))
    }

    @Test("A client that says that it fell back to TLS 1.2 is refused")
    func fallback() throws {
        let folder = try CertificateFolder()
        var settings = folder.settings
        settings.allowsTLS12 = true
        let echo = try EncryptedEcho(settings)
        let result = try connect(to: echo, folder, alpn + ["-tls1_2", "-fallback_scsv"])
        #expect(!result.succeeded, "\(result.output)")
        #expect(echo.says("it fell back to an older TLS version (downgrade)"))
    }

    @Test("Ciphers without forward secrecy or authentication of the data are refused")
    func weakCiphers() throws {
        let folder = try CertificateFolder()
        var settings = folder.settings
        settings.allowsTLS12 = true
        let echo = try EncryptedEcho(settings)
        for cipher in ["ECDHE-ECDSA-AES128-SHA256", "AES128-GCM-SHA256", "ECDHE-ECDSA-AES256-SHA"] {
            let result = try connect(to: echo, folder, alpn + ["-tls1_2", "-cipher", cipher])
            #expect(!result.succeeded, "\(cipher): \(result.output)")
        }
        #expect(echo.says("it has no cipher, group or signature in common"))
    }

    @Test("Another application protocol, or none, is refused")
    func applicationProtocols() throws {
        let folder = try CertificateFolder()
        let echo = try EncryptedEcho(folder.settings)
        for words in [["-alpn", "http/1.1,h2"], ["-alpn", "rootgate/2"], []] {
            let count = echo.lines.value.count
            let result = try connect(to: echo, folder, words)
            #expect(!result.succeeded && result.output.contains("alert no application protocol"), "\(result.output)")
            #expect(becomesTrue { echo.lines.value.count > count })
            #expect(echo.lines.value.last?.contains("it does not offer the application protocol rootgate/1") == true)
        }
        #expect(try connect(to: echo, folder, ["-alpn", "h2,rootgate/1"]).succeeded)
    }

    @Test("It resumes a session with the ticket that it got")
    func resumption() throws {
        let folder = try CertificateFolder()
        let echo = try EncryptedEcho(folder.settings)
        let path = folder.directory.path + "/session"
        try converse(with: echo, folder, alpn + ["-sess_out", path])
        #expect(FileManager.default.fileExists(atPath: path))
        let second = try connect(to: echo, folder, alpn + ["-sess_in", path])
        #expect(second.output.contains("Reused, TLSv1.3"), "\(second.output)")
        // The ticket allows no early data, which could be sent again by whoever has recorded it.
        let early = folder.directory.path + "/early"
        try Data("early data\n".utf8).write(to: URL(fileURLWithPath: early))
        let third = try connect(to: echo, folder, alpn + ["-sess_in", path, "-early_data", early])
        #expect(third.output.contains("Reused, TLSv1.3"), "\(third.output)")
        #expect(third.output.contains("Early data was not sent"), "\(third.output)")
    }

    @Test("It gets in with a certificate when the service demands one, and not without")
    func mutual() throws {
        let folder = try CertificateFolder()
        let echo = try EncryptedEcho(folder.mutualSettings)
        let options = try folder.options(with: CertificatePlan { $0.usages = [.client] })
        let words = ["-cert", try #require(options.certificatePath), "-key", try #require(options.keyPath)]
        let result = try connect(to: echo, folder, alpn + words)
        #expect(result.succeeded && result.output.contains("Acceptable client certificate CA names"))
        #expect(becomesTrue { echo.opened.value == 1 })
        _ = try connect(to: echo, folder, alpn)
        #expect(echo.says("it has no certificate"))
    }
}

/// The path of the `openssl` command; `nil` when there is none.
private let openssl = programPath("openssl")
