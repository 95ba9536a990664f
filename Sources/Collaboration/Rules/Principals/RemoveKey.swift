package import Core
public import Principals

/// Removes a key from the principal that has it. Removing it again changes nothing.
public struct RemoveKey: RuledRequest {
    public static let name = "removeKey"
    public typealias Answer = ChangeReceipt

    public var identifier: KeyIdentifier

    public init(_ identifier: KeyIdentifier) {
        self.identifier = identifier
    }

    package func decide(
        _ context: RuleContext, _ records: borrowing some RecordReader & ~Copyable
    ) throws(ServiceError) -> Decision<Answer> {
        let edit = try PrincipalEdit(records)
        let holder = edit.known.first { $0.value.keys.contains { $0.hash.identifier == identifier } }
        guard let holder else { return .unchanged }
        var record = holder.value
        record.keys.removeAll { $0.hash.identifier == identifier }
        return try edit.writing(record, before: holder)
    }
}
