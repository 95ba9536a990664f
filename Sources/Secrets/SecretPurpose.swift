/// What a key is for. Each purpose has a label of its own, so that the key of one purpose tells nothing about another.
package enum SecretPurpose: String, CaseIterable, Sendable {
    case challenges = "rootgate challenge v1"
    case grants = "rootgate grant v1"
    case audits = "rootgate audit v1"
    case snapshots = "rootgate snapshot v1"
}
