import Core

/// The newest grants of a `HighlightCenter`, one for each collaboration.
struct KeptGrants {
    static let countMax = 64
    private var kept: [(collaboration: CollaborationIdentifier, grant: AccessGrant)] = []

    subscript(collaboration: CollaborationIdentifier) -> AccessGrant? {
        get { kept.first { $0.collaboration == collaboration }?.grant }
        set {
            kept.removeAll { $0.collaboration == collaboration }
            guard let newValue else { return }
            if kept.count == KeptGrants.countMax { kept.removeFirst() }
            kept.append((collaboration, newValue))
        }
    }
}
