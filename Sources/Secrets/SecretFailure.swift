import Foundation
package import Platform

/// Why a file with a secret can't be used. It is for the operator; a client never gets one.
package enum SecretFailure: Error, Sendable {
    case missing(path: String)
    case unreadable(path: String, SystemFailure)
    case unwritable(path: String, SystemFailure)
    /// It is a folder, a link or a device.
    case noFile(path: String)
    /// Others than its owner may read or write it.
    case readableByOthers(path: String, mode: UInt32)
    /// It belongs to neither this process's user nor root.
    case foreign(path: String, owner: UInt32)
    /// It does not have the length of a file with a secret.
    case wrongLength(path: String, bytes: Int)
    /// It was changed, or written only in part.
    case damaged(path: String)
    /// Challenges and grants of the generation before may still be valid, and a rotation would refuse them.
    case tooSoon(path: String, secondsLeft: UInt64)
    /// A generation is prepared, and must be used before another one is made.
    case prepared(path: String)
    /// No generation is prepared, so none can be used.
    case notPrepared(path: String)
}

extension SecretFailure: CustomStringConvertible {
    /// One line: what is wrong and what to do.
    package var description: String {
        switch self {
        case .missing(let path):
            "there is no secret at \(path): restore it, or make one with rootgate keys rotate-secret --secret-file "
                + path
        case .unreadable(let path, let failure): "can't read the secret \(path): \(failure)"
        case .unwritable(let path, let failure): "can't write the secret \(path): \(failure)"
        case .noFile(let path): "the secret \(path) is not a plain file: name a file that is no link, folder or device"
        case .readableByOthers(let path, let mode):
            "refused the secret \(path): its mode is \(SecretFailure.octal(mode)), so that others than its owner can "
                + "use it; say chmod 600 \(path)"
        case .foreign(let path, let owner):
            "refused the secret \(path): it belongs to user \(owner), neither to this process's user "
                + "(\(geteuid())) nor to root; run rootgate as user \(owner), the owner of its files"
        case .wrongLength(let path, let bytes):
            "the secret \(path) is damaged: it has \(bytes) bytes, not \(SecretFile.byteCount); "
                + SecretFailure.replacement(of: path)
        case .damaged(let path): "the secret \(path) is damaged: " + SecretFailure.replacement(of: path)
        case .tooSoon(let path, let secondsLeft):
            "the secret \(path) was rotated a short time ago: what the generation before it has authenticated may be "
                + "valid for \(SecretFailure.duration(ofSeconds: secondsLeft)) more, so wait (only when the secret has "
                + "leaked: --drop-previous refuses all grants and challenges that there are)"
        case .prepared(let path):
            "the secret \(path) has a generation that is prepared: say --use-prepared when every service has read the "
                + "file (only when the secret has leaked: --drop-previous refuses all grants and challenges that "
                + "there are)"
        case .notPrepared(let path):
            "the secret \(path) has no generation that is prepared: say --prepare, and let every service read the "
                + "file, before --use-prepared"
        }
    }

    private static func replacement(of path: String) -> String {
        "restore it, or remove it and say rootgate keys rotate-secret --secret-file \(path), which makes another one: "
            + "then no earlier grant is valid"
    }

    /// A duration for people, rounded up.
    private static func duration(ofSeconds seconds: UInt64) -> String {
        let (minutes, hours) = ((seconds - 1) / 60 + 1, (seconds - 1) / 3600 + 1)
        return hours > 1 ? "\(hours) hours" : minutes > 1 ? "\(minutes) minutes" : "\(seconds) s"
    }

    private static func octal(_ mode: UInt32) -> String {
        let digits = String(mode & 0o7777, radix: 8)
        return String(repeating: "0", count: max(0, 4 - digits.count)) + digits
    }
}
