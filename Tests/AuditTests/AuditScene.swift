@testable import Audit
import Core
import Foundation
import Hashing
import TestSupport
import Testing

/// An audit in a folder of its own, its key and what a test changes under it.
final class AuditScene: Sendable {
    let scratch = ScratchDirectory()
    let key: AuditTrail.Key
    let logged = Shared<[String]>([])
    var path: String { scratch.path + "/audit.jsonl" }
    var keys: [String: MessageAuthenticator] { [key.name: key.authenticator] }

    init(keyByte: UInt8 = 7) {
        key = AuditTrail.Key(
            name: [UInt8](repeating: keyByte, count: 8).hexadecimal,
            MessageAuthenticator(key: [UInt8](repeating: keyByte, count: 32)))
    }

    func open(
        sequence: UInt64 = 0, calls: AuditCalls = .system, _ adjust: (inout AuditTrail.Settings) -> Void = { _ in }
    ) throws -> AuditTrail {
        var settings = AuditTrail.Settings(path: path)
        (settings.aheadBytes, settings.reserveBytes) = (64 << 10, 8 << 10)
        adjust(&settings)
        let trail = try AuditTrail(
            settings, key: key, sequence: sequence, calls: calls, date: { 1_800_000_000_123 },
            log: Log { [logged] line in logged.with { $0.append("\(line)") } })
        trail.begin()
        return trail
    }

    /// The lines of a file.
    func lines(_ path: String? = nil) throws -> [String] {
        let data = try Data(contentsOf: URL(fileURLWithPath: path ?? self.path))
        return String(decoding: data, as: UTF8.self).split(separator: "\n").map(String.init)
    }

    func write(_ lines: [String], to path: String? = nil) throws {
        try Data(lines.map { $0 + "\n" }.joined().utf8).write(to: URL(fileURLWithPath: path ?? self.path))
    }

    /// The files of the audit, the moved ones first.
    func files() throws -> [String] {
        let names = try FileManager.default.contentsOfDirectory(atPath: scratch.path).filter {
            $0.hasPrefix("audit.jsonl")
        }
        let isLast = { $0 == "audit.jsonl" }
        return (names.filter { !isLast($0) }.sorted() + names.filter(isLast)).map { scratch.path + "/" + $0 }
    }

    func verify(hasKeys: Bool = true, known: Digest? = nil) throws -> AuditVerification {
        try AuditVerification(try files(), keys: hasKeys ? keys : [:], known: known) { path in
            try Data(contentsOf: URL(fileURLWithPath: path))
        }
    }
}

extension AuditVerification {
    /// Verifies files whose contents are in memory.
    init(_ files: [(path: String, contents: Data)], keys: [String: MessageAuthenticator], known: Digest? = nil) {
        let contents = Dictionary(uniqueKeysWithValues: files.map { ($0.path, $0.contents) })
        self.init(files.map(\.path), keys: keys, known: known) { contents[$0] ?? Data() }
    }
}

extension AuditRecord {
    static let refusal = AuditRecord(
        .refusal, principal: "anonymous", peer: "127.0.0.1:4000", operation: "countRoots", outcome: "role-missing")

    static func change(_ sequence: UInt64, in collaboration: String = "deck") -> AuditRecord {
        AuditRecord(
            .mutation, principal: "anonymous", peer: "127.0.0.1:4000", operation: "addRoots",
            collaboration: collaboration, sequence: sequence)
    }
}

extension AuditTrail {
    /// Appends a line and waits until it is durable. Returns the failure that was told.
    @discardableResult
    func apply(_ record: AuditRecord, isRemoval: Bool = false) throws(ServiceError) -> ServiceError? {
        guard let reservation = try reserve(record, isRemoval: isRemoval) else { return nil }
        let done = DispatchSemaphore(value: 0)
        let failure = Shared<ServiceError?>(nil)
        append(record, reservation) { told in
            failure.with { $0 = told }
            done.signal()
        }
        done.wait()
        return failure.value
    }
}

extension AuditTrail {
    /// Whether a line was admitted and is durable.
    func isApplied(_ record: AuditRecord) -> Bool {
        do throws(ServiceError) {
            return try apply(record) == nil
        } catch {
            return false
        }
    }
}

/// A disk that a test fills, and that it makes fail.
final class TestDisk: Sendable {
    /// Bytes that can be reserved behind the lines; `nil`: any number.
    let room = Shared<Int?>(nil)
    /// The errno of writes; 0: they succeed. A failing write takes half of the bytes first.
    let failure = Shared<CInt>(0)
    let writes = Shared(0)
    private let isHeld = Shared(false)
    private let go = DispatchSemaphore(value: 0)

    /// From now on the writer waits until it is let go, before what it has written is durable.
    func hold() { isHeld.with { $0 = true } }

    func letGo() {
        isHeld.with { $0 = false }
        go.signal()
    }

    var calls: AuditCalls {
        var calls = AuditCalls.system
        calls.write = { [self] descriptor, bytes, offset in
            writes.increment()
            let number = failure.value
            guard number != 0 else { return AuditCalls.system.write(descriptor, bytes, offset) }
            if bytes.count > 1 {
                let half = UnsafeRawBufferPointer(rebasing: bytes[..<(bytes.count / 2)])
                return AuditCalls.system.write(descriptor, half, offset)
            }
            errno = number
            return -1
        }
        calls.synchronize = { [self] descriptor in
            if isHeld.value { go.wait() }
            return AuditCalls.system.synchronize(descriptor)
        }
        calls.reserve = { [self] _, _, bytes in room.value.map { bytes <= $0 ? 0 : ENOSPC } ?? 0 }
        return calls
    }
}
