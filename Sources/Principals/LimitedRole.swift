package import Core

/// A role of a principal, and how far it reaches.
public struct LimitedRole: Hashable, Sendable, Codable {
    public var role: PrincipalRole
    /// The collaborations that the role covers. An empty list covers none; `[.every]` covers all.
    public var prefixes: [CollaborationPrefix]
    /// With `collaborate`: the only app whose items of shelves the role covers, by its bundle identifier; `nil`: whole
    /// shelves.
    public var app: String?

    public init(_ role: PrincipalRole, prefixes: [CollaborationPrefix], app: String? = nil) {
        self.role = role
        self.prefixes = prefixes
        self.app = app
    }

    /// Compares the bytes of the app's name. Strings with different bytes can be equal in Unicode.
    public static func == (a: LimitedRole, b: LimitedRole) -> Bool {
        a.role == b.role && a.prefixes == b.prefixes && a.app.map { Array($0.utf8) } == b.app.map { Array($0.utf8) }
    }

    /// Feeds the bytes.
    public func hash(into hasher: inout Hasher) {
        hasher.combine(role)
        hasher.combine(prefixes)
        hasher.combine(app.map { Array($0.utf8) })
    }

    /// Throws `malformedRequest` when the role is limited in a way that says nothing or that it does not have. `field`
    /// is its place in the request.
    package func check(_ field: String) throws(ServiceError) {
        guard !prefixes.isEmpty else {
            throw ServiceError(
                .malformedRequest, "\(field).prefixes is empty: “*” covers all collaborations, and nothing covers none")
        }
        guard prefixes == [.every] || !prefixes.contains(.every) else {
            throw ServiceError(.malformedRequest, "\(field).prefixes has “*” beside others: “*” stands alone")
        }
        guard role != .administer || prefixes == [.every] else {
            throw ServiceError(
                .malformedRequest, "\(field) limits administer, which is about no collaboration: its prefix is “*”")
        }
        guard let app else { return }
        guard role == .collaborate else {
            throw ServiceError(.malformedRequest, "\(field).app is for the role collaborate only")
        }
        guard CollaborationIdentifier.isValid(Array(app.utf8)) else {
            throw ServiceError(
                .malformedRequest, "\(field).app is not 1 to 128 bytes of UTF-8 without control characters")
        }
    }
}
