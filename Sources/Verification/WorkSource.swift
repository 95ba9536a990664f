import Core

/// Where work comes from, usually a connection. Sources take turns, so that one with much work does not delay one with
/// little.
///
/// Sendable without the compiler's proof: used under the pool's lock only.
package final class WorkSource: @unchecked Sendable {
    enum Work {
        case verification(VerificationRequest)
        case task(@Sendable () -> Void)
    }

    var waiting = Queue<Work>()

    package init() {}
}
