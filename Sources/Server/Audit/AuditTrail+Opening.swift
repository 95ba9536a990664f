import Audit
import Core
import Foundation
import RootSets

extension AuditTrail {
    /// Opens the audit that the configuration names; `nil` when it names none.
    ///
    /// Throws when the audit can't be kept. Then the storage is closed.
    static func open(
        _ configuration: Configuration, _ rootSets: RootSets, _ secrets: ServiceSecrets,
        _ date: @escaping @Sendable () -> Date, _ log: Log
    ) throws(StartupFailure) -> AuditTrail? {
        guard let path = configuration.auditPath else { return nil }
        let failure: StartupFailure
        do throws(ServiceError) {
            let last = try rootSets.read { snapshot throws(ServiceError) in try snapshot.lastSequence() }
            let key = try secrets.auditKey()
            do throws(AuditFailure) {
                let trail = try AuditTrail(
                    settings(configuration, path), key: key, sequence: rootSets.sharesLog ? nil : last,
                    date: { UInt64(max(0, date().timeIntervalSince1970 * 1000)) }, log: log)
                secrets.onChange { key, secret in
                    trail.use(key)
                    let next = secret.next?.name
                    trail.note(
                        .ofService(next == nil ? "rotate-secret" : "prepare-secret", detail: next ?? key.name))
                }
                return trail
            } catch {
                failure = .audit(error)
            }
        } catch {
            failure = .storage(directory: configuration.dataDirectory, error)
        }
        rootSets.close()
        throw failure
    }

    private static func settings(_ configuration: Configuration, _ path: String) -> Settings {
        var settings = Settings(path: path)
        settings.isOptional = configuration.isAuditOptional
        settings.fileBytesMax = configuration.auditBytesMax
        return settings
    }
}
