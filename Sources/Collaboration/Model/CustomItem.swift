public import Foundation

/// An item that the app adds to the collaboration's popover: a title, and data with which the app acts on it.
public struct CustomItem: Hashable, Sendable, Codable {
    public var identifier: String
    public var title: String
    public var subtitle: String?
    public var url: URL?

    public init(identifier: String, title: String, subtitle: String? = nil, url: URL? = nil) {
        self.identifier = identifier
        self.title = title
        self.subtitle = subtitle
        self.url = url
    }
}
