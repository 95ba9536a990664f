import Core
import RootSets

/// Root sets with `roots` synthetic roots, 5 a collaboration, added one root at a time in random order.
struct FilledStorage {
    let directory: TemporaryDirectory
    let sets: RootSets
    let roots: Int

    /// Throws `SetUpTooLong`, and what the storage throws.
    init(roots: Int, _ scale: Scale) throws {
        directory = try TemporaryDirectory()
        sets = try RootSets(RootSets.Configuration(directory: directory.path))
        self.roots = roots
        let collaborations = roots / Synthetic.rootsPerCollaboration
        let what = "adding \(grouped(roots)) roots"
        try sets.applyAll(collaborations, progress: { try scale.settingUp(what, 0.15 * $0) }) { number in
            Mutation(.createCollaboration(try Synthetic.collaboration(number), .challenge))
        }
        // A permutation without a table: steps of a number that has no factor in common with the count.
        var step = Int(Double(roots) * 0.618_033_988_749)
        while gcd(step, roots) != 1 { step += 1 }
        var place = 0
        try sets.applyAll(roots, progress: { try scale.settingUp(what, 0.15 + 0.7 * $0) }) { _ in
            defer { place = (place + step) % roots }
            return Mutation(
                .addRoots(try Synthetic.collaboration(place / Synthetic.rootsPerCollaboration), [Synthetic.root(place)])
            )
        }
    }

    private func gcd(_ a: Int, _ b: Int) -> Int { b == 0 ? a : gcd(b, a % b) }
}
