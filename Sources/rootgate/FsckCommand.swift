import Core
import Foundation
import Server

let fsckCommand = Command(
    "fsck", operands: "DIRECTORY", operandsMax: 1,
    "check all that a service has stored, while it runs or not; exit code 1: it is damaged",
    options: [
        Option(
            switch: "repair",
            "of a stopped service: restore what is damaged from the change log, if that is possible exactly; keeps the "
                + "damaged file"
        ),
        .json,
    ]
) { arguments in
    guard let directory = arguments.operands.first else { throw UsageError("fsck takes the directory of the data") }
    if arguments.isOn("repair") {
        let lines = try OfflineStorage.repair(directory)
        if arguments.isOn("json") {
            printNow(try json(["done": lines]))
        } else {
            for line in lines { printNow(line.escapingControls) }
        }
        return .success
    }
    let findings = try OfflineStorage.findings(in: directory)
    if arguments.isOn("json") {
        let list = findings.map { ["kind": $0.kind, "what": $0.what, "meaning": $0.meaning] }
        printNow(try json(["findings": list, "count": findings.count]))
    } else {
        for finding in findings {
            printNow("\(finding.kind): \(finding.what): \(finding.meaning)".escapingControls)
        }
        let count = findings.count == 1 ? "1 finding" : "\(findings.count) findings"
        printNow(findings.isEmpty ? "nothing is damaged" : count)
    }
    return findings.isEmpty ? .success : .refused
}
