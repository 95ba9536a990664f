import Core
import Foundation
import Hashing
import Principals

/// Who sends a connection's requests, and what it may ask for. Mutation identifiers belong to a principal, so that
/// nobody can use up the identifiers of others.
struct Principal: Sendable {
    /// `nil`: the peer has not said who it is.
    let name: PrincipalName?
    /// 16 bytes, different for every principal.
    let value: UInt128
    let authority: Authority
    /// What it uses of its limits; `nil` for anonymous ones, which have none.
    let allowance: PrincipalAllowance?
    /// When the peer ends to be this principal; `nil`: not by time.
    let expiresAt: Date?
    /// `nil` for anonymous ones.
    let use: PrincipalUse?

    /// Nobody in particular. `authority`: everything on a service that is open, else nothing.
    static func anonymous(_ authority: Authority) -> Principal {
        Principal(name: nil, value: 0, authority: authority, allowance: nil, expiresAt: nil, use: nil)
    }

    /// A principal that the peer has shown to be.
    init(_ match: PrincipalDirectory.Match, _ use: PrincipalUse, _ allowance: PrincipalAllowance) {
        let record = match.principal
        self.init(
            name: record.name,
            value: UInt128(firstBytesOf: SHA256.hash(Array("principal ".utf8) + record.name.text.utf8)),
            authority: Authority(record.roles), allowance: allowance, expiresAt: match.expiresAt, use: use)
    }

    private init(
        name: PrincipalName?, value: UInt128, authority: Authority, allowance: PrincipalAllowance?,
        expiresAt: Date?, use: PrincipalUse?
    ) {
        self.name = name
        self.value = value
        self.authority = authority
        self.allowance = allowance
        self.expiresAt = expiresAt
        self.use = use
    }

    /// Who shares memory, places and turns with others; `nil`: whoever the connection is without a name.
    var holder: Holder? { name == nil ? nil : .principal(value) }

    /// The identifier under which a mutation of the principal is stored: the first 16 bytes of the SHA-256 of the
    /// principal (16), the identifier that the client chose (16), and what the mutation is about.
    func identifier(_ chosen: MutationIdentifier, about subject: [UInt8]) -> MutationIdentifier {
        var name: [UInt8] = []
        name.appendInteger(value)
        name.appendInteger(chosen.value)
        name += subject
        return MutationIdentifier(UInt128(firstBytesOf: SHA256.hash(name)))
    }

    /// The mutation as it is stored. The byte 0 begins no subject of the collaboration layer, so the identifiers of
    /// mutations from outside of the layer never meet those of its requests.
    func own(_ mutation: Mutation) -> Mutation {
        Mutation(identifier: identifier(mutation.identifier, about: [0]), mutation.change)
    }

    /// The principal as audits name it.
    var auditName: String { name?.text ?? "anonymous" }
}
