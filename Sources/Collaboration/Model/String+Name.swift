import Core

extension String {
    /// Whether the text may name an account, an app, a conversation or the like: 1 to 128 bytes of UTF-8 without the
    /// control characters that texts don't have either.
    var isName: Bool {
        (1...Limits.collaborationBytesMax).contains(utf8.count) && !unicodeScalars.contains(where: \.isControl)
    }
}
