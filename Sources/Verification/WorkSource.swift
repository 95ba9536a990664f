import Core

/// A source of work, usually a connection. Sources take turns, so that one with much work does not delay one with
/// little.
///
/// Sendable without the compiler's proof: it is used only under the pool's lock.
package final class WorkSource: @unchecked Sendable {
    enum Work {
        case verification(VerificationRequest)
        case challenges(ChallengeRequest)
        case task(@Sendable () -> Void)
    }

    var waiting = Queue<Work>()

    package init() {}
}
