public import Core
import Foundation

/// Changes what the app adds to the popover, and the collaboration's title.
public struct CustomizeDetails: RuledRequest {
    public static let name = "customizeDetails"
    public typealias Answer = ChangeReceipt

    public var collaboration: CollaborationIdentifier
    /// `nil` does not change the value.
    public var title: String?
    public var customItems: [CustomItem]?
    /// An empty title restores the standard title.
    public var manageButtonTitle: String?

    public init(
        of collaboration: CollaborationIdentifier, title: String? = nil, customItems: [CustomItem]? = nil,
        manageButtonTitle: String? = nil
    ) {
        self.collaboration = collaboration
        self.title = title
        self.customItems = customItems
        self.manageButtonTitle = manageButtonTitle
    }

    package func decide(
        _ context: RuleContext, _ records: borrowing some RecordReader & ~Copyable
    ) throws(ServiceError) -> Decision<Answer> {
        try check(title, "a title")
        try check(manageButtonTitle, "a title")
        try checkLimit(customItems?.count ?? 0, Limits.customItemsMax, "custom items")
        for (index, item) in (customItems ?? []).enumerated() {
            try checkName(item.identifier, "a custom item's identifier")
            try check(item.title, "a title")
            try check(item.subtitle, "a subtitle")
            try checkLink(item.url, "customItems[\(index)].url")
        }
        let found = try records.collaboration(collaboration)
        var stored = found.value
        if let title { stored.title = title }
        if let customItems { stored.customItems = customItems }
        if let manageButtonTitle { stored.manageButtonTitle = manageButtonTitle.isEmpty ? nil : manageButtonTitle }
        var edit = Edit(collaboration)
        edit.records = [
            try .json(RecordKeys.collaboration(collaboration), stored, expecting: .version(found.version))
        ]
        return .change(edit, topics: [.collaboration(collaboration)], count: 1)
    }
}
