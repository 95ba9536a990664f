import TestSupport
import Testing

/// The tables of bugs that the simulation and a cluster under faults have to catch. Planting them takes long; that they
/// can be planted is quickly seen.
struct PlantedBugsTests {
    @Test(
        "Each planted bug's text stands in its file once", .enabled(if: programPath("python3") != nil, "no python3"),
        arguments: ["planted_bugs.py", "planted_cluster_bugs.py"])
    func tableFits(_ name: String) throws {
        let script = packageFile("Tests/Python/\(name)")
        let run = try runProgram(try #require(programPath("python3")), [script, "--check"])
        #expect(run.code == 0, "\(run.output)\(run.errors)")
    }
}
