package import Core

/// What a connection may ask for: the roles of its principal, each with the collaborations that it covers.
package struct Authority: Sendable {
    /// The collaborations that a role covers.
    package enum Coverage: Sendable {
        case none
        /// The identifiers that begin with one of these bytes.
        case beginningWith([[UInt8]])
        case everything

        /// Whether the role covers the collaboration with these bytes as its identifier.
        package func covers(_ identifier: UnsafeRawBufferPointer) -> Bool {
            switch self {
            case .none: false
            case .everything: true
            case .beginningWith(let prefixes): prefixes.contains { identifier.starts(with: $0) }
            }
        }

        /// Whether the role covers the collaboration.
        package func covers(_ collaboration: CollaborationIdentifier) -> Bool {
            collaboration.utf8.withUnsafeBytes { covers($0) }
        }

        fileprivate mutating func add(_ prefixes: [CollaborationPrefix]) {
            switch self {
            case .everything: return
            case _ where prefixes.contains(.every): self = .everything
            case _ where prefixes.isEmpty: return
            case .none: self = .beginningWith(prefixes.map(\.utf8))
            case .beginningWith(let known): self = .beginningWith(known + prefixes.map(\.utf8))
            }
        }
    }

    /// By the roles' places in `PrincipalRole.allCases`.
    private var coverages: [Coverage]
    /// Whether a role that is not limited to an app covers everything, by the same places.
    private var coversEverything: [Bool]
    /// Apps whose part of every shelf is covered, as bytes.
    private var apps: Set<[UInt8]> = []

    /// May do nothing.
    package static let nothing = Authority([])
    /// May do everything.
    package static let everything = Authority(PrincipalRole.allCases.map { LimitedRole($0, prefixes: [.every]) })

    package init(_ roles: [LimitedRole]) {
        coverages = PrincipalRole.allCases.map { _ in .none }
        coversEverything = PrincipalRole.allCases.map { _ in false }
        for limited in roles {
            let place = limited.role.place
            coverages[place].add(limited.prefixes)
            guard limited.prefixes.contains(.every) else { continue }
            if let app = limited.app { apps.insert(Array(app.utf8)) } else { coversEverything[place] = true }
        }
    }

    /// The collaborations that a role covers.
    package func coverage(of role: PrincipalRole) -> Coverage { coverages[role.place] }

    /// Whether a request that needs the role may be made about `scope`. What is in doubt may not.
    package func allows(_ role: PrincipalRole, about scope: RequestScope) -> Bool {
        switch scope {
        case .nothing:
            if case .none = coverage(of: role) { return false }
            return true
        case .collaboration(let collaboration): return coverage(of: role).covers(collaboration)
        case .shelf(let app):
            if coversEverything[role.place] { return true }
            return role == .collaborate && app.map { apps.contains(Array($0.utf8)) } ?? false
        case .everything: return coversEverything[role.place]
        }
    }

    /// The error for a request that lacks a role, or whose role does not reach so far. It says nothing else, so that
    /// nobody learns what exists.
    package static func missing(_ role: PrincipalRole) -> ServiceError {
        ServiceError(.roleMissing, "the role \(role.rawValue) is missing")
    }
}

extension PrincipalRole {
    fileprivate var place: Int {
        switch self {
        case .verify: 0
        case .enrol: 1
        case .collaborate: 2
        case .observe: 3
        case .administer: 4
        }
    }
}
