import Foundation

/// A JSON text with changes at places that are named by their paths, as `participants[0].displayName`.
struct MarkedJSON {
    /// A value without its containers: a text, a number, true, false or null.
    private let root: Any

    init(_ json: Data) throws {
        root = try JSONSerialization.jsonObject(with: json, options: .fragmentsAllowed)
    }

    /// The paths of all objects, the outermost one first.
    var objects: [String] { places { $0 is [String: Any] } }

    /// The paths of all values but the outermost one.
    var values: [String] { places { _ in true }.filter { !$0.isEmpty } }

    /// The names of an object's members.
    func names(at path: String) -> [String] {
        var found: [String] = []
        walk(root, "") { value, place in
            if place == path, let object = value as? [String: Any] { found = object.keys.sorted() }
        }
        return found
    }

    /// What kind of value there is: one of `object`, `array`, `text`, `number`, `truth`, `null`.
    func kind(at path: String) -> String {
        var kind = ""
        walk(root, "") { value, place in if place == path { kind = MarkedJSON.kind(of: value) } }
        return kind
    }

    /// The text with a member added to the object at a path. `member`: the name, in quotation marks, a colon, a value.
    func adding(_ member: String, at path: String) -> String {
        text(root, "", replacements: [:], additions: [path: member])
    }

    /// The text with another value at a path.
    func replacing(_ path: String, with value: String) -> String {
        text(root, "", replacements: [path: value], additions: [:])
    }

    /// The text as it is, or without the member at a path.
    func text(without path: String? = nil) -> String {
        text(root, "", replacements: [:], additions: [:], left: path)
    }

    private func places(where isWanted: (Any) -> Bool) -> [String] {
        var places: [String] = []
        walk(root, "") { value, place in if isWanted(value) { places.append(place) } }
        return places
    }

    private func walk(_ value: Any, _ path: String, _ visit: (Any, String) -> Void) {
        visit(value, path)
        if let object = value as? [String: Any] {
            for name in object.keys.sorted() { walk(object[name] ?? 0, MarkedJSON.member(name, of: path), visit) }
        } else if let array = value as? [Any] {
            for (index, element) in array.enumerated() { walk(element, "\(path)[\(index)]", visit) }
        }
    }

    private static func member(_ name: String, of path: String) -> String { path.isEmpty ? name : "\(path).\(name)" }

    private static func kind(of value: Any) -> String {
        switch value {
        case is [String: Any]: return "object"
        case is [Any]: return "array"
        case is String: return "text"
        case is NSNull: return "null"
        default:
            let text = scalar(value)
            return text == "true" || text == "false" ? "truth" : "number"
        }
    }

    private static func scalar(_ value: Any) -> String {
        let data = try? JSONSerialization.data(
            withJSONObject: value, options: [.fragmentsAllowed, .withoutEscapingSlashes])
        return String(decoding: data ?? Data(), as: UTF8.self)
    }

    private func text(
        _ value: Any, _ path: String, replacements: [String: String], additions: [String: String], left: String? = nil
    ) -> String {
        if let replacement = replacements[path] { return replacement }
        if let object = value as? [String: Any] {
            var members = object.keys.sorted().compactMap { name -> String? in
                let place = MarkedJSON.member(name, of: path)
                guard place != left else { return nil }
                let inner = text(
                    object[name] ?? 0, place, replacements: replacements, additions: additions, left: left)
                return MarkedJSON.scalar(name) + ":" + inner
            }
            if let addition = additions[path] { members.append(addition) }
            return "{" + members.joined(separator: ",") + "}"
        }
        if let array = value as? [Any] {
            let elements = array.enumerated().map { index, element in
                text(element, "\(path)[\(index)]", replacements: replacements, additions: additions, left: left)
            }
            return "[" + elements.joined(separator: ",") + "]"
        }
        return MarkedJSON.scalar(value)
    }
}
