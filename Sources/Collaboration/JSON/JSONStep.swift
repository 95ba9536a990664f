/// One step from a value to a value in it.
enum JSONStep: CodingKey {
    case member(String)
    case element(Int)

    init?(stringValue: String) { self = .member(stringValue) }

    init?(intValue: Int) { self = .element(intValue) }

    var stringValue: String {
        switch self {
        case .member(let name): name
        case .element(let index): String(index)
        }
    }

    var intValue: Int? {
        switch self {
        case .member: nil
        case .element(let index): index
        }
    }
}

extension JSONTree {
    /// The way from the outermost value to a value or a name in it, which may be the last one that was read so far.
    func path(to target: Int) -> [JSONStep] {
        var path: [JSONStep] = []
        var node = 0
        while node != target {
            var child = node + 1
            switch nodes[node].kind {
            case .object:
                while target > child, target >= end(of: child + 1) { child = end(of: child + 1) }
                path.append(.member(text(child)))
                if target == child { return path }
                node = child + 1
            case .array:
                var index = 0
                while target >= end(of: child) {
                    child = end(of: child)
                    index += 1
                }
                path.append(.element(index))
                node = child
            default: return path
            }
        }
        return path
    }
}

extension [any CodingKey] {
    /// Characters of one name that are shown.
    private static var nameCharactersMax: Int { 64 }

    /// The path as people write it: `participants[0].displayName`. Empty for the outermost value.
    var shown: String {
        var text = ""
        for key in self {
            if case .element(let index)? = key as? JSONStep {
                text += "[\(index)]"
            } else {
                text += (text.isEmpty ? "" : ".") + key.stringValue.prefix(Self.nameCharactersMax)
            }
        }
        return text
    }
}
