package import Core

/// The selected share options of each collaboration of a request, at the end of the answer to an open or a check of
/// grants that asks for them:
///
///     each collaboration, in the request's order: count (2), each identifier: length (2), bytes
///
/// The list of a collaboration is empty unless the answer accepts one of its proofs or grants.
package enum OptionLists {
    /// The flag of a `BatchHead` that asks for them.
    static let flag: UInt8 = 2

    /// What the lists of so many collaborations take at most.
    package static func byteCountMax(_ collaborations: Int) -> Int {
        min(Limits.frameBodyBytesMax, collaborations * (2 + Limits.optionsMax * (2 + Limits.textBytesMax)))
    }

    /// Appends one collaboration's list. `list`: as the record of the selected options has it, which is the same form.
    ///
    /// Throws `limitExceeded` when the answer would be longer than a frame.
    package static func append(_ list: [UInt8], to bytes: inout [UInt8]) throws(ServiceError) {
        guard bytes.count + list.count <= Limits.frameBodyBytesMax else {
            throw ServiceError(
                .limitExceeded, detail: UInt32(Limits.frameBodyBytesMax),
                "the answer is too long with the selected options: ask about fewer collaborations at once")
        }
        bytes += list
    }

    /// Reads the lists of `count` collaborations, which end the body.
    ///
    /// Throws `malformedAnswer`.
    static func decode(_ reader: inout ByteReader, count: Int) throws(ServiceError) -> [[String]] {
        var lists: [[String]] = []
        for _ in 0..<count {
            guard let length: UInt16 = reader.integer() else { throw malformedAnswer }
            var list: [String] = []
            for _ in 0..<length {
                guard let bytes: UInt16 = reader.integer(), let text = reader.bytes(Int(bytes)),
                    let identifier = String(validating: text, as: UTF8.self)
                else { throw malformedAnswer }
                list.append(identifier)
            }
            lists.append(list)
        }
        guard reader.isAtEnd else { throw malformedAnswer }
        return lists
    }
}
