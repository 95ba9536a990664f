import Collaboration
import Core
import Principals
import Wire

/// Checks requests against the roles of who sends them. `Pipeline.handle` calls it before any work, and nothing else
/// decides about roles.
enum RoleCheck {
    /// Checks a request with its body. Returns the request of the collaboration layer, if it is one.
    ///
    /// Throws `roleMissing`, and for the layer's requests `unknownOperation` or `malformedRequest`.
    static func check(
        _ request: Request, body: UnsafeRawBufferPointer, _ pending: PendingRequest
    ) throws(ServiceError) -> (any RuledRequest)? {
        let authority = pending.principal.authority
        switch RoleTable.need(of: request.operation) {
        case .nothing: return nil
        case .role(let role):
            guard allows(role, request, body, authority) else { throw Authority.missing(role) }
            return nil
        case .byName:
            guard case .collaborate(let call) = request else {
                throw ServiceError(.internalFault, "\(request.operation) has no name")
            }
            return try check(call, authority, pending)
        }
    }

    /// Whether the roles of who sends them cover all of the requests, whose bytes are `frames`.
    static func allows(_ proofs: SingleProofs, in frames: UnsafeRawBufferPointer, _ authority: Authority) -> Bool {
        guard case .role(let role) = RoleTable.need(of: proofs.isSigned ? .verify : .verifyInclusion) else {
            return false
        }
        let coverage = authority.coverage(of: role)
        if case .everything = coverage { return true }
        return (0..<proofs.count).allSatisfy { coverage.covers(proofs.collaboration(at: $0, in: frames)) }
    }

    /// Checks a query that has waited, because its sender may have lost the role meanwhile.
    ///
    /// Throws `roleMissing`.
    static func checkAgain(_ request: any RuledRequest, _ pending: PendingRequest) throws(ServiceError) {
        let role = RoleTable.role(ofRequest: type(of: request).name)
        guard let role, pending.presentPrincipal.authority.allows(role, about: request.roleScope) else {
            throw Authority.missing(role ?? .administer)
        }
    }

    private static func check(
        _ call: CollaborationCall, _ authority: Authority, _ pending: PendingRequest
    ) throws(ServiceError) -> any RuledRequest {
        let role = RoleTable.role(ofRequest: call.name)
        if let role {
            pending.describe(call.name, about: nil)
            // Nothing is read for somebody who does not have the role at all.
            guard authority.allows(role, about: .nothing) else { throw Authority.missing(role) }
        }
        let request = try Requests.parse(call.name, call.json)
        pending.describe(call.name, about: request.subject)
        // Every request of the layer is in the table. One that was not would be nobody's.
        guard let role, authority.allows(role, about: request.roleScope) else {
            throw Authority.missing(role ?? .administer)
        }
        return request
    }

    private static func allows(
        _ role: PrincipalRole, _ request: Request, _ body: UnsafeRawBufferPointer, _ authority: Authority
    ) -> Bool {
        guard authority.allows(role, about: .nothing) else { return false }
        switch request {
        case .verify(let batch), .open(let batch):
            let coverage = authority.coverage(of: role)
            if case .everything = coverage { return true }
            return (0..<batch.collaborationCount).allSatisfy { coverage.covers(batch.collaboration(at: $0, in: body)) }
        case .checkGrants(let batch):
            let coverage = authority.coverage(of: role)
            if case .everything = coverage { return true }
            return batch.collaborations.allSatisfy { coverage.covers($0) }
        case .mutate(let mutation):
            return mutation.change.collaboration.map { authority.allows(role, about: .collaboration($0)) } ?? false
        case .testRoots(let collaboration, _), .listRoots(let collaboration, _, _), .countRoots(let collaboration):
            return authority.allows(role, about: .collaboration(collaboration))
        case .statistics: return authority.allows(role, about: .everything)
        // Challenges are for any collaboration. Lists leave out what the role does not cover.
        case .issueChallenges, .confirmEverywhere, .listCollaborations, .readChanges, .hello, .ping, .collaborate,
            .readSnapshot:
            return true
        }
    }
}
