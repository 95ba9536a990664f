package import Core
public import Principals

/// Removes a principal with its keys. Removing it again changes nothing. The last one can be removed, too; the service
/// stays closed to everybody then.
public struct RemovePrincipal: RuledRequest {
    public static let name = "removePrincipal"
    public typealias Answer = ChangeReceipt

    public var name: PrincipalName

    public init(_ name: PrincipalName) {
        self.name = name
    }

    package func decide(
        _ context: RuleContext, _ records: borrowing some RecordReader & ~Copyable
    ) throws(ServiceError) -> Decision<Answer> {
        let edit = try PrincipalEdit(records)
        guard let found = edit.principal(name) else { return .unchanged }
        return edit.removing(found)
    }
}
