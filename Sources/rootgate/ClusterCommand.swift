import Cluster
import Core
import Foundation
import Server

private let accessNames = Set(clusterAccessOptions.map(\.name))

let clusterCommand = Command(
    "cluster",
    verbs: [
        Verb(
            "check", "", 0...0, options: accessNames,
            "list the services, and compare what they hold; exit code 1: something is wrong"),
        Verb(
            "confirm", "SEQUENCE", 1...1, options: ["server", "timeout"],
            "wait until every service has the change of that sequence, as a removal, or answers nothing"),
        Verb(
            "restart-log", "", 0...0, options: accessNames.union(["data"]),
            "after etcd was lost: let the log go on behind the storage in --data, the one that has most"),
    ],
    "see how the services of a cluster stand, confirm a change at all of them, and restart their log",
    options: clusterAccessOptions + [
        Option("data", "DIR", "restart-log: the data directory of a stopped service"), .server, .timeout, .json,
    ]
) { verb, arguments in
    if verb.name == "confirm" { return try await confirmEverywhere(arguments) }
    let cluster = try ClusterSettings(reachedBy: arguments)
    do {
        guard verb.name == "restart-log" else { return try checkCluster(cluster, arguments) }
        let number = try ClusterReport.restartLog(of: cluster, behind: try arguments.required("data"))
        printNow("the log of \(cluster.name) goes on behind segment \(number): start the services")
        return .success
    } catch let error as ServiceError {
        // Its code is one of services: no service has answered.
        complain(error.reason)
        return .failure
    }
}

private func confirmEverywhere(_ arguments: Arguments) async throws -> ExitCode {
    guard let sequence = UInt64(arguments.operands[1]), sequence > 0 else {
        throw UsageError("confirm takes the sequence of a change, which its receipt has")
    }
    let client = try connect(arguments)
    defer { client.close() }
    let began = MonotonicClock.system.milliseconds
    // The service waits for some seconds. It is asked again as long as another wait ends within the time-out.
    let wait = Duration.milliseconds(Int(Limits.everywhereMilliseconds))
    let patience = Duration.seconds(try arguments.decimal("timeout", in: 0.01...86_400)) - wait
    try await client.whileBusy(patience) { client throws(ServiceError) in try await client.confirmEverywhere(sequence) }
    let milliseconds = MonotonicClock.system.milliseconds - began
    printNow(
        arguments.isOn("json")
            ? try json(["sequence": sequence, "milliseconds": milliseconds])
            : "change \(sequence) is effective at every service (\(milliseconds) ms)")
    return .success
}

private func checkCluster(_ cluster: ClusterSettings, _ arguments: Arguments) throws -> ExitCode {
    var report = try ClusterReport(of: cluster)
    // While changes come, services stand at the same segment only by chance.
    for _ in 0..<20 where !report.isComplete && report.disagreements.isEmpty {
        usleep(100_000)
        report = try ClusterReport(of: cluster)
    }
    printNow(
        arguments.isOn("json")
            ? try json(object(report)) : lines(report, cluster).map(\.escapingControls).joined(separator: "\n"))
    let isWell =
        report.disagreements.isEmpty && !report.isLogLost && !report.isNothing && report.missingGenerations.isEmpty
        && !report.areStrangers && report.leftBehind.isEmpty
    return isWell ? .success : .refused
}

private func object(_ report: ClusterReport) -> [String: Any] {
    let services = report.services.map { service -> [String: Any] in
        let record = service.record
        var object: [String: Any] = [
            "segment": record.segment, "sequence": record.sequence, "silent": service.isSilent,
        ]
        object["address"] = record.address
        object["contents"] = record.contents
        object["checkpoint"] = record.checkpoint
        object["checkpointContents"] = record.digest
        object["secrets"] = record.secrets
        object["founding"] = record.founding
        object["secondsLeft"] = service.secondsLeft
        return object
    }
    var object: [String: Any] = ["services": services, "differ": report.disagreements]
    object["compared"] = report.isComplete
    object["logIsLost"] = report.isLogLost
    object["clustersDiffer"] = report.areStrangers
    object["leftBehind"] = report.leftBehind.map { $0.record.address ?? "" }
    object["secretsDiffer"] = report.hasForeignSecrets
    object["secretsMissing"] = report.missingGenerations.map { service, generation in
        ["address": service.record.address ?? "", "generation": generation]
    }
    if let log = report.log { (object["first"], object["last"]) = (log.lowerBound, log.upperBound) }
    return object
}

private func lines(_ report: ClusterReport, _ cluster: ClusterSettings) -> [String] {
    let log = report.log.map { "segments \($0.lowerBound) to \($0.upperBound)" } ?? "empty"
    var lines = ["the log of \(cluster.name): \(log)"]
    for service in report.services {
        let record = service.record
        let digest = record.contents.map { String($0.prefix(16)) } ?? "unknown"
        let name = record.name
        let secrets = record.secrets.map { ", secret \($0.joined(separator: " and "))" } ?? ""
        lines.append("\(name): segment \(record.segment), change \(record.sequence), contents \(digest)\(secrets)")
        if service.isSilent {
            let seconds = service.secondsLeft.map { " in \($0 + 1) s" } ?? ""
            lines.append("\(name) has ended or hangs: its key in etcd ends\(seconds)")
        }
    }
    lines += report.disagreements.map { "behind segment \($0) the services hold different things" }
    for (service, generation) in report.missingGenerations {
        let name = service.record.name
        lines.append("\(name) does not accept generation \(generation) of the secret, which another one accepts")
    }
    if report.hasForeignSecrets {
        lines.append("services have different secrets: grants of some are taken for forged by others")
    }
    for service in report.leftBehind {
        lines.append(
            "\(service.record.name) can't follow any more, because the log does not go back to it: replace its storage")
    }
    if report.areStrangers {
        lines.append("services have storages of different clusters: is --cluster-name right at all of them?")
        lines += report.services.map { "\($0.record.name): cluster \($0.record.founding?.prefix(16) ?? "unknown")" }
    } else if report.isLogLost {
        lines.append("services have applied more than the log has: etcd has lost it, so they answer stale")
    } else if report.isNothing {
        lines.append("there is neither a log nor a service: is --cluster-name right?")
    } else if report.disagreements.isEmpty, report.services.count > 1 {
        lines.append(
            report.isComplete
                ? "all services hold the same"
                : "the services are at different segments; nothing tells that they hold different things")
    }
    return lines
}
