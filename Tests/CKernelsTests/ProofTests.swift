import CKernels
import KernelInternals
import KernelProofs
import Testing

/// A proof, by its place in a table: pointers are not sendable.
struct Proof: Sendable, CustomTestStringConvertible {
    /// What the run of a proof found.
    struct Result {
        let failures: Int
        /// The first claim that does not follow.
        let failure: String
        let claims: [rg_claim]
    }

    let isOfField: Bool
    let index: Int

    var proof: rg_proof { (isOfField ? rg_field_proofs : rg_group_proofs)[index]!.pointee }
    var lanesFile: String { String(cString: proof.lanes_file) }
    var testDescription: String {
        isOfField ? lanesFile : "\(proof.lanes) lanes, groups: \(proof.groups)"
    }

    static let field = (0..<rg_field_proof_count).map { Proof(isOfField: true, index: $0) }
    static let group = (0..<rg_group_proof_count).map { Proof(isOfField: false, index: $0) }

    /// Runs the proof, with a mutant or without.
    func run(mutant: Int? = nil) -> Result {
        var failure: UnsafePointer<CChar>?
        var claims = [rg_claim](repeating: rg_claim(), count: 256)
        var count = 0
        let failures = proof.run(mutant ?? proof.mutant_count, &failure, &claims, &count)
        return Result(
            failures: failures, failure: failure.map { String(cString: $0) } ?? "", claims: Array(claims[..<count]))
    }
}

/// A mutant of a proof.
struct ProofMutant: Sendable, CustomTestStringConvertible {
    let proof: Proof
    let mutant: Int

    var testDescription: String { "\(proof.testDescription): \(String(cString: proof.proof.mutants[mutant]!))" }

    static func all(of proofs: [Proof]) -> [ProofMutant] {
        proofs.flatMap { proof in (0..<proof.proof.mutant_count).map { ProofMutant(proof: proof, mutant: $0) } }
    }
}

/// The bounds that the P-256 kernels rely on hold for all inputs.
@Suite(.serialized)
struct ProofTests {
    @Test("The functions of the field keep their contracts for all inputs", arguments: Proof.field)
    func field(proof: Proof) {
        let result = proof.run()
        #expect(result.failures == 0, "\(result.failure)")
    }

    @Test("A change that breaks a contract of the field is refused", arguments: ProofMutant.all(of: Proof.field))
    func fieldMutant(mutant: ProofMutant) {
        #expect(mutant.proof.run(mutant: mutant.mutant).failures > 0)
    }

    @Test("Every path through a kernel keeps every bound, and no bound is a tenth of p off", arguments: Proof.group)
    func group(proof: Proof) {
        let result = proof.run()
        #expect(result.failures == 0, "\(result.failure)")
        #expect(result.claims.count > 40)
        for claim in result.claims {
            let bound = String(cString: claim.bound)
            // What a function can be given in general says more than what this kernel gives it.
            if bound == "weak reduction: of 0 to 2^268 - 1" { continue }
            let low = claim.low - claim.claimed_low, high = claim.claimed_high - claim.high
            #expect(low < 0.100_001 && high < 0.100_001, "\(bound): \(claim.low) to \(claim.high)")
        }
    }

    /// The kernels differ in the number of lanes, in which the formulas do not. So two of them are enough.
    @Test(
        "A change that breaks a bound of a formula is refused",
        arguments: ProofMutant.all(of: Proof.group.filter { [8, 4].contains($0.proof.lanes) && $0.proof.groups == 1 }))
    func groupMutant(mutant: ProofMutant) {
        #expect(mutant.proof.run(mutant: mutant.mutant).failures > 0)
    }

    @Test("The proofs are about the lanes that the kernels have")
    func lanes() {
        var number = 0
        while let operations = rg_field_operations_of(number, .max)?.pointee {
            number += 1
            let name = String(cString: operations.name)
            let field = Proof.field.filter { $0.lanesFile == name }.map(\.proof)
            #expect(field.map(\.lanes) == [operations.lanes], "\(name)")
            #expect(field.map(\.signed_shifts) == [operations.signed_shifts], "\(name)")
            #expect(field.map(\.shifts_are_quicker) == [operations.shifts_are_quicker], "\(name)")
            let group = Proof.group.map(\.proof).filter {
                $0.lanes == operations.lanes && $0.signed_shifts == operations.signed_shifts
            }
            // A lone lane has the field of words in the group's formulas.
            #expect(group.isEmpty == (operations.lanes == 1), "\(name)")
        }
        #expect(number >= 2)
    }
}
