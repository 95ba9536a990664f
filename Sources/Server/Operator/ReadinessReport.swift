/// Whether a service should get requests, check by check. Pure: it judges what others have found out.
struct ReadinessReport: Equatable, Sendable {
    struct Check: Equatable, Sendable {
        let name: String
        /// What is wrong, in one line; `nil`: nothing.
        let fault: String?
    }

    let checks: [Check]

    /// `checks`: their names, and what is wrong. The names are stable: the handbook lists them.
    init(_ checks: [(name: String, fault: String?)]) {
        self.checks = checks.map { Check(name: $0.name, fault: $0.fault) }
    }

    var isReady: Bool { checks.allSatisfy { $0.fault == nil } }

    /// A line for each check: `storage ok`, or `storage failed: REASON`.
    var page: HTTPResponse {
        let lines = checks.map { check in
            let fault = check.fault.map { "failed: " + $0.singleLine } ?? "ok"
            return "\(check.name) \(fault)\n"
        }
        return HTTPResponse(
            isReady ? .ok : .unavailable, Array(lines.joined().utf8), contentType: "text/plain; charset=utf-8")
    }
}

extension String {
    /// The text with spaces instead of line breaks.
    fileprivate var singleLine: String { String(map { $0.isNewline ? " " : $0 }) }
}
