/// What a notice says. The raw values are in stored posts.
enum Sentence: UInt8, Hashable, Sendable, CaseIterable {
    case edited = 0
    case commented = 1
    /// The author was added: nobody adds himself.
    case joined = 2
    /// The author leaves.
    case left = 3
    case added = 4
    case removed = 5
    case mentioned = 6
    case created = 7
    case deleted = 8
    case renamed = 9
    case moved = 10
    /// Somebody was added or has joined: the event names nobody.
    case arrived = 11
    /// Somebody was removed or has left: the event names nobody.
    case departed = 12

    /// What is said of an event that the author posts.
    init(_ kind: HighlightEvent.Kind, by author: PersonIdentity) {
        switch kind {
        case .change(.edit): self = .edited
        case .change(.comment): self = .commented
        case .membership(.addedCollaborator, nil): self = .arrived
        case .membership(.removedCollaborator, nil): self = .departed
        case .membership(.addedCollaborator, let person?): self = person == author ? .joined : .added
        case .membership(.removedCollaborator, let person?): self = person == author ? .left : .removed
        case .mention: self = .mentioned
        case .persistence(.created): self = .created
        case .persistence(.deleted): self = .deleted
        case .persistence(.renamed): self = .renamed
        case .persistence(.moved): self = .moved
        }
    }
}
