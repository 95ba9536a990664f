package import Collaboration
package import Core
import Foundation
import Hashing
import RootSets

/// Requests about principals to a data directory that no service has open: for the first administrator, and for the
/// next one when no administrator is left.
package enum OfflinePrincipals {
    /// Decides a request about principals and makes its change. Makes the storage when it is missing.
    ///
    /// Throws `storageInUse` while a service has the data directory, what the request's rule throws, or what the
    /// storage throws.
    package static func send<Request: RuledRequest>(
        _ request: Request, dataDirectory: String, sizeLimitBytes: Int = 16 << 30
    ) throws(ServiceError) -> Request.Answer {
        // What the service keeps of the change log is the service's to decide.
        let rootSets = try RootSets(
            RootSets.Configuration(
                directory: dataDirectory, sizeLimitBytes: sizeLimitBytes, keepsWholeLog: true))
        defer { rootSets.close() }
        let context = RuleContext(
            now: Date(), random: .system, sha256: { SHA256.hash($0) }, settings: CollaborationSettings(),
            grants: NoGrants())
        let decision = try rootSets.read { snapshot throws(ServiceError) in try request.decide(context, snapshot) }
        switch decision {
        case .answer(let answer), .wait(_, _, let answer): return answer
        case .edit(let edit, _, let answer): return answer(try rootSets.apply(Mutation(.edit(edit))))
        // Nobody sends the request again under its identifier.
        case .note(_, let answer): return answer(nil)
        }
    }
}

/// Knows no grants: requests about principals have none.
private struct NoGrants: GrantAuthority {
    var now: UInt64 { 0 }
    func isGenuine(_ grant: AccessGrant) -> Bool { false }
}
