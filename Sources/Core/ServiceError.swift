/// Why the service could not answer a request. An invalid proof is not an error: it gets a `Verdict`.
///
/// Two errors are equal when their codes are equal. `reason` is a text for people. `detail` is the number that belongs
/// to the code (a limit, an operation). `origin` says who made the error: the service or this process.
public struct ServiceError: Error, Sendable {
    /// The code on the wire. Codes are stable and listed in PROTOCOL.md.
    public enum Code: UInt16, StableCode {
        // Errors in a frame: the service closes the connection after the answer.
        case unsupportedVersion = 1
        case frameTooLarge = 2
        case malformedFrame = 3
        case tooManyConnections = 4
        case keyRefused = 8

        // Errors in a request: the connection stays open.
        case unknownOperation = 16
        case malformedRequest = 17
        case limitExceeded = 18
        case unknownCollaboration = 19
        case collaborationExists = 20
        case mutationConflict = 21
        case changesTrimmed = 22
        case staleEdit = 23
        case policyRefused = 25
        case roleMissing = 28

        // Errors of the service's state: try again later, or call its operator.
        case busy = 32
        case shuttingDown = 33
        case stale = 34
        case storageFull = 48
        case storageFailed = 49
        case storageDamaged = 50
        case storageInUse = 51
        case internalFault = 64

        // Errors of the collaboration layer: the connection stays open.
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

        // Errors about principals: the connection stays open.
        case unknownPrincipal = 96
        case principalExists = 97

        // Errors that only a client reports. They are never on the wire.
        case connectionLost = 256
        case connectionRefused = 257
        case deadlineExceeded = 258
        case cancelled = 259
        case malformedAnswer = 260
        case tlsRefused = 261

        public static let names = StableNames<Code>()

        /// Whether the service closes the connection after this error. It does so when it can't find the next frame or
        /// rejects the peer.
        public var closesConnection: Bool { rawValue < 16 }

        /// Whether the error says of the stored data that something is or is not there, or is not allowed.
        package var isAboutData: Bool {
            switch self {
            case .unknownCollaboration, .collaborationExists, .notPermitted, .unknownOption, .optionConflict,
                .optionRequired, .unknownParticipant, .grantRefused, .unknownInvitation, .unknownHighlight,
                .unknownPrincipal, .principalExists:
                true
            default: false
            }
        }

        /// Whether the same request, unchanged, may succeed later.
        public var isTransient: Bool {
            switch self {
            case .busy, .shuttingDown, .stale, .tooManyConnections, .connectionLost, .connectionRefused,
                .deadlineExceeded, .behindSequence, .staleEdit:
                true
            default: false
            }
        }
    }

    /// Who made an error.
    public enum Origin: Hashable, Sendable {
        /// This process. In a client: the request was not sent, or no readable answer came.
        case local
        /// The service, which answered a request with this error.
        case service
    }

    /// Keeps an error one word wide: errors are rare, but many functions may throw one.
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
    /// The number that belongs to the code: a limit, an operation, a version, an errno, milliseconds to wait;
    /// otherwise zero.
    public var detail: UInt32 { content.detail }
    /// One line for people: what was wrong and what to do. At most 512 bytes without control characters: where the text
    /// of a peer had one, it is escaped.
    public var reason: String { content.reason }
    /// How long to wait before the same request is sent again, as `busy` says; `nil`: the error does not say.
    public var retryAfter: Duration? { code == .busy && detail > 0 ? .milliseconds(Int(detail)) : nil }
    /// Whether this process or the service made the error.
    public var origin: Origin { content.origin }

    /// `file` and `line` are the place in the source that `debugDescription` shows: where the error was made or, for an
    /// error from the service, where its answer was read.
    public init(
        _ code: Code, detail: UInt32 = 0, origin: Origin = .local, _ reason: String, file: StaticString = #fileID,
        line: UInt = #line
    ) {
        let shown = reason.escapingControls.prefix(bytesMax: Limits.errorTextBytesMax)
        content = Content(code, detail, shown, origin, file, line)
    }
}

extension ServiceError: Equatable {
    public static func == (a: ServiceError, b: ServiceError) -> Bool { a.code == b.code }
}

extension ServiceError: CustomStringConvertible {
    /// The code's name and the reason in one line. An error from the service begins with "the service answered".
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
