import Cluster
import Core
import Foundation
import Server

let clusterCommand = Command(
    "cluster",
    verbs: [
        Verb("check", "", 0...0, "list the services, and compare what they hold; exit code 1: something is wrong"),
        Verb(
            "restart-log", "", 0...0, options: ["data"],
            "after etcd was lost: let the log go on behind the storage in --data, the one that has most"),
    ],
    "see how the services of a cluster stand, and restart their log",
    options: clusterAccessOptions + [
        Option("data", "DIR", "restart-log: the data directory of a stopped service"), .json,
    ]
) { verb, arguments in
    let cluster = try ClusterSettings(reachedBy: arguments)
    switch verb.name {
    case "check": return try checkCluster(cluster, arguments)
    case "restart-log":
        let number = try ClusterReport.restartLog(of: cluster, behind: try arguments.required("data"))
        printNow("the log of \(cluster.name) goes on behind segment \(number): start the services")
        return .success
    default: throw UsageError("cluster has no verb \(verb.name)")
    }
}

private func checkCluster(_ cluster: ClusterSettings, _ arguments: Arguments) throws -> ExitCode {
    var report = try ClusterReport(of: cluster)
    // While changes come, services stand at the same segment only by chance.
    for _ in 0..<20 where !report.isComplete && report.disagreements.isEmpty {
        usleep(100_000)
        report = try ClusterReport(of: cluster)
    }
    let disagreements = report.disagreements
    if arguments.isOn("json") {
        let services = report.services.map { service -> [String: Any] in
            var object: [String: Any] = ["segment": service.segment, "sequence": service.sequence]
            object["address"] = service.address
            object["contents"] = service.contents
            object["checkpoint"] = service.checkpoint
            object["checkpointContents"] = service.digest
            return object
        }
        var object: [String: Any] = ["services": services, "differ": disagreements]
        object["compared"] = report.isComplete
        object["logIsLost"] = report.isLogLost
        if let log = report.log { (object["first"], object["last"]) = (log.lowerBound, log.upperBound) }
        printNow(try json(object))
    } else {
        let log = report.log.map { "segments \($0.lowerBound) to \($0.upperBound)" } ?? "empty"
        printNow("the log of \(cluster.name): \(log)")
        for service in report.services {
            let digest = service.contents.map { String($0.prefix(16)) } ?? "unknown"
            let name = service.address ?? "a service without an address"
            printNow("\(name): segment \(service.segment), change \(service.sequence), contents \(digest)")
        }
        for number in disagreements { printNow("behind segment \(number) the services hold different things") }
        if report.isLogLost {
            printNow("services have applied more than the log has: etcd has lost it, so they answer stale")
        } else if report.isNothing {
            printNow("there is neither a log nor a service: is --cluster-name right?")
        } else if disagreements.isEmpty, report.services.count > 1 {
            printNow(
                report.isComplete
                    ? "all services hold the same"
                    : "the services are at different segments; nothing tells that they hold different things")
        }
    }
    return disagreements.isEmpty && !report.isLogLost && !report.isNothing ? .success : .refused
}
