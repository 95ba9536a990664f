public import Core
public import Foundation

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
        let lines = [title ?? "Shared content", shareOptions?.summary(for: permission), link?.absoluteString].compactMap
        { $0 }
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
