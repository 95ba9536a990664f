import TestSupport
import Testing

/// The table of bugs that the simulation has to catch. Planting them takes long; that they can be planted is quickly
/// seen.
struct PlantedBugsTests {
    @Test("Each planted bug's text stands in its file once", .enabled(if: programPath("python3") != nil, "no python3"))
    func tableFits() throws {
        let script = packageFile("Tests/Python/planted_bugs.py")
        let run = try runProgram(try #require(programPath("python3")), [script, "--check"])
        #expect(run.code == 0, "\(run.output)\(run.errors)")
    }
}
