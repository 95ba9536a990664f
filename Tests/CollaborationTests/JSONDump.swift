import Collaboration
import Foundation

/// Any JSON value, read by `JSON` and written in a form that another program can make of the same value: names in the
/// order of their bytes, texts as their bytes in hexadecimal, numbers as they were written.
struct JSONDump: Decodable {
    let text: String

    private struct AnyKey: CodingKey {
        let stringValue: String
        var intValue: Int? { nil }

        init(stringValue: String) { self.stringValue = stringValue }

        init?(intValue: Int) { return nil }
    }

    init(from decoder: any Decoder) throws {
        let value = try decoder.singleValueContainer()
        if value.decodeNil() {
            text = "null"
        } else if let truth = try? value.decode(Bool.self) {
            text = truth ? "true" : "false"
        } else if let number = try? value.decode(JSONNumber.self) {
            text = number.text
        } else if let string = try? value.decode(String.self) {
            text = JSONDump.hexadecimal(string)
        } else if var list = try? decoder.unkeyedContainer() {
            var elements: [String] = []
            while !list.isAtEnd { elements.append(try list.decode(JSONDump.self).text) }
            text = "[" + elements.joined(separator: ",") + "]"
        } else {
            let object = try decoder.container(keyedBy: AnyKey.self)
            let members = try object.allKeys.map { key in
                (name: JSONDump.hexadecimal(key.stringValue), value: try object.decode(JSONDump.self, forKey: key).text)
            }
            let sorted = members.sorted { $0.name < $1.name }
            text = "{" + sorted.map { "\($0.name):\($0.value)" }.joined(separator: ",") + "}"
        }
    }

    private static func hexadecimal(_ text: String) -> String {
        "\"" + text.utf8.map { String(format: "%02x", $0) }.joined() + "\""
    }

    /// The dump of a JSON text; `nil` when `JSON` refuses it.
    static func of(_ json: [UInt8]) -> String? {
        try? JSON.decodeStrictly(JSONDump.self, from: json).text
    }

    /// What Python's reader makes of JSON texts, in the same form. Python is told to refuse what it would tolerate.
    static func ofPython(_ texts: [[UInt8]], _ python: String, _ run: (String, [String], String) throws -> String)
        throws
        -> [String?]
    {
        let input = texts.map { Data($0).base64EncodedString() }.joined(separator: "\n") + "\n"
        let lines = try run(python, ["-c", script], input).split(separator: "\n", omittingEmptySubsequences: false)
        return lines.prefix(texts.count).map { $0 == "refused" ? nil : String($0) }
    }

    private static let script = """
        import base64, json, sys

        class Number:
            def __init__(self, text): self.text = text

        def members(pairs):
            if len({name for name, _ in pairs}) != len(pairs): raise ValueError("twice")
            return dict(pairs)

        def refuse(_): raise ValueError("no number")

        def text(value): return '"' + value.encode("utf-8").hex() + '"'

        def dump(value, depth):
            if depth > 32: raise ValueError("deep")
            if value is None: return "null"
            if value is True: return "true"
            if value is False: return "false"
            if isinstance(value, Number): return value.text
            if isinstance(value, str): return text(value)
            if isinstance(value, list): return "[" + ",".join(dump(item, depth + 1) for item in value) + "]"
            pairs = sorted((text(name), dump(item, depth + 1)) for name, item in value.items())
            return "{" + ",".join(name + ":" + item for name, item in pairs) + "}"

        for line in sys.stdin:
            try:
                value = json.loads(base64.b64decode(line).decode("utf-8"), object_pairs_hook=members,
                                   parse_constant=refuse, parse_int=Number, parse_float=Number)
                inner = 1 if isinstance(value, (list, dict)) else 0
                print(dump(value, inner))
            except ValueError:
                print("refused")
        """
}
