public import Core
import Synchronization

/// A device with a key for every collaboration, which signs with it. On Apple's systems the system does this. In tests
/// and load runs a simulated device does it.
public protocol IdentityDevice: Sendable {
    /// The proof that this device belongs to its person, with a signature over `data`.
    func signedIdentityProof(
        in collaboration: CollaborationIdentifier, signing data: [UInt8]
    ) async throws(ServiceError) -> SignedIdentityProof
}
