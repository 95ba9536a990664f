public import Core
public import Foundation

/// An app's content that can be shared. Apple: `Transferable`.
public protocol TransferableContent: Sendable {
    associatedtype Transfer: TransferRepresentation<Self>
    /// How all content of this type is represented.
    static var transferRepresentation: Transfer { get }
}

extension TransferableContent {
    /// What a share sheet shows, and what is prepared when the content is shared.
    public var collaborationMetadata: CollaborationMetadata { Self.transferRepresentation.metadata(of: self) }

    /// The metadata in every form that a receiver may ask for.
    ///
    /// Throws `internalFault` when the metadata can't be written as JSON.
    public func representations(
        link: URL? = nil, copy: CollaborationMetadata.FileCopy? = nil
    ) throws(ServiceError) -> [Representation] {
        try collaborationMetadata.representations(link: link, copy: copy)
    }
}
