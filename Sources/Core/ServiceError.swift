/// Why the service could not answer a request. An invalid proof is never one:
/// that is a `Verdict`.
///
/// Two errors are equal when their codes are; the reason is for people, and
/// `detail` carries the number that the code speaks of (a limit, an operation).
/// `origin` tells what the service answered from what a client found by itself.
public struct ServiceError: Error, Sendable {
    /// The code as on the wire; stable, listed in PROTOCOL.md.
    public enum Code: UInt16, CaseIterable, Sendable {
        // The frame: the connection is closed after the answer.
        case unsupportedVersion = 1
        case frameTooLarge = 2
        case malformedFrame = 3
        case tooManyConnections = 4

        // The request: the connection goes on.
        case unknownOperation = 16
        case malformedRequest = 17
        case limitExceeded = 18
        case unknownCollaboration = 19
        case collaborationExists = 20
        case mutationConflict = 21
        case changesTrimmed = 22
        case staleEdit = 23

        // The service's state: try again later, or call its operator.
        case busy = 32
        case shuttingDown = 33
        case storageFull = 48
        case storageFailed = 49
        case storageDamaged = 50
        case storageInUse = 51
        case internalFault = 64

        // The collaboration layer: the connection goes on.
        case notPermitted = 80
        case unknownOption = 81
        case optionConflict = 82
        case optionRequired = 83
        case noLinkBase = 84
        case unknownParticipant = 85
        case grantRefused = 86
        case unknownInvitation = 87
        case unknownHighlight = 88
        case behindSequence = 89

        // Seen by a client only, never on the wire.
        case connectionLost = 256
        case connectionRefused = 257
        case deadlineExceeded = 258
        case cancelled = 259
        case malformedAnswer = 260

        /// The stable name: lower-case words joined by hyphens.
        public var name: String {
            switch self {
            case .unsupportedVersion: "unsupported-version"
            case .frameTooLarge: "frame-too-large"
            case .malformedFrame: "malformed-frame"
            case .tooManyConnections: "too-many-connections"
            case .unknownOperation: "unknown-operation"
            case .malformedRequest: "malformed-request"
            case .limitExceeded: "limit-exceeded"
            case .unknownCollaboration: "unknown-collaboration"
            case .collaborationExists: "collaboration-exists"
            case .mutationConflict: "mutation-conflict"
            case .changesTrimmed: "changes-trimmed"
            case .staleEdit: "stale-edit"
            case .busy: "busy"
            case .shuttingDown: "shutting-down"
            case .storageFull: "storage-full"
            case .storageFailed: "storage-failed"
            case .storageDamaged: "storage-damaged"
            case .storageInUse: "storage-in-use"
            case .internalFault: "internal-fault"
            case .notPermitted: "not-permitted"
            case .unknownOption: "unknown-option"
            case .optionConflict: "option-conflict"
            case .optionRequired: "option-required"
            case .noLinkBase: "no-link-base"
            case .unknownParticipant: "unknown-participant"
            case .grantRefused: "grant-refused"
            case .unknownInvitation: "unknown-invitation"
            case .unknownHighlight: "unknown-highlight"
            case .behindSequence: "behind-sequence"
            case .connectionLost: "connection-lost"
            case .connectionRefused: "connection-refused"
            case .deadlineExceeded: "deadline-exceeded"
            case .cancelled: "cancelled"
            case .malformedAnswer: "malformed-answer"
            }
        }

        /// Whether the service closes the connection after this error, because it can't find the next frame
        /// or does not want the peer.
        public var closesConnection: Bool { rawValue < 16 }

        /// Whether the same request may succeed later without anybody changing it.
        public var isTransient: Bool {
            switch self {
            case .busy, .shuttingDown, .tooManyConnections, .connectionLost, .connectionRefused,
                .deadlineExceeded, .behindSequence, .staleEdit:
                true
            default: false
            }
        }
    }

    /// Who made an error.
    public enum Origin: Hashable, Sendable {
        /// This process. In a client: the request was not sent, or no answer came that can be read.
        case local
        /// The service, which answered a request with this error.
        case service
    }

    /// Errors are rare and the functions that may throw one are many: so it is one word wide.
    private final class Content: Sendable {
        let code: Code
        let detail: UInt32
        let reason: String
        let origin: Origin
        let file: StaticString
        let line: UInt

        init(_ code: Code, _ detail: UInt32, _ reason: String, _ origin: Origin, _ file: StaticString, _ line: UInt) {
            self.code = code
            self.detail = detail
            self.reason = reason
            self.origin = origin
            self.file = file
            self.line = line
        }
    }

    private let content: Content

    /// What went wrong.
    public var code: Code { content.code }
    /// The number that the code speaks of: a limit, an operation, a version, an errno; otherwise zero.
    public var detail: UInt32 { content.detail }
    /// One line for people: what was wrong and what to do.
    public var reason: String { content.reason }
    /// Whether this process or the service made the error.
    public var origin: Origin { content.origin }

    /// `file` and `line` say in `debugDescription` where the error was made; one that the service made, where it was
    /// read.
    public init(
        _ code: Code, detail: UInt32 = 0, origin: Origin = .local, _ reason: String, file: StaticString = #fileID,
        line: UInt = #line
    ) {
        content = Content(code, detail, reason, origin, file, line)
    }
}

extension ServiceError: Equatable {
    public static func == (a: ServiceError, b: ServiceError) -> Bool { a.code == b.code }
}

extension ServiceError: CustomStringConvertible {
    /// The code's name and the reason, in one line; of a service's error it says that the service answered so.
    public var description: String {
        switch origin {
        case .local: "\(code.name): \(reason)"
        case .service: "the service answered \(code.name): \(reason)"
        }
    }
}

extension ServiceError: CustomDebugStringConvertible {
    /// The description and the place in the source where the error was made.
    public var debugDescription: String { "\(description) (\(content.file):\(content.line))" }
}
