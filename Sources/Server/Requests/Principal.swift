/// Who sends a connection's requests. Mutation identifiers of the collaboration layer belong to a principal, so that
/// nobody can use up the identifiers of others.
struct Principal: Hashable, Sendable {
    /// The principal of a connection whose peer has not said who it is.
    static let anonymous = Principal(value: 0)

    /// 16 bytes, different for every principal.
    let value: UInt128
}
