/// The operations; an answer carries the operation of its request.
package enum Operation: UInt16, CaseIterable, Sendable {
    case hello = 0x01
    case ping = 0x02
    case issueChallenges = 0x03
    case verify = 0x10
    case verifyInclusion = 0x11
    case addRoots = 0x20
    case removeRoots = 0x21
    case testRoots = 0x22
    case listRoots = 0x23
    case countRoots = 0x24
    case createCollaboration = 0x30
    case dropCollaboration = 0x31
    case listCollaborations = 0x32
    /// Only in the change log.
    case edit = 0x33
    case statistics = 0x40
    case readChanges = 0x41
    /// Waits until every service of the cluster has applied a change.
    case confirmEverywhere = 0x42
    /// Only for services of the same cluster.
    case readSnapshot = 0x43
    /// A request of the collaboration layer, as JSON.
    case collaborate = 0x80
    case open = 0x81
    case checkGrants = 0x82
}
