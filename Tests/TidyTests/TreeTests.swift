import Testing

/// The rules over the files of this repository.
struct TreeTests {
    @Test(
        "The repository's files keep every rule",
        .enabled(if: Repository.files != nil, "this is no git repository, so nobody knows which files are its own"),
        arguments: Rule.all)
    func keeps(rule: Rule) throws {
        let violations = rule.violations(try #require(Repository.files))
        let list = violations.map(\.description).joined(separator: "\n")
        #expect(violations.isEmpty, "\(violations.count) places break the rule:\n\(list)")
    }
}
