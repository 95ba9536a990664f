import Core
import Foundation
import Hashing
import Platform
@testable import Secrets
import TestSupport
import Testing

private let day: UInt64 = 24 * 3600 * 1000
private let start: UInt64 = 1_800_000_000_000

@Suite("The file with the secret")
struct SecretFileTests {
    private let scratch = ScratchDirectory()
    private var file: SecretFile { SecretFile(dataDirectory: scratch.path) }

    private func mode(of path: String) throws -> Int {
        try #require(FileManager.default.attributesOfItem(atPath: path)[.posixPermissions] as? Int)
    }

    private func secretBytes(_ generation: SecretGeneration) -> [UInt8] { generation.secret.withBytes { Array($0) } }

    /// Why the file can't be loaded.
    private func failure(_ file: SecretFile) -> String {
        do throws(SecretFailure) {
            _ = try file.load()
            return "it was loaded"
        } catch {
            return error.description
        }
    }

    @Test("A missing file is made with mode 0600, and read again with the same secret")
    func made() throws {
        let made = try file.loadOrMake(at: start)
        #expect(made.isNew && made.secret.previous == nil && made.secret.current.madeAt == start)
        #expect(try mode(of: file.path) == 0o600)
        let again = try file.loadOrMake(at: start + 1)
        #expect(!again.isNew && again.secret.current.identifier == made.secret.current.identifier)
        #expect(secretBytes(again.secret.current) == secretBytes(made.secret.current))
        #expect(secretBytes(made.secret.current).contains { $0 != 0 })
        #expect(try FileManager.default.contentsOfDirectory(atPath: scratch.path) == ["secret"])
    }

    @Test("Two files have different secrets and different names of their generations")
    func different() throws {
        let (one, two) = (SecretFile(path: scratch.path + "/one"), SecretFile(path: scratch.path + "/two"))
        let (first, second) = (try one.loadOrMake(at: start).secret, try two.loadOrMake(at: start).secret)
        #expect(first.current.identifier != second.current.identifier)
        #expect(secretBytes(first.current) != secretBytes(second.current))
    }

    @Test(
        "A file that others can read, write or run is refused, with its name and its mode",
        arguments: [0o640, 0o604, 0o620, 0o602, 0o610, 0o601, 0o777])
    func openFile(_ mode: Int) throws {
        _ = try file.loadOrMake(at: start)
        chmod(file.path, mode_t(mode))
        #expect(failure(file).contains("\(file.path): its mode is 0\(String(mode, radix: 8))"))
        // It is neither replaced nor rotated.
        #expect(throws: SecretFailure.self) { try file.loadOrMake(at: start) }
        #expect(throws: SecretFailure.self) { try file.rotate(at: start) }
        chmod(file.path, 0o400)
        _ = try file.load()
    }

    @Test("A file of another user is refused", .enabled(if: geteuid() == 0, "only root can give a file away"))
    func foreignFile() throws {
        _ = try file.loadOrMake(at: start)
        // This process is root, whose files everybody accepts, so the file goes to somebody else.
        #expect(chown(file.path, 12_345, 12_345) == 0)
        #expect(failure(file).contains("belongs to user 12345"))
        #expect(failure(file).contains("run rootgate as user 12345"))
    }

    @Test("A file of any other length is refused as damaged, with its length")
    func wrongLengths() throws {
        _ = try file.loadOrMake(at: start)
        let whole = [UInt8](try Data(contentsOf: URL(fileURLWithPath: file.path)))
        try #require(whole.count == SecretFile.byteCount)
        for count in [0, 1, 31, 32, 120, SecretFile.byteCount - 1, SecretFile.byteCount + 1] {
            try Data((whole + [0]).prefix(count)).write(to: URL(fileURLWithPath: file.path))
            chmod(file.path, 0o600)
            #expect(failure(file).contains("it has \(count) bytes, not 152"))
        }
    }

    @Test("A file with any one bit changed is refused as damaged")
    func everyBit() throws {
        _ = try file.rotate(at: start)
        _ = try file.rotate(at: start + day)
        let whole = [UInt8](try Data(contentsOf: URL(fileURLWithPath: file.path)))
        let handle = try #require(FileHandle(forWritingAtPath: file.path))
        for bit in 0..<8 * whole.count {
            var damaged = whole
            damaged[bit / 8] ^= 1 << UInt8(bit % 8)
            try handle.seek(toOffset: 0)
            try handle.write(contentsOf: Data(damaged))
            #expect(failure(file).contains("is damaged"), "bit \(bit)")
        }
        try handle.seek(toOffset: 0)
        try handle.write(contentsOf: Data(whole))
        #expect(try file.load().previous != nil)
    }

    @Test("A link, a folder and a pipe are no files with a secret")
    func noFiles() throws {
        let real = SecretFile(path: scratch.path + "/real")
        _ = try real.loadOrMake(at: start)
        #expect(symlink(real.path, file.path) == 0)
        #expect(failure(file).contains("not a plain file"))
        unlink(file.path)
        mkdir(file.path, 0o700)
        #expect(failure(file).contains("not a plain file"))
        rmdir(file.path)
        mkfifo(file.path, 0o600)
        #expect(failure(file).contains("not a plain file"))
        #expect(failure(SecretFile(path: scratch.path + "/none")).contains("there is no secret at"))
    }

    @Test("A rotation keeps the generation before, and a second one is refused until that one has expired")
    func rotation() throws {
        let first = try file.loadOrMake(at: start).secret
        let second = try file.rotate(at: start + 5)
        #expect(second.previous?.identifier == first.current.identifier)
        #expect(second.current.identifier != first.current.identifier)
        #expect(secretBytes(second.current) != secretBytes(first.current))
        for time in [start, start + 5, start + 5 + day - 1] {
            do throws(SecretFailure) {
                _ = try file.rotate(at: time)
                Issue.record("a second rotation at \(time) was allowed")
            } catch {
                #expect(error.description.contains("--drop-previous"))
            }
        }
        let loaded = try file.load()
        #expect(loaded.current.identifier == second.current.identifier)
        #expect(secretBytes(try #require(loaded.previous)) == secretBytes(first.current))
        let third = try file.rotate(at: start + 5 + day)
        #expect(third.previous?.identifier == second.current.identifier)
        #expect(try mode(of: file.path) == 0o600)
    }

    @Test("A rotation that drops what was before is always allowed, and leaves one generation")
    func dropping() throws {
        let first = try file.rotate(at: start)
        let second = try file.rotate(at: start + 1)
        let third = try file.rotate(at: start + 2, dropsPrevious: true)
        #expect(third.previous == nil)
        #expect(![first, second].map(\.current.identifier).contains(third.current.identifier))
        #expect(try file.load().previous == nil)
    }

    @Test("The generation before is no longer in force when all that it authenticated has expired")
    func settled() throws {
        let secret = try SecretFile(path: scratch.path + "/s").loadOrMake(at: start).secret.rotated(at: start)
        #expect(secret.settled(at: start + day - 1).previous != nil)
        #expect(secret.settled(at: start + day).previous == nil)
        // A date that was set back keeps it longer, never shorter.
        #expect(secret.settled(at: 0).previous != nil)
    }

    @Test("What a killed process has left of a rotation is replaced, and was never the secret")
    func remains() throws {
        let known = try file.loadOrMake(at: start).secret
        try Data("torn".utf8).write(to: URL(fileURLWithPath: file.path + ".new"))
        #expect(try file.load().current.identifier == known.current.identifier)
        _ = try file.rotate(at: start)
        #expect(try FileManager.default.contentsOfDirectory(atPath: scratch.path) == ["secret"])
    }

    @Test("A rotation in a folder that is missing says so, and makes nothing")
    func missingFolder() {
        let file = SecretFile(path: scratch.path + "/none/secret")
        #expect(throws: SecretFailure.self) { try file.rotate(at: start) }
        #expect(!FileManager.default.fileExists(atPath: file.path))
    }

    @Test(
        "A rotation waits while another process holds the folder",
        .enabled(if: LockHolder.isAvailable, "this system has no flock"))
    func lockedFolder() throws {
        let first = try file.loadOrMake(at: start).secret
        let holder = try #require(LockHolder(file: scratch.path))
        let rotated = Shared<UInt64?>(nil)
        let file = file
        Thread {
            let secret = try? file.rotate(at: start + 1)
            rotated.with { $0 = secret?.current.identifier ?? 0 }
        }.start()
        usleep(200_000)
        #expect(rotated.value == nil)
        #expect(try file.load().current.identifier == first.current.identifier)
        holder.letGo()
        #expect(becomesTrue { rotated.value != nil })
        #expect(try file.load().current.identifier == rotated.value)
    }

    @Test("Rotations at the same time lose no generation: of many, one is allowed")
    func concurrentRotations() throws {
        let first = try file.loadOrMake(at: start).secret
        let rotated = Shared<[RootSecret]>([])
        onThreads(4) { _ in
            if let secret = try? file.rotate(at: start + 1) { rotated.with { $0.append(secret) } }
        }
        #expect(rotated.value.count == 1)
        #expect(rotated.value.first?.previous?.identifier == first.current.identifier)
    }
}

@Suite("Keys of the secret")
struct RootSecretTests {
    private func tag(_ authenticator: MessageAuthenticator) -> Digest {
        [UInt8]("message".utf8).withUnsafeBytes { authenticator.tag(of: $0) }
    }

    @Test("Each purpose and each generation has a key of its own, by HKDF with the purpose's label")
    func purposes() throws {
        let random = RandomSource.seeded(runSeed)
        let secret = RootSecret(current: SecretGeneration(at: 0, random: random)).rotated(at: 1, random: random)
        var tags: Set<Digest> = []
        for generation in [secret.current, secret.previous].compactMap({ $0 }) {
            let bytes = generation.secret.withBytes { Array($0) }
            for (purpose, label) in [
                (SecretPurpose.challenges, "rootgate challenge v1"), (.grants, "rootgate grant v1"),
                (.audits, "rootgate audit v1"), (.snapshots, "rootgate snapshot v1"),
            ] {
                let found = tag(try generation.authenticator(for: purpose))
                // RFC 5869 written out: extract with zeros as the salt, expand once.
                let extracted = tag(of: bytes, key: [UInt8](repeating: 0, count: 32))
                let expanded = tag(of: Array(label.utf8) + [1], key: extracted)
                #expect(found.bytes == tag(of: Array("message".utf8), key: expanded), "\(label)")
                tags.insert(found)
            }
        }
        #expect(SecretPurpose.allCases.count == 4 && tags.count == 8)
    }

    /// HMAC by its definition, on the reference SHA-256.
    private func tag(of message: [UInt8], key: [UInt8]) -> [UInt8] {
        let block = key + [UInt8](repeating: 0, count: 64 - key.count)
        let inner = ReferenceSHA256.hash(block.map { $0 ^ 0x36 } + message)
        return ReferenceSHA256.hash(block.map { $0 ^ 0x5c } + inner)
    }

    @Test("A secret's failure never shows its bytes")
    func noBytesInTexts() throws {
        let scratch = ScratchDirectory()
        let file = SecretFile(dataDirectory: scratch.path)
        let secret = try file.loadOrMake(at: start).secret
        let text = secret.current.secret.withBytes { Array($0).hexadecimal }
        #expect(!"\(secret) \(secret.current)".contains(text))
        #expect(String(reflecting: secret.current).count < 1000)
    }
}
