import Collaboration
import Core
import Hashing
import Wire

/// What makes one request the repetition of another: the identifier under which its edit is stored, and the digest of
/// its content.
struct RequestIdentity: Hashable, Sendable {
    /// It belongs to the principal and the subject: the same choice of another principal, or for another subject, is
    /// another mutation.
    let mutation: MutationIdentifier
    /// The digest of the request's name (length, bytes) and its JSON, as they were sent.
    let request: RequestDigest

    init(_ call: CollaborationCall, about subject: RequestSubject?, by principal: Principal) {
        mutation = principal.identifier(call.identifier, about: subject?.bytes ?? [])
        var content: [UInt8] = []
        content.reserveCapacity(1 + call.name.utf8.count + call.json.count)
        content.appendShortBytes(call.name.utf8)
        content += call.json
        request = RequestDigest(SHA256.hash(content))
    }
}
