/// The service has done what the model does not allow.
struct Violation: Error {
    let text: String

    init(_ text: String) {
        self.text = text
    }
}
