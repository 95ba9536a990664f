import Foundation

/// The reading of a value from a JSON text, by its type's `Decodable`. It remembers which names the type asked for.
final class JSONReading {
    private(set) var tree: JSONTree

    init(_ tree: JSONTree) {
        self.tree = tree
    }

    /// The node of a member's value; `nil` when the object has no such member. The name counts as asked for.
    func member(_ name: String, of object: Int) -> Int? {
        let end = tree.end(of: object)
        // Members are mostly asked for in their order, so the search begins behind the last one that was found.
        var node = Int(tree.nodes[object].cursor)
        for _ in 0..<tree.nodes[object].count {
            if node == end { node = object + 1 }
            let next = tree.end(of: node + 1)
            if tree.isName(node, name) {
                tree.nodes[node].isAsked = true
                tree.nodes[object].cursor = UInt32(next)
                return node + 1
            }
            node = next
        }
        return nil
    }

    /// The names of an object's members.
    func names(of object: Int) -> [String] {
        var names: [String] = []
        var node = object + 1
        for _ in 0..<tree.nodes[object].count {
            names.append(tree.text(node))
            node = tree.end(of: node + 1)
        }
        return names
    }

    /// The path of the first name that no type has asked for; `nil` when there is none.
    var firstUnknownName: [any CodingKey]? {
        let unknown = tree.nodes.firstIndex { node in
            (node.kind == .name || node.kind == .escapedName) && !node.isAsked
        }
        return unknown.map { path(to: $0) }
    }

    func path(to node: Int) -> [any CodingKey] { tree.path(to: node) }

    func isNull(_ node: Int) -> Bool { tree.nodes[node].kind == .null }

    // MARK: Values

    /// An error about a value. `what`: begins with “not”.
    func failure(_ what: String, _ type: Any.Type, at node: Int) -> DecodingError {
        let context = DecodingError.Context(codingPath: path(to: node), debugDescription: what)
        return isNull(node) ? .valueNotFound(type, context) : .dataCorrupted(context)
    }

    /// Checks that a value is an array or an object.
    func expect(_ kind: JSONTree.Kind, _ what: String, _ type: Any.Type, at node: Int) throws {
        guard tree.nodes[node].kind == kind else { throw failure(what, type, at: node) }
    }

    func text(_ node: Int) throws -> String {
        switch tree.nodes[node].kind {
        case .text, .escapedText: return tree.text(node)
        default: throw failure("not a text", String.self, at: node)
        }
    }

    func truth(_ node: Int) throws -> Bool {
        switch tree.nodes[node].kind {
        case .true: return true
        case .false: return false
        default: throw failure("not true or false", Bool.self, at: node)
        }
    }

    /// A whole number, written as digits: neither 2.0 nor 1e3. The error names no range, because the type's is wider
    /// than that of most fields.
    func integer<Value: FixedWidthInteger>(_ type: Value.Type, _ node: Int) throws -> Value {
        guard tree.nodes[node].kind == .integer else {
            throw failure("not a whole number, written with digits alone", Value.self, at: node)
        }
        guard let value: Value = tree.integer(node) else {
            let isBelow = tree.bytes[Int(tree.nodes[node].start)] == UInt8(ascii: "-")
            throw failure("not in its range: the number is too \(isBelow ? "small" : "large")", Value.self, at: node)
        }
        return value
    }

    /// A number as it is written; `nil` when the value is something else.
    func numberText(_ node: Int) -> String? {
        let found = tree.nodes[node]
        guard found.kind == .integer || found.kind == .fraction else { return nil }
        return String(decoding: tree.bytes[Int(found.start)..<Int(found.end)], as: UTF8.self)
    }

    func number<Value: LosslessStringConvertible & FloatingPoint>(_ type: Value.Type, _ node: Int) throws -> Value {
        guard let value = numberText(node).flatMap({ Value($0) }), value.isFinite else {
            throw failure("not a number", Value.self, at: node)
        }
        return value
    }

    /// A date: whole milliseconds since 1970.
    private func date(_ node: Int) throws -> Date {
        guard tree.nodes[node].kind == .integer, let milliseconds: Int64 = tree.integer(node),
            JSON.dateMilliseconds.contains(milliseconds)
        else {
            let range = JSON.dateMilliseconds
            throw failure(
                "not a date: whole milliseconds since 1970, from \(range.lowerBound) to \(range.upperBound)", Date.self,
                at: node)
        }
        return Date(timeIntervalSince1970: Double(milliseconds) / 1000)
    }

    private func link(_ node: Int) throws -> URL {
        // Characters that a link can't have are not escaped: that would be another link, maybe to another host.
        guard let url = URL(string: try text(node), encodingInvalidCharacters: false) else {
            throw failure("not a link", URL.self, at: node)
        }
        return url
    }

    private func data(_ node: Int) throws -> Data {
        guard let data = Data(base64Encoded: try text(node)) else {
            throw failure("not standard base64", Data.self, at: node)
        }
        return data
    }

    /// A value of any type. Dates, links and binary data stand in JSON in another form than their types' own.
    func value<Value: Decodable>(_ type: Value.Type, at node: Int) throws -> Value {
        if type == String.self, let text = try text(node) as? Value { return text }
        if type == Date.self, let date = try date(node) as? Value { return date }
        if type == URL.self, let link = try link(node) as? Value { return link }
        if type == Data.self, let data = try data(node) as? Value { return data }
        return try Value(from: JSONValueDecoder(reading: self, node: node))
    }
}
