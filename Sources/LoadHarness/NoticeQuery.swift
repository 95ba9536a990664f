import Core
import RootgateClient
import Wire

/// The query for the notices of a collaboration. It is encoded once; only the sequence where the page begins changes.
struct NoticeQuery: Sendable {
    private static let waitMilliseconds = 20_000
    /// The bytes before and behind the sequence.
    private let start: [UInt8]
    private let end: ArraySlice<UInt8>

    /// Throws `internalFault`.
    init(_ collaboration: CollaborationIdentifier) throws(ServiceError) {
        let request = ReadNotices(
            .collaboration(collaboration), after: 0, waitMilliseconds: NoticeQuery.waitMilliseconds)
        let json = try JSON.encode(request)
        let before = Array(#"{"after":"#.utf8)
        guard json.starts(with: before + [UInt8(ascii: "0")]) else {
            throw ServiceError(.internalFault, "a query's JSON does not begin with its sequence")
        }
        var start: [UInt8] = []
        CollaborationCall(identifier: .random(), name: ReadNotices.name, json: before).append(to: &start)
        self.start = start
        end = json.dropFirst(before.count + 1)
    }

    /// Appends the body of the request.
    func append(after sequence: UInt64, to bytes: inout [UInt8]) {
        bytes += start
        bytes += String(sequence).utf8
        bytes += end
    }
}
