/// The command line is wrong, or a file that it names: one line for stderr, exit code 2.
struct UsageError: Error {
    let text: String
    /// Whether the command's help helps.
    let isAboutOptions: Bool

    init(_ text: String) { (self.text, isAboutOptions) = (text, true) }

    /// What a file has, or what it is for, is wrong.
    init(ofFile text: String) { (self.text, isAboutOptions) = (text, false) }
}
