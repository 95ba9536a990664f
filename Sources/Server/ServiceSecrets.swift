import Audit
import Cluster
import Core
import Foundation
import Hashing
import Secrets

/// The running service's root secret: the keys that are derived from it, and their replacement while the service runs.
final class ServiceSecrets: Sendable {
    /// The keys of each purpose.
    let challenges: RotatingKeys
    let grants: RotatingKeys
    let snapshots: RotatingKeys
    /// What the services of a cluster tell each other of their secrets; `nil` unless the service is one of a cluster.
    let shared: SecretNames?

    private let file: SecretFile
    /// Whether the service makes and rotates the file. It never writes a file that the operator has named.
    private let isOwn: Bool
    /// A generation that is this old is replaced; 0: never.
    private let ageMax: UInt64
    private let secret: Lock<RootSecret>
    /// Held while other generations are taken, so that what one thread has read replaces nothing newer.
    private let changing = Lock(())
    private let listener = Lock(Listener())
    private let date: @Sendable () -> Date
    private let random: RandomSource
    private let log: Log

    /// Who is told when other generations are accepted.
    private struct Listener {
        var onChange: (@Sendable (AuditTrail.Key, RootSecret) -> Void)?
    }

    /// Reads the secret of the data directory, and makes it when it is missing; or reads the file that the
    /// configuration names. `hasServed`: whether a service has used the directory before, so that a missing
    /// secret was lost.
    ///
    /// Throws when the file can't be used, or a key can't be derived.
    init(
        _ configuration: Configuration, hasServed: Bool, date: @escaping @Sendable () -> Date, random: RandomSource,
        log: Log
    ) throws(StartupFailure) {
        isOwn = configuration.secretPath == nil
        file =
            configuration.secretPath.map { SecretFile(path: $0) }
            ?? SecretFile(dataDirectory: configuration.dataDirectory)
        ageMax = configuration.secretDays * 24 * 3600 * 1000
        shared = configuration.cluster?.secret
        self.date = date
        self.random = random
        self.log = log
        let now = ServiceSecrets.milliseconds(date)
        let secret: RootSecret
        do throws(SecretFailure) {
            if isOwn {
                let found = try file.loadOrMake(at: now, random: random)
                secret = found.secret.settled(at: now)
                if found.isNew, hasServed {
                    log(.warning, "made the secret \(file.path), which was missing: no earlier grant is valid")
                }
            } else {
                secret = try file.load().settled(at: now)
                // Who rotates a secret that services share has to know that all of them have read the file.
                log(.info, ServiceSecrets.summary(of: secret))
            }
        } catch {
            throw StartupFailure.secret(error)
        }
        do throws(ServiceError) {
            challenges = RotatingKeys(try secret.keys(for: .challenges))
            grants = RotatingKeys(try secret.keys(for: .grants))
            snapshots = RotatingKeys(try secret.keys(for: .snapshots))
        } catch {
            throw StartupFailure.outOfResources(error.reason)
        }
        self.secret = Lock(secret)
        shared?.accept(secret.generations.map(\.name))
    }

    private static func milliseconds(_ date: () -> Date) -> UInt64 {
        UInt64(max(0, date().timeIntervalSince1970 * 1000))
    }

    /// The key of the audit's lines, from the present generation.
    ///
    /// Throws `internalFault` when libcrypto can't derive it.
    func auditKey() throws(ServiceError) -> AuditTrail.Key {
        let current = secret.withLock { $0.current }
        return AuditTrail.Key(name: current.name, try current.authenticator(for: .audits))
    }

    /// From now on `body` is called with the audit's key and the secret whenever other generations are accepted.
    func onChange(_ body: @escaping @Sendable (AuditTrail.Key, RootSecret) -> Void) {
        listener.withLock { $0.onChange = body }
    }

    /// Reads the file again, and takes its generations when they have changed. When the file can't be used, the keys
    /// stay, and the log says why.
    func reload() { changing.withLock { _ in readAgain() } }

    private func readAgain() {
        do throws(SecretFailure) {
            if !adopt(try file.load(), reason: "it was read again") {
                log(.info, "read the secret again: it is unchanged")
            }
        } catch {
            log(.warning, "the secret stays as it is: \(error)")
        }
    }

    /// Replaces a generation that has reached its age, and forgets the one before the present one when everything that
    /// it authenticated has expired. While a generation is prepared, none is replaced: whoever has prepared it decides.
    func maintain() { changing.withLock { _ in rotateOrSettle() } }

    private func rotateOrSettle() {
        let now = ServiceSecrets.milliseconds(date)
        let known = secret.withLock { $0 }
        let age = now > known.current.inUseAt ? now - known.current.inUseAt : 0
        if isOwn, ageMax > 0, age >= ageMax {
            do throws(SecretFailure) {
                adopt(try file.rotate(at: now, random: random), reason: "its age")
            } catch {
                log(.warning, "the secret is not rotated: \(error)")
            }
        } else if known.previous != nil, known.isPreviousSettled(at: now) {
            adopt(known, reason: "the generation before has expired")
        }
    }

    /// Which generations a secret has, for the log.
    private static func summary(of secret: RootSecret) -> String {
        let other =
            secret.previous.map { "\($0.name) is still valid" } ?? secret.next.map { "\($0.name) is prepared" }
            ?? "no other one is valid"
        return "generation \(secret.current.name) of the secret is in use, and \(other)"
    }

    /// Takes the generations of a secret, as far as they are needed. Returns false when they are in use already.
    @discardableResult
    private func adopt(_ found: RootSecret, reason: String) -> Bool {
        let next = found.settled(at: ServiceSecrets.milliseconds(date))
        let isChanged = secret.withLock {
            $0.current.identifier != next.current.identifier || $0.previous?.identifier != next.previous?.identifier
                || $0.next?.identifier != next.next?.identifier
        }
        guard isChanged else { return false }
        do throws(ServiceError) {
            let (challengeKeys, grantKeys) = (try next.keys(for: .challenges), try next.keys(for: .grants))
            let snapshotKeys = try next.keys(for: .snapshots)
            secret.withLock { $0 = next }
            shared?.accept(next.generations.map(\.name))
            challenges.replace(challengeKeys)
            grants.replace(grantKeys)
            snapshots.replace(snapshotKeys)
            log(.info, "\(ServiceSecrets.summary(of: next)) (\(reason))")
            if let tell = listener.withLock(\.onChange) { tell(try auditKey(), next) }
        } catch {
            log(.warning, "the secret stays as it is: \(error)")
        }
        return true
    }
}
