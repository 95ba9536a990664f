import Foundation
import TestSupport
import Testing

@testable import rootgate

@Suite("The files for containers")
struct ContainerFileTests {
    private func text(_ path: String) throws -> String {
        try String(contentsOfFile: packageFile("deploy/" + path), encoding: .utf8)
    }

    @Test("The options of the container and of Kubernetes are options, and the probes ask where the service answers")
    func options() throws {
        let probed = try #require(probeCommand.options.first { $0.name == "operator" }?.standard)
        for path in ["container/rootgate.conf", "kubernetes/rootgate.conf", "systemd/rootgate.conf"] {
            let lines = try text(path).split(separator: "\n").filter { !$0.hasPrefix("#") }
            let options = Dictionary(
                lines.map { line in
                    let parts = line.components(separatedBy: " = ")
                    return (parts[0], parts.dropFirst().joined())
                }, uniquingKeysWith: { first, _ in first })
            #expect(options.count == lines.count)
            for name in options.keys { #expect(serviceOptions.contains { $0.name == name }, "\(path): \(name)") }
            #expect(options["operator"] == probed, "\(path)")
        }
        let image = try text("container/Containerfile")
        #expect(image.contains("FROM scratch\n") && image.contains("\nUSER 10001:10001\n"))
        #expect(try text("container/root-files").contains("rootgate:x:10001:10001:"))
    }
}
