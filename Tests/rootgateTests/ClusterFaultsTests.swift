import Foundation
import ServiceTestSupport
import TestSupport
import Testing

@Suite("Services of a cluster under faults")
struct ClusterFaultsTests {
    @Test(
        "The checker finds every planted fault: lost, doubled, late, granted twice, different",
        .enabled(if: python != nil, "no python3 with the package cryptography"))
    func checker() throws {
        let run = try runProgram(
            try #require(python), [packageFile("Tests/Python/cluster_faults.py"), "--self-test"],
            environment: pythonEnvironment)
        #expect(run.code == 0, "\(run.output)\(run.errors)")
        #expect(run.output.contains("ok: a challenge was granted twice"), "\(run.output)")
    }
}
