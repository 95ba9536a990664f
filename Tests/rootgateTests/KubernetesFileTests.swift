import Foundation
import TestSupport
import Testing

@Suite("The files for Kubernetes")
struct KubernetesFileTests {
    @Test("The files for Kubernetes fit each other, the service's options and the container")
    func kubernetes() throws {
        guard let python = TestSupport.programPath("python3") else {
            print("SKIPPED: there is no python3, so the files for Kubernetes are not checked")
            return
        }
        let result = try runProgram(python, [packageFile("deploy/kubernetes/check.py")])
        if result.code == 77 { return print(result.output) }
        #expect(result.code == 0, "\(result.output)\(result.errors)")
    }
}
