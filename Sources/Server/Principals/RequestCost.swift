import Collaboration
import Core
import Wire

/// What a request takes of its principal's rates.
struct RequestCost: Equatable, Sendable {
    var proofs = 0
    var challenges = 0
    var grants = 0
    var mutations = 0
    /// Whether the mutation takes something away from somebody, so that the reserve is for it.
    var isRemoval = false

    /// Nothing.
    init() {}

    /// `layered`: the request of the collaboration layer, if it is one.
    init(_ request: Request, _ layered: (any RuledRequest)?) {
        switch request {
        case .verify(let batch), .open(let batch): proofs = batch.count
        case .issueChallenges(let count): challenges = count
        case .checkGrants(let batch): grants = batch.count
        case .mutate(let mutation):
            mutations = 1
            isRemoval = mutation.change.isRemoval
        case .collaborate:
            guard let layered, !type(of: layered).isQuery else { return }
            mutations = 1
            isRemoval = Urgency.isRemoval(layered)
        case .hello, .ping, .testRoots, .listRoots, .countRoots, .listCollaborations, .statistics, .readChanges,
            .confirmEverywhere, .readSnapshot:
            break
        }
    }
}

extension Change {
    fileprivate var isRemoval: Bool {
        switch self {
        case .removeRoots, .dropCollaboration: true
        case .addRoots, .createCollaboration, .edit: false
        }
    }
}
