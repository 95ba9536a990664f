/// The command line is wrong: one line for stderr, exit code 2.
struct UsageError: Error {
    let text: String

    init(_ text: String) {
        self.text = text
    }
}
