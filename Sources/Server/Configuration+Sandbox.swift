import Foundation
package import Platform

extension Configuration {
    /// The files that the service uses after its start: it writes the data and the audit, replaces the secret, removes
    /// the files of its local sockets, and reads again what SIGHUP makes it read. A trace stays open. A service of a
    /// cluster connects to etcd.
    package var sandboxRules: SandboxRules {
        func folder(of path: String) -> String { URL(fileURLWithPath: path).deletingLastPathComponent().path }
        let sockets = endpoints + plainEndpoints + [associationEndpoint].compactMap { $0 } + operatorEndpoints
        return SandboxRules(
            writableFolders: [dataDirectory] + [auditPath].compactMap { $0.map(folder) },
            removalFolders: sockets.compactMap { $0.path.map(folder) },
            readableFiles: [
                secretPath, optionsPath, tls?.certificatePath, tls?.keyPath, tls?.clientAuthoritiesPath,
                cluster?.tls?.authoritiesPath, cluster?.tls?.certificatePath, cluster?.tls?.keyPath,
            ].compactMap { $0 },
            connectionPorts: Set(cluster?.endpoints.map(\.port) ?? []))
    }
}
