import Foundation
import KernelMutants
import TestSupport
import Testing

/// The bounds that the P-256 kernel checks in debug builds.
struct BoundTests {
    private static let bounds = (0..<rg_bound_count).map { String(cString: rg_bounds[$0]!) }

    @Test("A kernel that keeps every bound runs to its end")
    func unbroken() async {
        await #expect(processExitsWith: .success) { rg_run_with_broken_bound(rg_bound_count) }
    }

    @Test("A kernel that breaks a bound aborts and names the bound", arguments: 0..<rg_bound_count)
    func broken(bound: Int) async throws {
        let result = await #expect(processExitsWith: .signal(SIGABRT), observing: [\.standardErrorContent]) { [bound] in
            signal(SIGABRT, SIG_DFL)  // without the backtrace, which takes seconds
            rg_run_with_broken_bound(bound)
        }
        let message = String(decoding: try #require(result).standardErrorContent, as: UTF8.self)
        #expect(message.contains("kernel bound broken: \(Self.bounds[bound])\n"), "\(message)")
    }

    @Test("Every bound that a header of the kernel names has a mutant that breaks it")
    func everyBound() throws {
        let folder = URL(fileURLWithPath: packageFile("Sources/CKernels/p256"))
        var named: Set<String> = []
        for file in try FileManager.default.contentsOfDirectory(at: folder, includingPropertiesForKeys: nil) {
            guard file.pathExtension == "h" else { continue }
            let source = try String(contentsOf: file, encoding: .utf8)
            for match in source.matches(of: /"([A-Za-z0-9 ]+: [^"]+)"/) { named.insert(String(match.1)) }
        }
        #expect(named == Set(Self.bounds))
    }
}
