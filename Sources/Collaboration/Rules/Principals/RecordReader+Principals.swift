import Core
import Foundation
import Principals

extension RecordReader where Self: ~Copyable {
    /// All principals, by their names; at most `Limits.principalsMax`.
    func principals() throws(ServiceError) -> [Loaded<PrincipalRecord>] {
        var found: [Loaded<PrincipalRecord>] = []
        for record in try records(in: RecordKeys.principals, limit: Limits.principalsMax, isDescending: false).items {
            found.append(Loaded(value: try record.decoded(PrincipalRecord.self), version: record.version))
        }
        return found
    }

    /// The principal of that name; `nil` when there is none.
    func principal(_ name: PrincipalName) throws(ServiceError) -> Loaded<PrincipalRecord>? {
        try load(PrincipalRecord.self, at: RecordKeys.principal(name))
    }

    /// When the key was last used, or without a key the principal; `nil`: never.
    func lastUse(_ name: PrincipalName, _ key: KeyIdentifier?) throws(ServiceError) -> Date? {
        guard let record = try record(RecordKeys.principalUse(name, key)) else { return nil }
        let milliseconds = try record.number()
        return milliseconds == 0 ? nil : Date(timeIntervalSince1970: Double(milliseconds) / 1000)
    }
}
