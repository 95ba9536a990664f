import Core
import Foundation
import Principals
import Wire

/// Counts how long requests take, by the role that they need and by stage, and keeps the slowest ones.
///
/// A request is counted once, at its end, under one of several locks: that of its connection. Requests that were
/// verified together are counted together.
final class RequestMeter: Sendable {
    /// Requests that were answered.
    struct Figures: Sendable {
        fileprivate var byRole = [PowerHistogram](repeating: .durations, count: PrincipalRole.allCases.count + 1)
        fileprivate var byStage = [PowerHistogram](repeating: .durations, count: RequestStage.allCases.count)

        /// How long requests took that need the role; `nil`: none. The wait for a change does not count.
        func durations(of role: PrincipalRole?) -> PowerHistogram { byRole[Figures.place(of: role)] }

        /// How long requests were in the stage, those that were in it.
        func durations(in stage: RequestStage) -> PowerHistogram { byStage[stage.place] }

        fileprivate mutating func count(_ times: StageTimes, _ role: PrincipalRole?, _ requests: UInt64) {
            byRole[Figures.place(of: role)].add(times.busy, times: requests)
            for stage in RequestStage.allCases where times[stage] > 0 {
                byStage[stage.place].add(times[stage], times: requests)
            }
        }

        fileprivate mutating func add(_ other: Figures) {
            for place in byRole.indices { byRole[place].add(other.byRole[place]) }
            for place in byStage.indices { byStage[place].add(other.byStage[place]) }
        }

        private static func place(of role: PrincipalRole?) -> Int {
            switch role {
            case .verify: 0
            case .enrol: 1
            case .collaborate: 2
            case .observe: 3
            case .administer: 4
            case nil: 5
            }
        }
    }

    /// The role that a request needs. `name`: of a request of the collaboration layer.
    static func role(of operation: Wire.Operation?, named name: String?) -> PrincipalRole? {
        switch operation.map({ RoleTable.need(of: $0) }) {
        case .role(let role): role
        case .byName: name.flatMap { RoleTable.role(ofRequest: $0) }
        case .nothing, nil: nil
        }
    }

    private final class Stripe: Sendable {
        let figures = Lock(Figures())
    }

    private static let stripeCount = 16
    private let stripes = (0..<RequestMeter.stripeCount).map { _ in Stripe() }
    let slowest: SlowestRequests

    init(date: @escaping @Sendable () -> Date) {
        slowest = SlowestRequests(date: date)
    }

    /// Nanoseconds of the clock by which requests are timed.
    var now: UInt64 { MonotonicClock.nanoseconds }

    /// Counts requests of one connection that were answered together. `name`: called when they are among the slowest.
    func count(
        _ times: StageTimes, _ role: PrincipalRole?, requests: Int = 1, of connection: ObjectIdentifier,
        name: () -> String
    ) {
        // Objects have addresses that are multiples of 16.
        let stripe = stripes[Int((UInt(bitPattern: connection) >> 4) % UInt(RequestMeter.stripeCount))]
        stripe.figures.withLock { $0.count(times, role, UInt64(requests)) }
        slowest.note(times, name: name)
    }

    var figures: Figures {
        stripes.reduce(into: Figures()) { sum, stripe in sum.add(stripe.figures.withLock { $0 }) }
    }
}
