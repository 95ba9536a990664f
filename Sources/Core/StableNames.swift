/// The stable names of all codes of a type, by the codes' numbers.
public struct StableNames<Code: StableCode>: Sendable {
    /// Empty where no code has the number.
    private let names: [String]

    /// Derives the names from those of the cases: "badIndex" becomes "bad-index".
    public init() {
        var names: [String] = []
        for code in Code.allCases {
            let number = Int(code.rawValue)
            while names.count <= number { names.append("") }
            precondition(names[number].isEmpty, "two codes have the number \(number)")
            names[number] = hyphenatedName(of: code)
        }
        self.names = names
    }

    func name(of code: Code) -> String { names[Int(code.rawValue)] }
}

/// The name of an enumeration's case in lower case with hyphens: "badIndex" becomes "bad-index".
package func hyphenatedName(of code: some Any) -> String {
    String(describing: code).reduce(into: "") { name, character in
        name += character.isUppercase ? "-" + character.lowercased() : String(character)
    }
}
