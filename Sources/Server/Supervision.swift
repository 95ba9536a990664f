import Core
import Foundation

/// What the program that has started this process wants of it, as systemd says it in the environment: messages about
/// the service (sd_notify(3)), signs of life (sd_watchdog_enabled(3)), and open sockets to serve (sd_listen_fds(3)).
package struct Supervision: Equatable, Sendable {
    /// What an inherited socket is for. The raw values are the sockets' names.
    package enum Purpose: String, CaseIterable, Sendable {
        case clients = "listen"
        case operators = "operator"
        case association

        /// The option whose addresses such a socket replaces.
        package var option: String { "--" + rawValue }
    }

    package struct Inherited: Equatable, Sendable {
        package let descriptor: CInt
        package let purpose: Purpose
    }

    /// The socket for messages: an absolute path, or `@` and a name; `nil`: nobody wants messages.
    package private(set) var address: String?
    /// The service is restarted when it gives no sign of life for so long; `nil`: nobody wants signs.
    package private(set) var watchdogMicroseconds: UInt64?
    package private(set) var sockets: [Inherited] = []

    /// Nobody wants anything.
    package init() {}

    /// The variables that say it.
    package static let variables = [
        "NOTIFY_SOCKET", "WATCHDOG_USEC", "WATCHDOG_PID", "LISTEN_FDS", "LISTEN_PID", "LISTEN_FDNAMES",
    ]

    /// The first descriptor of the inherited sockets.
    private static let firstDescriptor: CInt = 3

    /// What the environment of the process says. What is meant for another process doesn't count, nor do empty
    /// variables.
    ///
    /// Throws when a number is none, when there are more sockets than `Limits.inheritedSocketsMax`, and when one has no
    /// name or an unknown one.
    package init(_ environment: [String: String], process: Int32) throws(StartupFailure) {
        func text(_ name: String) -> String? { environment[name].flatMap { $0.isEmpty ? nil : $0 } }
        address = text("NOTIFY_SOCKET")
        if let number = text("WATCHDOG_USEC"), text("WATCHDOG_PID") ?? "\(process)" == "\(process)" {
            guard let microseconds = UInt64(number), microseconds > 0 else {
                throw .supervision("WATCHDOG_USEC is \(number), which is no number of microseconds")
            }
            watchdogMicroseconds = microseconds
        }
        guard let number = text("LISTEN_FDS"), text("LISTEN_PID") == "\(process)" else { return }
        guard let count = Int(number), (0...Limits.inheritedSocketsMax).contains(count) else {
            throw .supervision("LISTEN_FDS is \(number), not a number from 0 to \(Limits.inheritedSocketsMax)")
        }
        let names = (text("LISTEN_FDNAMES") ?? "").split(separator: ":", omittingEmptySubsequences: false)
        for (index, descriptor) in (Self.firstDescriptor..<Self.firstDescriptor + CInt(count)).enumerated() {
            let name = index < names.count ? String(names[index]) : ""
            guard let purpose = Purpose(rawValue: name) else {
                let known = Purpose.allCases.map(\.rawValue).joined(separator: ", ")
                let found = name.isEmpty ? "no name" : "the name \(name)"
                throw .supervision(
                    "the inherited socket \(descriptor) has \(found), and none of \(known) "
                        + "(FileDescriptorName= in a systemd unit)")
            }
            sockets.append(Inherited(descriptor: descriptor, purpose: purpose))
        }
    }

    /// What this process's environment says. Removes the variables, so that no other process takes them for its own.
    /// Must be called before other threads read the environment.
    ///
    /// Throws what `init` throws.
    package static func take() throws(StartupFailure) -> Supervision {
        let environment = ProcessInfo.processInfo.environment
        for name in variables { unsetenv(name) }
        return try Supervision(environment, process: getpid())
    }
}
