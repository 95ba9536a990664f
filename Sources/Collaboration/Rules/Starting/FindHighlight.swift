public import Core
public import Foundation

/// The highlight of a collaboration, from its identifier or its link.
public struct FindHighlight: RuledRequest {
    public static let name = "highlight"
    package static let isQuery = true
    public typealias Answer = CollaborationHighlight

    public var collaboration: CollaborationIdentifier?
    public var url: URL?

    public init(_ collaboration: CollaborationIdentifier) {
        self.collaboration = collaboration
    }

    public init(url: URL) {
        self.url = url
    }

    package func decide(
        _ context: RuleContext, _ records: borrowing some RecordReader & ~Copyable
    ) throws(ServiceError) -> Decision<Answer> {
        guard (collaboration == nil) != (url == nil) else {
            throw ServiceError(.malformedRequest, "name either collaboration or url")
        }
        try checkLink(url, "url")
        guard let identifier = collaboration ?? url.flatMap(context.settings.collaboration(of:)) else {
            throw ServiceError(
                .unknownCollaboration,
                "the link does not lead to a collaboration of this service, whose links begin with its --link-base")
        }
        return .answer(try records.collaboration(identifier).value.highlight(identifier, context))
    }
}
