import CKernels
import Core
import Foundation
import Hashing
import Kernels
@testable import Signatures
import TestSupport
import Testing

/// A kernel that calls everything valid.
private func credulous(_ name: String, width: Int = 16, knownForm: UInt8 = 0) -> Kernel {
    let functions = UnsafeMutablePointer<rg_p256_functions>.allocate(capacity: 1)
    functions.initialize(
        to: rg_p256_functions(
            width: width, workspace_bytes: 64, known_bytes: 64, known_form: knownForm,
            build_generator: { _, _ in },
            verify: { _, count, _, _, outcomes in
                for index in 0..<count { outcomes?[index] = UInt8(RG_P256_VALID.rawValue) }
            },
            verify_known: { _, _, count, _, _, outcomes in
                for index in 0..<count { outcomes?[index] = UInt8(RG_P256_VALID.rawValue) }
            },
            build_known: { _, _, _, _ in 1 }))
    return Kernel(name: name, p256: functions)
}

/// A kernel of width 16 that calls everything invalid.
private let incredulous: Kernel = {
    let functions = UnsafeMutablePointer<rg_p256_functions>.allocate(capacity: 1)
    functions.initialize(
        to: rg_p256_functions(
            width: 16, workspace_bytes: 64, known_bytes: 64, known_form: 0, build_generator: { _, _ in },
            verify: { _, count, _, _, outcomes in
                for index in 0..<count { outcomes?[index] = UInt8(RG_P256_INVALID.rawValue) }
            },
            verify_known: { _, _, count, _, _, outcomes in
                for index in 0..<count { outcomes?[index] = UInt8(RG_P256_INVALID.rawValue) }
            },
            build_known: { _, _, _, _ in 1 }))
    return Kernel(name: "incredulous", p256: functions)
}()

/// The times of something whose every step takes `step`.
private func times(width: Int, step: Double) -> BatchPlan.Times {
    BatchPlan.Times(width: width, seconds: BatchPlan.sizes.map { step * Double(($0 + width - 1) / width) })
}

@Suite("Selection of kernels")
struct KernelSelectionTests {
    private func members(_ kernels: Kernel...) throws -> [SignatureKernel.Member] {
        try kernels.map { kernel in
            let functions = try #require(kernel.p256)
            return SignatureKernel.Member(
                kernel: kernel, functions: functions, generator: GeneratorTable(builtBy: functions))
        }
    }

    private let wide = credulous("wide")
    private let narrow = credulous("narrow", width: 4)

    @Test("Kernels that are the quickest for no size of batch are left out, and so is libcrypto")
    func leftOut() throws {
        let selected = try #require(
            SignatureKernel.selection(
                try members(wide, narrow), new: [10, 9, 80].map { times(width: 16, step: $0) },
                known: [10, 9, 80].map { times(width: 16, step: $0) }))
        #expect(selected.names == ["narrow"])
        #expect(selected.rates.map(\.name) == ["narrow", "narrow"])
        #expect(selected.rates.map(\.work) == [.newKeys, .knownKeys])
        #expect(selected.rates.allSatisfy { $0.sizes == BatchPlan.sizes && abs($0.perSecond - 64.0 / 36) < 1e-9 })
    }

    @Test("Only kernels that can read the tables verify with them")
    func forms() throws {
        let other = credulous("other", width: 4, knownForm: 1)
        // The other one is the quickest for few signatures, and the wide one for many, whose tables it can't read.
        let times = [times(width: 16, step: 16), times(width: 4, step: 5), times(width: 1, step: 100)]
        let selected = try #require(SignatureKernel.selection(try members(wide, other), new: times, known: times))
        #expect(selected.names == ["wide", "other"])
        #expect(selected.rates.filter { $0.work == .knownKeys }.map(\.name) == ["wide"])
        #expect(selected.rates.filter { $0.work == .newKeys }.map(\.name) == ["wide", "other"])
    }

    @Test("Where libcrypto is the quickest for all, there is no kernel; for keys with tables, there are no tables")
    func libcrypto() throws {
        let slow = times(width: 16, step: 100), quick = times(width: 1, step: 1)
        #expect(SignatureKernel.selection(try members(wide), new: [slow, quick], known: [slow, quick]) == nil)
        let new = try #require(
            SignatureKernel.selection(
                try members(wide), new: [times(width: 16, step: 4), quick], known: [slow, quick]))
        #expect(!new.usesTables)
        #expect(SignatureEngine(SignatureEngine.Configuration(), kernel: new, log: .none).knownKeys == nil)
        let known = try #require(
            SignatureKernel.selection(
                try members(wide), new: [slow, quick], known: [times(width: 16, step: 4), quick]))
        #expect(known.usesTables && known.names == ["wide"])
    }

    @Test(
        "While peers take turns, a portion has as many signatures by new keys as its time allows, and a step at least")
    func sharedPortion() throws {
        func portion(stepSeconds step: Double) throws -> Int {
            let known = times(width: 4, step: step / 5)
            let kernel = try #require(
                SignatureKernel.selection(try members(narrow), new: [times(width: 4, step: step)], known: [known]))
            return SignatureEngine(SignatureEngine.Configuration(), kernel: kernel, log: .none).sharedPortion
        }
        #expect(try portion(stepSeconds: 105e-6) == 8)
        #expect(try portion(stepSeconds: 10e-6) == Limits.proofsPerSharedPortionMax)
        #expect(try portion(stepSeconds: 1e-3) == 4)
        #expect(SignatureEngine.libcrypto.sharedPortion == Limits.libcryptoProofsPerSharedPortion)
    }

    @Test("Batches that libcrypto gets are decided by it, and so are rests of others")
    func parts() throws {
        // The kernel takes as long for sixteen as libcrypto for four.
        let plan = [times(width: 16, step: 4), times(width: 1, step: 1)]
        let kernel = try #require(SignatureKernel.selection(try members(incredulous), new: plan, known: plan))
        let engine = SignatureEngine(SignatureEngine.Configuration(), kernel: kernel, log: .none)
        #expect(engine.kernelRates.map(\.name) == ["incredulous", "openssl", "incredulous", "openssl"])
        #expect(
            [1, 3, 4, 16, 17, 20, 256, 257, 300].map { engine.filled($0) } == [1, 3, 16, 16, 17, 32, 256, 257, 304])
        let verifier = try SignatureVerifier(engine)
        var generator = SeededGenerator(seed: runSeed)
        let key = try PrivateKey(seed: generator.bytes(48))
        // All are valid, and the kernel says the contrary.
        let checks = try (0..<19).map { number in
            let digest = SHA256.hash([UInt8(number)])
            return OwnedCheck(point: key.uncompressedPoint, scalars: try key.sign(digest), digest: digest)
        }
        #expect(try outcomes(of: Array(checks[..<2]), by: verifier).allSatisfy { $0 == .valid })
        #expect(try outcomes(of: Array(checks[..<16]), by: verifier).allSatisfy { $0 == .invalid })
        let mixed = try outcomes(of: Array(checks[..<18]), by: verifier)
        #expect(mixed[..<16].allSatisfy { $0 == .invalid } && mixed[16...].allSatisfy { $0 == .valid })
    }

    @Test("A single kernel that nobody has chosen competes with libcrypto")
    func slow() throws {
        let functions = UnsafeMutablePointer<rg_p256_functions>.allocate(capacity: 1)
        functions.initialize(
            to: rg_p256_functions(
                width: 1, workspace_bytes: 64, known_bytes: 64, known_form: 0, build_generator: { _, _ in },
                verify: { _, count, _, _, _ in usleep(UInt32(2000 * count)) },
                verify_known: { _, _, count, _, _, _ in usleep(UInt32(2000 * count)) }, build_known: { _, _, _, _ in 1 }
            ))
        let kernel = Kernel(name: "slow", p256: functions)
        let vetted = SignatureKernel.vetted([kernel], isChosen: false)
        #expect(vetted.kernel == nil && vetted.failures.isEmpty, "a kernel that is too slow was used, or tested")
        #expect(!SignatureKernel.vetted([kernel], isChosen: true).failures.isEmpty)
    }

    @Test("A kernel that fails its self-test is left out, and said to be; the others remain")
    func failing() throws {
        let alone = SignatureKernel.vetted([wide], isChosen: true)
        #expect(alone.kernel == nil)
        #expect(alone.failures.count == 1 && alone.failures[0].hasPrefix("wide: "), "\(alone.failures)")
        let native = Kernel.runnable(with: .permitted).filter { $0.kind == .signatures }
        let together = SignatureKernel.vetted([wide] + native, isChosen: false)
        #expect(together.failures.contains { $0.hasPrefix("wide: ") })
        #expect(together.kernel?.names.contains("wide") != true)
        #expect((together.kernel == nil) == (SignatureKernel.standard == nil))
    }

    @Test(
        "A single kernel verifies everything", arguments: Kernel.runnable(with: .permitted).filter { $0.p256 != nil })
    func single(kernel: Kernel) throws {
        var configuration = SignatureEngine.Configuration()
        configuration.kernel = kernel
        let engine = SignatureEngine(configuration)
        #expect(engine.kernelNames == [kernel.name])
        #expect(engine.kernelRates.map(\.name) == [kernel.name, kernel.name])
        #expect(engine.kernelRates.allSatisfy { $0.sizes == BatchPlan.sizes })
    }

    @Test(
        "What this process uses was measured, and every size of batch is somebody's",
        .enabled(if: SignatureKernel.standard != nil, "no kernel is in use"))
    func standard() throws {
        let kernel = try #require(SignatureKernel.standard)
        for work in [KernelRate.Work.newKeys, .knownKeys] {
            let rates = kernel.rates.filter { $0.work == work }
            #expect(rates.flatMap(\.sizes).sorted() == BatchPlan.sizes)
            #expect(rates.allSatisfy { $0.perSecond > 100 })
        }
    }
}
