import Core
import RootgateClient

/// A grant that a device was given.
package struct HeldGrant: Sendable {
    /// The position of the collaboration among those of the population.
    let collaboration: Int
    /// The device's key, as checks of grants name it.
    let deviceKey: [UInt8]
    let grant: AccessGrant
}
