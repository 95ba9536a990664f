import Collaboration
import Core
import Foundation
import Principals
import RootgateClient
import Server
import ServiceTestSupport
import TestSupport
import Testing
import Wire

/// A service with an administrator.
struct GuardedService {
    let service: TestService
    let administratorKey: APIKey
    let administrator: RootgateClient

    init(
        calendar: TestCalendar? = nil, clock: MonotonicClock = .system,
        _ adjust: (inout Configuration) -> Void = { _ in }
    ) async throws {
        service = try TestService(calendar: calendar, clock: clock, adjust)
        administratorKey = .random()
        _ = try await service.client().send(
            CreatePrincipal(
                try GuardedService.name("root"), roles: [LimitedRole(.administer, prefixes: [.every])],
                key: NewKey(KeyHash(administratorKey))))
        administrator = try RootgateClient(
            service.endpoint, configuration: .init(requestTimeout: patience, key: administratorKey))
    }

    static func name(_ text: String) throws -> PrincipalName { try #require(PrincipalName(text)) }

    /// A new principal's key.
    func principal(
        _ name: String, _ roles: [LimitedRole], limits: PrincipalLimits? = nil, expiresAt: Date? = nil
    ) async throws -> APIKey {
        let key = APIKey.random()
        _ = try await administrator.send(
            CreatePrincipal(
                try GuardedService.name(name), roles: roles, key: NewKey(KeyHash(key), expiresAt: expiresAt),
                limits: limits))
        return key
    }

    func client(_ key: APIKey?) throws -> RootgateClient {
        try RootgateClient(service.endpoint, configuration: .init(requestTimeout: patience, key: key))
    }

    /// A connection that has presented the key.
    func peer(_ key: APIKey?) throws -> RawPeer {
        let peer = try RawPeer(service.endpoint)
        guard let key else { return peer }
        peer.send(.hello(minimum: 1, maximum: 1, key: Array(key.text.utf8)), id: 0)
        #expect(peer.readFrame()?.header.kind == .answer)
        return peer
    }
}

extension RawPeer {
    /// The code of the error that the request is answered with; `nil` when it is answered otherwise.
    func code(_ operation: Wire.Operation, _ body: [UInt8]) throws -> ServiceError.Code? {
        try error(operation, body)?.code
    }

    /// The error that the request is answered with.
    func error(_ operation: Wire.Operation, _ body: [UInt8]) throws -> ServiceError? {
        send(operation.rawValue, id: 1, body: body)
        let (header, body) = try #require(readFrame(), "the connection has ended")
        guard header.kind == .error else { return nil }
        return try body.withRawBytes { bytes throws(ServiceError) in try FrameWriter.decodeError(bytes) }
    }
}
