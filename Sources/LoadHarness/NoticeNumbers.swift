/// The numbers of a page of notices that show whether something was lost.
///
/// They are found by searching for their names, without parsing: a name in quotes followed by a colon is always a name
/// in JSON, because quotes within texts are escaped. A post's sequence comes before its notices.
package struct NoticeNumbers {
    /// Of each notice: its post's sequence, and its place in it.
    package private(set) var places: [(sequence: UInt64, place: UInt64)] = []
    /// When the first post was made, in milliseconds since 1970.
    package private(set) var date: UInt64?
    /// Where the next page begins.
    package private(set) var next: UInt64 = 0

    private static let names: [StaticString] = [#""sequence":"#, #""place":"#, #""next":"#, #""date":"#]

    package init(_ json: UnsafeRawBufferPointer) {
        var sequence: UInt64 = 0
        var index = 0
        while index < json.count {
            guard json[index] == UInt8(ascii: "\"") else {
                index += 1
                continue
            }
            let rest = UnsafeRawBufferPointer(rebasing: json[index...])
            guard let name = NoticeNumbers.names.firstIndex(where: { NoticeNumbers.isName($0, at: rest) }) else {
                index += 1
                continue
            }
            index += NoticeNumbers.names[name].utf8CodeUnitCount
            var number: UInt64 = 0
            while index < json.count, case let digit = json[index] &- UInt8(ascii: "0"), digit < 10 {
                number = number &* 10 &+ UInt64(digit)
                index += 1
            }
            switch name {
            case 0: sequence = number
            case 1: places.append((sequence, number))
            case 2: next = number
            default: date = date ?? number
            }
        }
    }

    private static func isName(_ name: StaticString, at bytes: UnsafeRawBufferPointer) -> Bool {
        guard bytes.count >= name.utf8CodeUnitCount else { return false }
        return name.withUTF8Buffer { $0.elementsEqual(bytes[..<$0.count]) }
    }
}
