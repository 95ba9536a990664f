extension String {
    /// Whether there is nothing to read: no character, or white space only.
    var isBlank: Bool { allSatisfy(\.isWhitespace) }
}
