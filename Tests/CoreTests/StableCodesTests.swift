import Core
import TestSupport
import Testing

/// Bytes, codes and names against PROTOCOL.md.
struct StableCodesTests {
    @Test("Verdicts have exactly the bytes and names of PROTOCOL.md")
    func verdicts() throws {
        let rows = try ProtocolDocument().table(under: "Verdicts")
        var documented: [UInt8: String] = [:]
        for row in rows {
            let byte = try #require(UInt8(row[0]), "the byte \(row[0]) is no number")
            #expect(documented[byte] == nil, "byte \(byte) is listed twice")
            documented[byte] = row[1]
        }
        let actual = Dictionary(uniqueKeysWithValues: Verdict.allCases.map { ($0.rawValue, $0.name) })
        #expect(documented.count == 18)
        #expect(actual == documented)
    }

    @Test("Verdict names are unique and lead back to their verdict")
    func verdictNames() {
        #expect(Set(Verdict.allCases.map(\.name)).count == Verdict.allCases.count)
        for verdict in Verdict.allCases {
            #expect(Verdict(name: verdict.name) == verdict)
        }
    }

    @Test("No verdict is zero")
    func zeroIsNone() {
        #expect(Verdict(rawValue: 0) == nil)
    }

    @Test("A name that is no verdict's is refused")
    func unknownVerdictName() {
        #expect(Verdict(name: "") == nil)
        #expect(Verdict(name: "Granted") == nil)
        #expect(Verdict(name: "granted ") == nil)
    }

    @Test("Exactly granted, included and unlisted are below 16 and no refusals")
    func refusals() {
        let holding: Set<Verdict> = [.granted, .included, .unlisted]
        for verdict in Verdict.allCases {
            #expect(verdict.isRefusal == !holding.contains(verdict), "\(verdict)")
            #expect((verdict.rawValue >= 16) == !holding.contains(verdict), "\(verdict)")
        }
    }

    @Test("Errors that travel have exactly the codes and names of PROTOCOL.md")
    func errors() throws {
        let rows = try ProtocolDocument().table(headed: ["code", "name", "meaning"])
        var documented: [UInt16: String] = [:]
        for row in rows {
            let code = try #require(UInt16(row[0]), "the code \(row[0]) is no number")
            #expect(documented[code] == nil, "code \(code) is listed twice")
            documented[code] = row[1]
        }
        let travelling = ServiceError.Code.allCases.filter { $0.rawValue < 256 }
        let actual = Dictionary(uniqueKeysWithValues: travelling.map { ($0.rawValue, $0.name) })
        #expect(documented.count == 35)
        #expect(actual == documented)
    }

    @Test("Error names are unique, client-only ones included")
    func errorNames() {
        #expect(Set(ServiceError.Code.allCases.map(\.name)).count == ServiceError.Code.allCases.count)
    }

    @Test("Exactly the errors about the frame or the connection close it")
    func closing() {
        let closing: Set<ServiceError.Code> = [
            .unsupportedVersion, .frameTooLarge, .malformedFrame, .tooManyConnections, .keyRefused,
        ]
        for code in ServiceError.Code.allCases {
            #expect(code.closesConnection == closing.contains(code), "\(code.name)")
        }
    }

    @Test("Errors that need somebody to change something are not transient")
    func transience() {
        for code in [
            ServiceError.Code.malformedRequest, .unknownCollaboration, .collaborationExists, .mutationConflict,
            .changesTrimmed, .limitExceeded, .storageFull, .storageDamaged, .cancelled, .internalFault,
        ] {
            #expect(!code.isTransient, "\(code.name)")
        }
        for code in [ServiceError.Code.busy, .shuttingDown, .tooManyConnections] {
            #expect(code.isTransient, "\(code.name)")
        }
    }

    @Test("Errors are equal when their codes are, whatever they say")
    func errorEquality() {
        #expect(ServiceError(.busy, detail: 1, "a") == ServiceError(.busy, detail: 2, "b"))
        #expect(ServiceError(.busy, "a") != ServiceError(.shuttingDown, "a"))
    }

    @Test("An error says who made it, and for programmers where")
    func errorOrigin() {
        let local = ServiceError(.busy, "wait", file: "Core/Here.swift", line: 7)
        #expect(local.origin == .local)
        #expect(local.description == "busy: wait")
        #expect(local.debugDescription == "busy: wait (Core/Here.swift:7)")
        let answered = ServiceError(.busy, origin: .service, "wait")
        #expect(answered.origin == .service)
        #expect(answered.description == "the service answered busy: wait")
        #expect(answered == local)
    }

    @Test("Signature formats have the bytes of PROTOCOL.md and names that lead back")
    func signatureFormats() {
        #expect(SignatureFormat.der.rawValue == 1)
        #expect(SignatureFormat.raw.rawValue == 2)
        #expect(SignatureFormat.allCases.count == 2)
        for format in SignatureFormat.allCases { #expect(SignatureFormat(name: format.name) == format) }
        #expect(SignatureFormat(name: "ber") == nil)
        #expect(SignatureFormat(rawValue: 0) == nil)
    }

    @Test("Policies have the bytes of PROTOCOL.md and come back from them")
    func policyCodes() throws {
        let rows = try ProtocolDocument().table(under: "Policies")
        #expect(rows.map { [$0[0], $0[1]] } == [["challenge", "1"], ["device nonce", "2"]])
        #expect(ProofPolicy.challenge.code == (kind: 1, windowSeconds: 0))
        #expect(ProofPolicy.deviceNonce(windowSeconds: 77).code == (kind: 2, windowSeconds: 77))
        for policy in [
            ProofPolicy.challenge, .deviceNonce(windowSeconds: 1), .deviceNonce(windowSeconds: 604_800),
        ] {
            #expect(policy.isValid)
            #expect(ProofPolicy(kind: policy.code.kind, windowSeconds: policy.code.windowSeconds) == policy)
        }
    }

    @Test("A challenge policy with a window is refused")
    func challengeWithWindow() {
        #expect(ProofPolicy(kind: 1, windowSeconds: 1) == nil)
    }

    @Test("A device-nonce policy without a window or with one over a week is refused")
    func windowOutOfRange() {
        #expect(ProofPolicy(kind: 2, windowSeconds: 0) == nil)
        #expect(ProofPolicy(kind: 2, windowSeconds: 604_801) == nil)
        #expect(ProofPolicy(kind: 2, windowSeconds: .max) == nil)
        #expect(!ProofPolicy.deviceNonce(windowSeconds: 0).isValid)
        #expect(!ProofPolicy.deviceNonce(windowSeconds: 604_801).isValid)
    }

    @Test("A policy byte other than 1 and 2 is refused")
    func unknownPolicy() {
        for kind in UInt8.min ... .max where kind != 1 && kind != 2 {
            #expect(ProofPolicy(kind: kind, windowSeconds: 0) == nil, "\(kind)")
            #expect(ProofPolicy(kind: kind, windowSeconds: 60) == nil, "\(kind)")
        }
    }
}
