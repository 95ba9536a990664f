public import Core
import Foundation

/// Changes what the app adds to the popover, and the collaboration's title. What is left out stays.
public struct CustomizeDetails: RuledRequest {
    public static let name = "customizeDetails"
    public typealias Answer = ChangeReceipt

    public var collaboration: CollaborationIdentifier
    /// Cleared: the collaboration has no title.
    public var title: Patch<String>
    /// Cleared: there are none.
    public var customItems: Patch<[CustomItem]>
    /// Cleared: the standard title.
    public var manageButtonTitle: Patch<String>

    public init(
        of collaboration: CollaborationIdentifier, title: Patch<String> = .keep,
        customItems: Patch<[CustomItem]> = .keep, manageButtonTitle: Patch<String> = .keep
    ) {
        self.collaboration = collaboration
        self.title = title
        self.customItems = customItems
        self.manageButtonTitle = manageButtonTitle
    }

    package func decide(
        _ context: RuleContext, _ records: borrowing some RecordReader & ~Copyable
    ) throws(ServiceError) -> Decision<Answer> {
        try checkFields()
        let found = try records.collaboration(collaboration)
        var stored = found.value
        stored.title = title.applied(to: stored.title)
        stored.customItems = customItems.applied(to: stored.customItems) ?? []
        stored.manageButtonTitle = manageButtonTitle.applied(to: stored.manageButtonTitle)
        let key = RecordKeys.collaboration(collaboration)
        guard stored != found.value else {
            return .noted(collaboration, [.checking(key, expecting: .version(found.version))])
        }
        var edit = Edit(collaboration)
        edit.records = [try .json(key, stored, expecting: .version(found.version))]
        return .change(edit, topics: [.collaboration(collaboration)], count: 1)
    }

    /// Throws what the request is refused with whatever is stored.
    package func checkFields() throws(ServiceError) {
        try check(title.value, "title")
        try check(manageButtonTitle.value, "manageButtonTitle")
        guard manageButtonTitle != .set("") else {
            throw ServiceError(.malformedRequest, "manageButtonTitle is empty: null restores the standard title")
        }
        let items = customItems.value ?? []
        try checkLimit(items.count, Limits.customItemsMax, "custom items")
        var identifiers: Set<String> = []
        for (index, item) in items.enumerated() {
            try checkIdentifier(item.identifier, "customItems[\(index)].identifier")
            guard identifiers.insert(item.identifier).inserted else {
                throw ServiceError(.malformedRequest, "customItems[\(index)].identifier is that of an item before it")
            }
            try check(item.title, "customItems[\(index)].title")
            try check(item.subtitle, "customItems[\(index)].subtitle")
            try checkLink(item.url, "customItems[\(index)].url")
        }
    }
}
