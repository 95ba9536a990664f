import Core
import Foundation
import Transport

let probeCommand = Command(
    "probe", "ask a service on this machine whether it is ready, or alive",
    options: [
        Option(
            "operator", "HOST:PORT,...", standard: "127.0.0.1:7571",
            "address of the operator's pages; unix:/PATH: a local socket; of several the first on this machine"),
        Option(switch: "live", "whether the process should be left alone, and not whether it should get requests"),
        .timeout, .json,
    ]
) { arguments in
    let endpoints = try arguments.required("operator").split(separator: ",").map { text in
        guard let endpoint = Endpoint(String(text)) else {
            throw UsageError("--operator takes HOST:PORT or unix:/PATH, not \(text)")
        }
        return endpoint
    }
    guard let endpoint = endpoints.first(where: \.isLoopback) else {
        throw UsageError("--operator names no address of this machine, and pages elsewhere want TLS and a key")
    }
    let milliseconds = UInt64(try arguments.decimal("timeout", in: 0.01...86_400) * 1000)
    let path = arguments.isOn("live") ? "/livez" : "/readyz"
    let page = try OperatorPage(path, of: endpoint, milliseconds: milliseconds)
    guard let checks = page.checks else {
        guard page.status != 503 else {
            throw ServiceError(.busy, "\(endpoint) has no place for another visitor")
        }
        throw ServiceError(.malformedAnswer, "\(endpoint) sends no page of an operator")
    }
    let isGood = page.status == 200 && checks.allSatisfy { $0.fault == nil }
    if arguments.isOn("json") {
        let list = checks.map { check -> [String: Any] in
            var entry: [String: Any] = ["name": check.name, "passes": check.fault == nil]
            entry["fault"] = check.fault
            return entry
        }
        printNow(try json(["passes": isGood, "checks": list]))
    } else {
        for check in checks {
            printNow("\(check.name) \(check.fault.map { "failed: \($0)" } ?? "ok")".escapingControls)
        }
    }
    return isGood ? .success : .refused
}
