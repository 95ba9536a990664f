package import Core
public import Principals

/// Gives a principal a further key. Two keys are valid at once, so that clients can take the new one before the old one
/// is removed. A key that has expired makes room.
public struct AddKey: RuledRequest {
    public static let name = "addKey"
    public typealias Answer = ChangeReceipt

    public var name: PrincipalName
    public var key: NewKey

    public init(_ key: NewKey, to name: PrincipalName) {
        self.name = name
        self.key = key
    }

    package func decide(
        _ context: RuleContext, _ records: borrowing some RecordReader & ~Copyable
    ) throws(ServiceError) -> Decision<Answer> {
        let edit = try PrincipalEdit(records)
        let found = try edit.existing(name)
        let added = try key.stored(context, "key")
        var record = found.value
        record.keys.removeAll { !$0.isValid(at: context.expiryTime) }
        guard !record.keys.contains(where: { $0.hash.identifier == added.hash.identifier }) else {
            throw ServiceError(.principalExists, "\(name) has the key \(added.hash.identifier) already")
        }
        guard record.keys.count < Limits.keysPerPrincipalMax else {
            throw ServiceError(
                .limitExceeded, detail: UInt32(Limits.keysPerPrincipalMax),
                "\(name) has \(Limits.keysPerPrincipalMax) keys: remove one first")
        }
        record.keys.append(added)
        return try edit.writing(record, before: found)
    }
}
