import Core
import Foundation
import TestSupport
import Testing

@testable import rootgate

@Suite("The files for systemd")
struct UnitFileTests {
    private static let folder = packageFile("deploy/systemd")

    private func text(_ name: String) throws -> String {
        try String(contentsOfFile: Self.folder + "/" + name, encoding: .utf8)
    }

    /// The value of a setting that stands in a unit once.
    private func setting(_ name: String, of unit: String) throws -> String {
        let lines = try text(unit).split(separator: "\n").filter { $0.hasPrefix(name + "=") }
        #expect(lines.count == 1, "\(name)")
        return String(try #require(lines.first).dropFirst(name.count + 1))
    }

    private var analyzer: String? {
        let path = TestSupport.programPath("systemd-analyze")
        if path == nil { print("SKIPPED: there is no systemd-analyze, so the units are not verified") }
        return path
    }

    @Test("Systemd finds nothing wrong with the units")
    func verified() throws {
        guard let analyzer else { return }
        // The program need not be installed here.
        let copies = ScratchDirectory()
        for name in ["rootgate.service", "rootgate.socket"] {
            let unit = try text(name).replacingOccurrences(of: "/usr/bin/rootgate", with: programPath)
            try Data(unit.utf8).write(to: URL(fileURLWithPath: copies.path + "/" + name))
        }
        let units = ["rootgate.service", "rootgate.socket"].map { copies.path + "/" + $0 }
        let result = try runProgram(analyzer, ["verify", "--man=no"] + units)
        #expect(result.code == 0 && result.errors.isEmpty, "\(result.errors)\(result.output)")
    }

    @Test("Systemd rates what the service may do at 1.5 of 10 at most")
    func exposure() throws {
        guard let analyzer else { return }
        let result = try runProgram(
            analyzer, ["security", "--offline=true", "--no-pager", Self.folder + "/rootgate.service"])
        let words = result.output.components(separatedBy: "Overall exposure level for rootgate.service: ")
        let level = try #require(words.count == 2 ? Double(words[1].prefix { $0 != " " }) : nil, "\(result)")
        #expect(level <= 1.5)
    }

    @Test("The service's options and times are those of its unit")
    func times() throws {
        let options = Self.folder + "/rootgate.conf"
        let checked = try runProgram(programPath, ["check-config", "--config", options, "--json"])
        #expect(checked.code == 0, "\(checked.errors)")
        let start = try setting("ExecStart", of: "rootgate.service").split(separator: " ").map(String.init)
        #expect(start == ["/usr/bin/rootgate", "serve", "--config", "/etc/rootgate/rootgate.conf"])
        #expect(
            try text("rootgate.conf").contains(
                "\ndata = /var/lib/\(setting("StateDirectory", of: "rootgate.service"))\n"))
        let drain = try #require(serviceOptions.first { $0.name == "drain-seconds" }.flatMap { Int($0.standard) })
        let stop = try #require(Int(setting("TimeoutStopSec", of: "rootgate.service")))
        #expect(stop >= drain + 10)
        // A worker may be busy for so long before the service says that it is not ready.
        let watchdog = try #require(UInt64(setting("WatchdogSec", of: "rootgate.service")))
        #expect(watchdog * 1000 >= 2 * Limits.ownProofMilliseconds)
        #expect(try setting("Type", of: "rootgate.service") == "notify")
        #expect(try setting("FileDescriptorName", of: "rootgate.socket") == "listen")
        let mode = try #require(serviceOptions.first { $0.name == "listen-mode" }?.standard)
        #expect(try setting("SocketMode", of: "rootgate.socket") == mode)
    }

    @Test("The commented options of the file are options, too")
    func comments() throws {
        let names = Set(serviceOptions.map(\.name))
        let lines = try text("rootgate.conf").split(separator: "\n").filter {
            $0.contains(" = ") && !$0.contains(", one")
        }
        for line in lines {
            let name = line.drop { $0 == "#" || $0 == " " }.prefix { $0 != " " }
            #expect(names.contains(String(name)), "\(line)")
        }
        #expect(lines.count > 5)
    }
}
