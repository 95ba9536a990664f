/// The command line is wrong, or a file that it names: one line for stderr, exit code 2.
struct UsageError: Error {
    let text: String
    /// Whether the command's help helps.
    let isAboutOptions: Bool

    init(_ text: String, isAboutOptions: Bool = true) {
        (self.text, self.isAboutOptions) = (text, isAboutOptions)
    }
}
