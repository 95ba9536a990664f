/// The stages of a pass of a verifier, in their order.
package enum PassStage: String, CaseIterable, Sendable {
    case shape
    case collaboration
    case challenge
    case root
    case membership
    case signature
    case spend
}
