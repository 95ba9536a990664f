import Core
import Principals
import RootSets
import Wire

/// A list of collaborations or changes, for a principal whose role covers a part of them. The rest is left out, as if
/// it was not there.
///
/// The storage has no order that would help. So all is read in pages, a few at a time, until the answer is full.
struct FilteredList: Sendable {
    private enum Items {
        case collaborations([CollaborationSummary], after: CollaborationIdentifier?)
        case changes([LoggedMutation], bytes: Int, after: UInt64)
    }

    private let coverage: Authority.Coverage
    private let limit: Int
    private var items: Items
    private var hasMore = false

    /// `nil` unless the request asks for such a list and the principal sees only a part of it.
    init?(_ request: Request, for principal: Principal) {
        coverage = principal.authority.coverage(of: .observe)
        if case .everything = coverage { return nil }
        switch request {
        case .listCollaborations(let start, let limit):
            (self.limit, items) = (limit, .collaborations([], after: start))
        case .readChanges(let sequence, let limit):
            (self.limit, items) = (limit, .changes([], bytes: 0, after: sequence))
        default: return nil
        }
    }

    /// Reads some pages. Returns whether the answer is complete.
    ///
    /// Throws `changesTrimmed`, `storageDamaged` or `storageFailed`.
    mutating func readOn(_ snapshot: borrowing Snapshot) throws(ServiceError) -> Bool {
        for _ in 0..<Limits.filteredPagesPerTurn {
            let isDone =
                switch items {
                case .collaborations(let found, let start): try readCollaborations(snapshot, found, after: start)
                case .changes(let found, let bytes, let sequence):
                    try readChanges(snapshot, found, bytes: bytes, after: sequence)
                }
            if isDone { return true }
        }
        return false
    }

    private mutating func readCollaborations(
        _ snapshot: borrowing Snapshot, _ known: [CollaborationSummary], after start: CollaborationIdentifier?
    ) throws(ServiceError) -> Bool {
        let page = try snapshot.collaborations(after: start, limit: Limits.collaborationsPerPageMax)
        let covered = page.items.filter { coverage.covers($0.identifier) }
        let found = known + covered
        items = .collaborations(Array(found.prefix(limit)), after: page.items.last?.identifier ?? start)
        hasMore = found.count > limit
        return hasMore || !page.hasMore
    }

    private mutating func readChanges(
        _ snapshot: borrowing Snapshot, _ known: [LoggedMutation], bytes: Int, after sequence: UInt64
    ) throws(ServiceError) -> Bool {
        let page = try snapshot.changes(after: sequence, limit: Limits.changesPerPageMax)
        var (found, bytes) = (known, bytes)
        for change in page.items {
            guard let collaboration = change.mutation.change.collaboration, coverage.covers(collaboration) else {
                continue
            }
            // What follows is on the next page. A change alone is never too long for a frame.
            guard found.count < limit, bytes < Limits.changesPageBytesMax else {
                items = .changes(found, bytes: bytes, after: sequence)
                hasMore = true
                return true
            }
            found.append(change)
            bytes += change.weight
        }
        items = .changes(found, bytes: bytes, after: page.items.last?.sequence ?? sequence)
        return !page.hasMore
    }

    /// Appends the body of the answer.
    func append(to bytes: inout [UInt8]) {
        switch items {
        case .collaborations(let found, _):
            Answer.append(
                collaborations: found.map { ($0.identifier, $0.policy, $0.rootCount) }, hasMore: hasMore, to: &bytes)
        case .changes(let found, _, _): Answer.append(changes: found, hasMore: hasMore, to: &bytes)
        }
    }
}

extension LoggedMutation {
    /// The approximate number of bytes in an answer.
    fileprivate var weight: Int {
        switch mutation.change {
        case .addRoots(_, let roots), .removeRoots(_, let roots): 256 + roots.count * Digest.byteCount
        case .edit(let edit): 256 + edit.weight
        case .createCollaboration, .dropCollaboration: 256
        }
    }
}
