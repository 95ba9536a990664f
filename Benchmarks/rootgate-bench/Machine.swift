import CLMDB
import COpenSSL
import Foundation

/// Facts about this machine.
enum Machine {
    /// The facts that a report has of the machine and of the libraries that are measured on it.
    static var facts: [(name: String, value: String)] {
        [
            ("date", ISO8601DateFormatter.string(from: Date(), timeZone: .gmt, formatOptions: [.withFullDate])),
            ("processor", processor),
            ("cores", "\(ProcessInfo.processInfo.activeProcessorCount)"),
            ("system", system),
            ("kernels", kernelFacts()),
            ("OpenSSL", String(cString: OpenSSL_version(OPENSSL_VERSION))),
            ("LMDB", String(cString: mdb_version(nil, nil, nil))),
            ("Swift", swift),
        ]
    }

    /// Waits until the files of what was measured before are on the disk, so that their writing takes nothing from what
    /// is measured next.
    static func settle() { sync() }

    /// The processor's name, with its family and model: hypervisors give several generations the same name.
    static var processor: String {
        #if os(Linux)
        let lines = (try? String(contentsOfFile: "/proc/cpuinfo", encoding: .utf8))?.split(separator: "\n") ?? []
        func field(_ name: String) -> String? {
            lines.lazy.map { $0.split(separator: ":", maxSplits: 1).map { $0.trimmingCharacters(in: .whitespaces) } }
                .first { $0.count == 2 && $0[0] == name }?[1]
        }
        guard let name = field("model name") else { return architecture }
        guard let family = field("cpu family"), let model = field("model") else { return name }
        return "\(name) (family \(family), model \(model))"
        #else
        return output(of: "/usr/sbin/sysctl", "-n", "machdep.cpu.brand_string") ?? architecture
        #endif
    }

    static var system: String {
        let release = (try? String(contentsOfFile: "/etc/os-release", encoding: .utf8))?.split(separator: "\n") ?? []
        let name = release.first { $0.hasPrefix("PRETTY_NAME=") }?.dropFirst("PRETTY_NAME=".count)
        let kernel = output(of: "/usr/bin/env", "uname", "-sr") ?? ""
        let version = ProcessInfo.processInfo.operatingSystemVersionString
        return [name.map { String($0.replacing("\"", with: "")) } ?? version, kernel].joined(separator: ", ")
    }

    static var swift: String {
        output(of: "/usr/bin/env", "swift", "--version") ?? "unknown"
    }

    private static var architecture: String { output(of: "/usr/bin/env", "uname", "-m") ?? "unknown" }

    /// The first line that a program prints; `nil` when it can't be run or says nothing.
    private static func output(of program: String, _ arguments: String...) -> String? {
        let process = Process()
        let pipe = Pipe()
        process.executableURL = URL(fileURLWithPath: program)
        process.arguments = arguments
        process.standardOutput = pipe
        process.standardError = FileHandle.nullDevice
        guard (try? process.run()) != nil else { return nil }
        let text = String(decoding: pipe.fileHandleForReading.readDataToEndOfFile(), as: UTF8.self)
        process.waitUntilExit()
        return text.split(separator: "\n").first.map(String.init)
    }
}
