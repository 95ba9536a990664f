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
        #expect(made.isNew && made.secret.previous == nil && made.secret.current.inUseAt == start)
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

    /// Expects that `body` is refused with a text, and that the file stays as it is.
    private func expectRefusal(_ text: String, _ body: () throws(SecretFailure) -> Void) throws {
        let before = try? Data(contentsOf: URL(fileURLWithPath: file.path))
        let failure = #expect(throws: SecretFailure.self, performing: body)
        #expect(failure?.description.contains(text) == true, "\(String(describing: failure))")
        #expect((try? Data(contentsOf: URL(fileURLWithPath: file.path))) == before)
    }

    @Test("A prepared generation is kept beside the present one, which goes on; then it takes its place")
    func steps() throws {
        let first = try file.loadOrMake(at: start).secret.current
        let prepared = try file.prepare(at: start + 5)
        let next = try #require(prepared.next)
        #expect(prepared.current.identifier == first.identifier && prepared.previous == nil)
        #expect(next.identifier != first.identifier && secretBytes(next) != secretBytes(first))
        let loaded = try file.load()
        #expect(loaded.current.identifier == first.identifier && loaded.current.inUseAt == start)
        #expect(loaded.next.map(secretBytes) == secretBytes(next) && loaded.previous == nil)
        #expect(try mode(of: file.path) == 0o600)
        _ = try file.usePrepared(at: start + 7)
        let used = try file.load()
        #expect(used.current.identifier == next.identifier && secretBytes(used.current) == secretBytes(next))
        #expect(used.previous.map(secretBytes) == secretBytes(first) && used.next == nil)
    }

    @Test("The generation before a prepared one is valid for a day after the day that the services may take to use it")
    func spread() throws {
        _ = try file.loadOrMake(at: start)
        _ = try file.prepare(at: start)
        // Also when it was prepared long ago.
        let used = try file.usePrepared(at: start + 30 * day)
        #expect(used.settled(at: start + 32 * day - 1).previous != nil)
        #expect(used.settled(at: start + 32 * day).previous == nil)
        try expectRefusal("for 25 hours more") { () throws(SecretFailure) in
            _ = try file.prepare(at: start + 31 * day)
        }
        let again = try file.prepare(at: start + 32 * day)
        #expect(again.current.identifier == used.current.identifier && again.previous == nil)
        #expect(again.generations.count == 2)
    }

    @Test("A prepared generation stays, however long it waits")
    func waiting() throws {
        _ = try file.loadOrMake(at: start)
        let prepared = try file.prepare(at: start)
        for time in [0, start, start + 3650 * day, .max] {
            #expect(prepared.settled(at: time).next?.identifier == prepared.next?.identifier, "\(time)")
        }
    }

    @Test("Preparing twice is refused, because some services may have the first one")
    func preparedTwice() throws {
        _ = try file.loadOrMake(at: start)
        _ = try file.prepare(at: start)
        for time in [start, start + 100 * day] {
            try expectRefusal("--use-prepared") { () throws(SecretFailure) in _ = try file.prepare(at: time) }
        }
    }

    @Test("A rotation while a generation is prepared is refused, because no service would know the fresh one")
    func rotatedWhilePrepared() throws {
        _ = try file.loadOrMake(at: start)
        _ = try file.prepare(at: start)
        for time in [start, start + 100 * day] {
            try expectRefusal("--use-prepared") { () throws(SecretFailure) in _ = try file.rotate(at: time) }
        }
    }

    @Test("Without a prepared generation none is used: not at the beginning, not after a rotation, and not twice")
    func nothingPrepared() throws {
        func expectNone() throws {
            try expectRefusal("--prepare") { () throws(SecretFailure) in _ = try file.usePrepared(at: start) }
        }
        _ = try file.loadOrMake(at: start)
        try expectNone()
        _ = try file.prepare(at: start)
        _ = try file.usePrepared(at: start)
        try expectNone()
        _ = try file.rotate(at: start + 2 * day)
        try expectNone()
    }

    @Test("A generation is prepared only when the one before has expired, and only in a file that is there")
    func noRoom() throws {
        try expectRefusal("there is no secret at") { () throws(SecretFailure) in _ = try file.prepare(at: start) }
        try expectRefusal("there is no secret at") { () throws(SecretFailure) in _ = try file.usePrepared(at: start) }
        #expect(try FileManager.default.contentsOfDirectory(atPath: scratch.path).isEmpty)
        _ = try file.loadOrMake(at: start)
        _ = try file.rotate(at: start)
        for time in [0, start, start + day - 1] {
            try expectRefusal("more, so wait") { () throws(SecretFailure) in _ = try file.prepare(at: time) }
        }
        let prepared = try file.prepare(at: start + day)
        #expect(prepared.next != nil && prepared.previous == nil)
    }

    @Test("A rotation that drops what was before drops a prepared generation, too")
    func droppingPrepared() throws {
        _ = try file.loadOrMake(at: start)
        let prepared = try file.prepare(at: start)
        let fresh = try file.rotate(at: start + 1, dropsPrevious: true)
        #expect(fresh.generations.count == 1)
        #expect(!prepared.generations.map(\.identifier).contains(fresh.current.identifier))
        #expect(try file.load().generations.map(\.identifier) == [fresh.current.identifier])
    }

    @Test("Files are read by their layout: one generation, one before or a prepared one beside it, and nothing else")
    func layout() throws {
        // Written out, without the code that writes files.
        func write(holds: UInt8, version: UInt8 = 1) throws {
            var bytes = Array("rootgate secret\n".utf8) + [version, 0, 0, 0, holds, 0, 0, 0]
            bytes +=
                [UInt8](repeating: 0xa1, count: 8) + [5, 0, 0, 0, 0, 0, 0, 0] + [UInt8](repeating: 0xb1, count: 32)
            bytes +=
                holds == 1
                ? [UInt8](repeating: 0, count: 48)
                : [UInt8](repeating: 0xa2, count: 8) + [7, 0, 0, 0, 0, 0, 0, 0] + [UInt8](repeating: 0xb2, count: 32)
            try Data(bytes + ReferenceSHA256.hash(bytes)).write(to: URL(fileURLWithPath: file.path))
            chmod(file.path, 0o600)
        }
        for holds in UInt8(1)...3 {
            try write(holds: holds)
            let secret = try file.load()
            #expect(secret.current.name == String(repeating: "a1", count: 8) && secret.current.inUseAt == 5)
            #expect(secretBytes(secret.current) == [UInt8](repeating: 0xb1, count: 32))
            #expect((secret.previous != nil) == (holds == 2) && (secret.next != nil) == (holds == 3))
            guard let other = secret.previous ?? secret.next else { continue }
            #expect(other.name == String(repeating: "a2", count: 8))
            #expect(secretBytes(other) == [UInt8](repeating: 0xb2, count: 32))
        }
        for (holds, version) in [(UInt8(0), UInt8(1)), (4, 1), (255, 1), (1, 0), (3, 2)] {
            try write(holds: holds, version: version)
            #expect(failure(file).contains("is damaged"), "\(holds) in version \(version)")
        }
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

    @Test("Tags of a prepared generation are genuine for each purpose, and none are made with it until it is used")
    func prepared() throws {
        let secret = RootSecret(current: SecretGeneration(at: 0)).prepared(at: 1)
        let stranger = SecretGeneration(at: 0)
        let used = try #require(secret.usingNext(at: 2))
        let (old, new) = (secret.current, try #require(secret.next))
        for purpose in SecretPurpose.allCases {
            let tags = try [old, new, stranger].map { tag(try $0.authenticator(for: purpose)) }
            for (secret, maker) in [(secret, 0), (used, 1)] {
                let keys = RotatingKeys(try secret.keys(for: purpose))
                #expect(tag(keys.current) == tags[maker])
                let areGenuine = tags.map { tag in
                    tag.withUnsafeBytes { tag in
                        [UInt8]("message".utf8).withUnsafeBytes { keys.isGenuine($0, tag: tag) }
                    }
                }
                #expect(areGenuine == [true, true, false], "\(purpose)")
            }
        }
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
