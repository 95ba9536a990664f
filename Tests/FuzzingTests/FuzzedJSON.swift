import Collaboration
import Core
import Foundation

/// JSON texts, beside Foundation's reader. Ours is stricter; what it accepts is the same value.
enum FuzzedJSON {
    static let subject = FuzzSubject("json", bytesMax: 512, seeds: seeds) { input in
        let bytes = Array(input)
        let found: AnyValue
        do throws(ServiceError) {
            found = try JSON.decodeStrictly(AnyValue.self, from: bytes)
        } catch {
            try demand([.malformedRequest, .limitExceeded].contains(error.code), "the error is \(error)")
            try demand(error.reason.utf8.count <= Limits.errorTextBytesMax, "the error's text is too long")
            return
        }
        try demand(found.depth <= Limits.jsonDepthMax, "values are nested \(found.depth) deep")
        // Foundation leaves a byte-order mark out that begins a text.
        guard !String(decoding: bytes, as: UTF8.self).unicodeScalars.contains("\u{feff}") else { return }
        guard let theirs = try? JSONSerialization.jsonObject(with: Data(bytes), options: .fragmentsAllowed) else {
            // Foundation refuses numbers that no double has.
            return try demand(found.hasLongNumber, "Foundation refuses the text")
        }
        try demand(found.isEqual(to: theirs), "Foundation reads \(theirs)")
    }

    /// Any JSON value.
    private indirect enum AnyValue: Decodable {
        case null, truth(Bool), number(String), text(String), list([AnyValue]), object([String: AnyValue])
        /// An object with names that Unicode calls equal. Foundation keeps one of them.
        case ambiguous

        private struct Name: CodingKey {
            let stringValue: String
            var intValue: Int? { nil }

            init(stringValue: String) { self.stringValue = stringValue }

            init?(intValue: Int) { return nil }
        }

        init(from decoder: any Decoder) throws {
            let value = try decoder.singleValueContainer()
            if value.decodeNil() {
                self = .null
            } else if let truth = try? value.decode(Bool.self) {
                self = .truth(truth)
            } else if let number = try? value.decode(JSONNumber.self) {
                self = .number(number.text)
            } else if let text = try? value.decode(String.self) {
                self = .text(text)
            } else if var list = try? decoder.unkeyedContainer() {
                var elements: [AnyValue] = []
                while !list.isAtEnd { elements.append(try list.decode(AnyValue.self)) }
                self = .list(elements)
            } else {
                let object = try decoder.container(keyedBy: Name.self)
                var members: [String: AnyValue] = [:]
                for name in object.allKeys {
                    members[name.stringValue] = try object.decode(AnyValue.self, forKey: name)
                }
                self = members.count == object.allKeys.count ? .object(members) : .ambiguous
            }
        }

        var depth: Int {
            switch self {
            case .list(let elements): 1 + (elements.map(\.depth).max() ?? 0)
            case .object(let members): 1 + (members.values.map(\.depth).max() ?? 0)
            default: 0
            }
        }

        /// Whether there is a number that is too large, too small or too precise for a double.
        var hasLongNumber: Bool {
            switch self {
            case .number(let text): text.utf8.count > 15 || text.contains { $0 == "e" || $0 == "E" }
            case .list(let elements): elements.contains(where: \.hasLongNumber)
            case .object(let members): members.values.contains(where: \.hasLongNumber)
            default: false
            }
        }

        func isEqual(to theirs: Any) -> Bool {
            switch self {
            case .ambiguous: return theirs is [String: Any]
            case .null: return theirs is NSNull
            case .truth(let truth): return (theirs as? Bool) == truth
            case .number(let text):
                guard let number = theirs as? NSNumber else { return false }
                return hasLongNumber || Double(text) == number.doubleValue
            case .text(let text):
                return (theirs as? String).map { $0.utf8.elementsEqual(text.utf8) } ?? false
            case .list(let elements):
                guard let list = theirs as? [Any], list.count == elements.count else { return false }
                return zip(elements, list).allSatisfy { $0.isEqual(to: $1) }
            case .object(let members):
                guard let object = theirs as? [String: Any], object.count == members.count else { return false }
                return members.allSatisfy { name, value in object[name].map { value.isEqual(to: $0) } ?? false }
            }
        }
    }

    private static func seeds() -> [[UInt8]] {
        [
            #"{"a":[1,-2.5e3,true,false,null,"x\u00e9\ud83d\ude00\n"],"b":{"c":""}}"#, "[]", "0", " \"é\" ",
            #"[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[1]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]"#, #"{"a":1,"b":2,"a":3}"#,
            #"{"1":1,"2":2,"3":3,"4":4,"5":5,"6":6,"7":7,"8":8,"9":9,"10":1,"11":1,"12":1,"13":1,"14":1,"15":1,"16":1,"#
                + #""17":1,"18":1}"#,
            "18446744073709551616", "1e999", #""\ud800""#, "-0",
        ].map { Array($0.utf8) }
    }
}
