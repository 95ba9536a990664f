#if os(Linux)
import CLinux
import Foundation

/// A ruleset of Landlock: the files that threads may use, and the ports to which they may connect by TCP. Landlock
/// needs no privileges.
final class Landlock {
    /// Rights on files and folders, as linux/landlock.h has them. Headers of older systems don't have all of them.
    struct Rights: OptionSet {
        let rawValue: UInt64

        static let writeFile = Rights(rawValue: 1 << 1)
        static let readFile = Rights(rawValue: 1 << 2)
        static let readFolder = Rights(rawValue: 1 << 3)
        static let removeFile = Rights(rawValue: 1 << 5)
        static let makeFile = Rights(rawValue: 1 << 8)
        static let truncate = Rights(rawValue: 1 << 14)

        /// Every right that a version of Landlock knows: 13 in the first, then moving to other folders, truncating, and
        /// requests to devices.
        static func all(version: Int) -> Rights {
            let count = version >= 5 ? 16 : version >= 3 ? 15 : version >= 2 ? 14 : 13
            return Rights(rawValue: 1 << count - 1)
        }
    }

    /// The ruleset, for landlock_restrict_self(2).
    let descriptor: CInt
    /// The version of the kernel's interface.
    let version: Int

    /// From the fourth version on Landlock restricts TCP.
    var restrictsNetwork: Bool { version >= 4 }

    /// Makes a ruleset that refuses everything but what the rules allow. Nowhere may a file be executed, or a folder, a
    /// link, a socket or a device be made.
    ///
    /// Throws when the kernel has no Landlock or has it switched off, and when a folder of the rules is not there.
    init(_ rules: SandboxRules) throws(SystemFailure) {
        // LANDLOCK_CREATE_RULESET_VERSION.
        version = system_call(landlock_create_ruleset_call, 0, 0, 1, 0, 0, 0)
        guard version > 0 else { throw SystemFailure("landlock_create_ruleset") }
        let handled = Rights.all(version: version)
        // Files; binding to and connecting to TCP ports. No rule allows binding.
        let attributes: [UInt64] = [handled.rawValue, 0b11]
        let bytes = version >= 4 ? 16 : 8
        let made = attributes.withUnsafeBytes {
            system_call(
                landlock_create_ruleset_call, Int(bitPattern: $0.baseAddress), bytes, 0, 0, 0, 0)
        }
        guard made >= 0 else { throw SystemFailure("landlock_create_ruleset") }
        descriptor = CInt(made)
        // Dispatch looks there which of its threads run, and ends the process when it can't. The kernel lets nobody in
        // a sandbox look into the memory of processes that are not in it.
        try allow(.readFile, beneath: "/proc")
        let writing: Rights = [.writeFile, .readFile, .readFolder, .removeFile, .makeFile, .truncate]
        for folder in rules.writableFolders { try allow(writing.intersection(handled), beneath: folder) }
        for folder in rules.removalFolders { try allow(.removeFile, beneath: folder) }
        for file in rules.readableFiles {
            for place in Landlock.places(of: file) { try allow(.readFile, beneath: place) }
        }
        guard !rules.connectionPorts.isEmpty else { return }
        for path in Landlock.lookupFiles where access(path, R_OK) == 0 { try allow(.readFile, beneath: path) }
        if restrictsNetwork {
            for port in rules.connectionPorts.union([Landlock.namesPort]) { try allowConnections(to: port) }
        }
    }

    /// What the C library reads when it looks up a name, as far as a system has it: these files alone, not their
    /// folder.
    private static let lookupFiles = [
        "/etc/hosts", "/etc/resolv.conf", "/etc/nsswitch.conf", "/etc/host.conf", "/etc/gai.conf", "/etc/services",
    ]

    /// The port of servers of names, which are asked by TCP when an answer is long.
    private static let namesPort: UInt16 = 53

    private func allowConnections(to port: UInt16) throws(SystemFailure) {
        // struct landlock_net_port_attr: LANDLOCK_ACCESS_NET_CONNECT_TCP, then the port.
        let rule: [UInt64] = [0b10, UInt64(port)]
        // LANDLOCK_RULE_NET_PORT.
        let added = rule.withUnsafeBytes {
            system_call(landlock_add_rule_call, Int(descriptor), 2, Int(bitPattern: $0.baseAddress), 0, 0, 0)
        }
        guard added == 0 else { throw SystemFailure("landlock_add_rule for port \(port)") }
    }

    deinit {
        close(descriptor)
    }

    /// The folder of a file and the folder of the file to which its name leads, or the file itself in the root folder.
    static func places(of file: String) -> Set<String> {
        let path = URL(fileURLWithPath: file)
        return Set(
            [path.standardizedFileURL, path.resolvingSymlinksInPath()].map { file in
                let folder = file.deletingLastPathComponent().path
                return folder == "/" ? file.path : folder
            })
    }

    private func allow(_ rights: Rights, beneath path: String) throws(SystemFailure) {
        guard path != "/" else { throw SystemFailure("Landlock", number: EINVAL, reason: "all of / would be allowed") }
        let place = open(path, CInt(open_place) | O_CLOEXEC)
        guard place >= 0 else { throw SystemFailure("opening \(path)") }
        defer { close(place) }
        // struct landlock_path_beneath_attr, which is packed: the rights, then the descriptor.
        var rule: [UInt8] = []
        withUnsafeBytes(of: rights.rawValue) { rule += $0 }
        withUnsafeBytes(of: place) { rule += $0 }
        // LANDLOCK_RULE_PATH_BENEATH.
        let added = rule.withUnsafeBytes {
            system_call(
                landlock_add_rule_call, Int(descriptor), 1, Int(bitPattern: $0.baseAddress), 0, 0, 0)
        }
        guard added == 0 else { throw SystemFailure("landlock_add_rule for \(path)") }
    }
}
#endif
