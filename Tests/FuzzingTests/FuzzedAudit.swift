import Audit
import Core
import Foundation
import Hashing

/// The file of an audit, as `rootgate audit verify` reads it, with the keys of a genuine audit.
enum FuzzedAudit {
    static let subject = FuzzSubject("audit", bytesMax: 4096, seeds: { seeds }) { input in
        let contents = Data(input)
        let result = AuditVerification(["audit"], keys: [keyName: authenticator]) { _ in contents }
        // Nobody can make a line without the key. So a file without findings, whose last line's tag is genuine,
        // consists of neighbouring lines of an audit that was written.
        if result.findings.isEmpty, let last = result.last, result.coveredBy == last.number {
            let isGenuine = seeds.contains { seed in
                Data(seed).range(of: contents).map { $0.lowerBound == 0 || seed[$0.lowerBound - 1] == 10 } ?? false
            }
            try demand(isGenuine, "a file that nobody wrote has no findings")
        }
        try demand(
            result.findings.allSatisfy { $0.utf8.count < 4096 } && result.findings.count <= 3 * input.count + 3,
            "there are \(result.findings.count) findings about \(input.count) bytes")
        // Without keys every line is only read.
        _ = AuditVerification(["audit"], keys: [:]) { _ in contents }
    }

    private static let keyName = "5d0e5d0e5d0e5d0e"
    private static let authenticator = MessageAuthenticator(key: Array("the key of an audit".utf8))

    /// Genuine audits: one with a stop, one with a sequence that a start skips, one of two lines.
    private static let seeds: [[UInt8]] = {
        let records: [AuditRecord] = [
            .ofService("start", sequence: 0),
            AuditRecord(
                .mutation, principal: "backend", peer: "127.0.0.1:40000", operation: "addRoots",
                collaboration: "deck \"42\"\n", sequence: 1),
            AuditRecord(.refusal, principal: "anonymous", operation: "statistics", outcome: "role-missing"),
            .ofService("stop"),
        ]
        return [records, Array(records.prefix(2)) + [.ofService("start", sequence: 9)], Array(records.prefix(2))].map {
            records in
            var file: [UInt8] = []
            var before = Digest.zero
            for (index, record) in records.enumerated() {
                let line = AuditLine.bytes(
                    of: record, number: UInt64(index) + 1, at: 1_760_000_000_000, key: keyName, before: before,
                    authenticator)
                before = SHA256.hash(line)
                file += line + [10]
            }
            return file
        }
    }()
}
