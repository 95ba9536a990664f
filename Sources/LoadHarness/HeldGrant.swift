import Core
package import RootgateClient

/// A grant that a device was given.
package struct HeldGrant: Sendable {
    /// The position of the collaboration among those of the population.
    package let collaboration: Int
    /// The device's key, as checks of grants name it.
    package let deviceKey: [UInt8]
    package let grant: AccessGrant
}
