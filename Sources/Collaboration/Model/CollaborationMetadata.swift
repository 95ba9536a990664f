public import Core
public import Foundation

/// Names shared content on the device that shares it, before it has an identifier that all devices know.
/// Apple: `SWLocalCollaborationIdentifier`.
public struct LocalCollaborationIdentifier: RawRepresentable, Hashable, Sendable, Codable {
    /// 1 to 128 bytes of UTF-8 without control characters. The service refuses a request with any other identifier.
    public let rawValue: String

    public init(rawValue: String) {
        self.rawValue = rawValue
    }
}

/// A description of content that is shared or about to be shared. Apple: `SWCollaborationMetadata`.
public struct CollaborationMetadata: Hashable, Sendable, Codable {
    public var localIdentifier: LocalCollaborationIdentifier
    /// Known to all devices, once the collaboration was started.
    public var collaborationIdentifier: CollaborationIdentifier?
    public var title: String?
    /// The account handle of the person who shares, an address or a telephone number.
    public var initiatorHandle: String?
    public var initiatorNameComponents: NameComponents?
    /// The options that are selected when the share sheet opens.
    public var defaultShareOptions: ShareOptions?
    /// The options that the person has chosen; `nil` before that.
    public var userSelectedShareOptions: ShareOptions?

    public init(localIdentifier: LocalCollaborationIdentifier) {
        self.localIdentifier = localIdentifier
    }

    /// The chosen options, or the default ones when none were chosen.
    public var shareOptions: ShareOptions? { userSelectedShareOptions ?? defaultShareOptions }
}

/// One form of something that is shared: the receiver takes the one it understands best.
public struct Representation: Hashable, Sendable {
    /// Uniform type identifier, as `public.json`.
    public let typeIdentifier: String
    /// The same as a media type, as `application/json`, where there is one.
    public let mediaType: String?
    /// A name for a file with the content.
    public let fileName: String
    public let content: Data
}

extension CollaborationMetadata {
    /// A copy of the content, for people who choose “Send Copy”.
    public struct FileCopy: Hashable, Sendable {
        public var name: String
        public var typeIdentifier: String
        public var mediaType: String?
        public var content: Data

        public init(name: String, typeIdentifier: String, mediaType: String? = nil, content: Data) {
            self.name = name
            self.typeIdentifier = typeIdentifier
            self.mediaType = mediaType
            self.content = content
        }
    }

    /// The metadata in every form that a receiver may ask for: as JSON for those who collaborate, as a file for
    /// those who get a copy, if there is one, and as plain text for everybody else.
    ///
    /// Throws `internalFault` when the metadata can't be written as JSON.
    public func representations(link: URL? = nil, copy: FileCopy? = nil) throws(ServiceError) -> [Representation] {
        let name = fileName
        var all = [
            Representation(
                typeIdentifier: "public.json", mediaType: "application/json", fileName: name + ".json",
                content: Data(try JSON.encode(self)))
        ]
        if let copy {
            all.append(
                Representation(
                    typeIdentifier: copy.typeIdentifier, mediaType: copy.mediaType, fileName: copy.name,
                    content: copy.content))
        }
        let lines = [title ?? "Shared content", shareOptions?.summary, link?.absoluteString].compactMap { $0 }
        all.append(
            Representation(
                typeIdentifier: "public.utf8-plain-text", mediaType: "text/plain; charset=utf-8",
                fileName: name + ".txt", content: Data(lines.joined(separator: "\n").utf8)))
        return all
    }

    /// Reads the JSON representation.
    ///
    /// Throws `malformedRequest` when it is something else.
    public init(json: Data) throws(ServiceError) {
        self = try JSON.decode(CollaborationMetadata.self, from: Array(json))
    }

    /// The title as a file's name, without characters that file systems don't allow.
    private var fileName: String {
        let name = (title ?? localIdentifier.rawValue)
            .components(separatedBy: CharacterSet(charactersIn: "/\\:").union(.controlCharacters))
            .joined(separator: "-")
        return name.isEmpty || name.hasPrefix(".") ? "Shared content" : name
    }
}

/// Content that is shared, as the system shows it. Apple: `SWCollaborationHighlight`.
public struct CollaborationHighlight: Hashable, Sendable, Codable {
    public let collaborationIdentifier: CollaborationIdentifier
    public let title: String?
    public let creationDate: Date
    /// The universal link; `nil` when the service has no base for links.
    public let url: URL?
    /// The permission summary.
    public let summary: String

    public init(
        collaborationIdentifier: CollaborationIdentifier, title: String?, creationDate: Date, url: URL?, summary: String
    ) {
        self.collaborationIdentifier = collaborationIdentifier
        self.title = title
        self.creationDate = creationDate
        self.url = url
        self.summary = summary
    }
}
