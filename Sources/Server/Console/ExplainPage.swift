import Core
import Foundation
import Verification

/// The console's page that explains a proof: its way to the root hash as a drawing, and each check. It changes nothing.
struct ExplainPage: Sendable {
    static let path = "/explain"

    let frame: ConsoleFrame
    let resources: VerificationResources
    /// Whether a collaboration may be looked up, and what the sample has may be shown.
    let showsRecords: Bool

    /// The page that a request asks for.
    func page(for request: HTTPRequest) -> HTTPPage {
        let query = FormFields(request.query.utf8)
        return HTTPPage(
            form: HTTPPage.Form(bytesMax: Limits.consoleFormBytesMax) { fields in
                explain(line: fields["proof"] ?? "", in: fields["collaboration"] ?? "")
            }
        ) {
            guard let number = query?["sample"] else { return frame("", "", .ok, "") }
            return explain(sample: UInt64(number))
        }
    }

    // MARK: What is explained

    private func explain(line: String, in name: String) -> HTTPResponse {
        let line = line.trimmingCharacters(in: .whitespacesAndNewlines)
        var collaboration: CollaborationIdentifier?
        if showsRecords, !name.isEmpty {
            collaboration = CollaborationIdentifier(name)
            guard collaboration != nil else {
                return frame(line, name, .badRequest, Self.problem("No collaboration can have this identifier."))
            }
        }
        guard !line.isEmpty else { return frame(line, name, .badRequest, Self.problem("There is no proof.")) }
        guard !line.contains(where: \.isNewline) else {
            return frame(line, name, .badRequest, Self.problem("This is more than one line: paste a single proof."))
        }
        switch ProofLine(Data(line.utf8)) {
        case .malformed(let reason):
            return frame(line, name, .ok, Self.problem("malformed: \(reason). No check was made."))
        case .proof(let proof, let index): return explain(proof, index, collaboration, line, name, "")
        }
    }

    private func explain(sample number: UInt64?) -> HTTPResponse {
        let entries = showsRecords ? resources.sample?.entries ?? [] : []
        guard let entry = entries.first(where: { $0.number == number }) else {
            return frame("", "", .notFound, Self.problem("The sample does not have this proof any more."))
        }
        let name = String(decoding: entry.collaboration, as: UTF8.self)
        let note: Markup = """
            <p>Proof \(Int(entry.number)) of the sample was refused with <b>\(entry.verdict.name)</b> \
            \(ageText(entry)) ago. What follows is how the service sees it now.</p>
            """
        return explain(entry.proof, nil, CollaborationIdentifier(utf8: entry.collaboration), "", name, note)
    }

    private func explain(
        _ proof: SignedIdentityProof, _ index: String?, _ collaboration: CollaborationIdentifier?, _ line: String,
        _ name: String, _ note: Markup
    ) -> HTTPResponse {
        do throws(ServiceError) {
            let explainer = try ServiceExplainer(resources)
            let explanation = try explainer.explain(proof, index: index, in: collaboration)
            return frame(line, name, .ok, note + answer(explanation, proof))
        } catch {
            return frame(line, name, .unavailable, Self.problem("The service can't explain it now: \(error.reason)."))
        }
    }

    // MARK: How it looks

    private static func problem(_ text: String) -> Markup {
        "<section aria-label=\"Answer\"><p class=\"answer bad\" role=\"alert\">\(text)</p></section>"
    }

    private func answer(_ explanation: Explanation, _ proof: SignedIdentityProof) -> Markup {
        let isMember: Bool? =
            switch explanation.finding(.membership)?.outcome {
            case .passed?: true
            case .failed?: false
            case .unchecked?, nil: nil
            }
        let picture =
            explanation.levels.map { levels in
                "\(ProofPicture(leaf: explanation.leaf, levels: levels, isMember: isMember).markup)"
            } ?? "<p class=\"empty\">No way to a root hash can be drawn: see the checks of lengths and index.</p>"
            as Markup
        let sign: Markup = explanation.failure == nil ? "answer" : "answer bad"
        return """
            <section aria-labelledby="answer"><h2 id="answer">Answer</h2>
            <p class="\(sign)">\(Self.summary(of: explanation))</p></section>
            <div class="explained"><section aria-labelledby="way"><h2 id="way">The way to the root hash</h2>\(picture)\
            <ul class="legend"><li class="k0">the key's way</li><li class="k1">siblings, which the proof has</li></ul>\
            </section>
            <section aria-labelledby="checks"><h2 id="checks">The checks, in the service's order</h2>
            <ol class="checks">\(explanation.findings.map(Self.check))</ol></section></div>
            <section aria-labelledby="hashes"><h2 id="hashes">All hashes</h2>\(hashes(explanation, proof))</section>
            """
    }

    /// What the service would say now, as far as it is known.
    private static func summary(of explanation: Explanation) -> Markup {
        func titles(_ checks: [Explanation.Check]) -> String { checks.map(\.title).joined(separator: ", ") }
        guard let (check, verdict) = explanation.failure else {
            return explanation.unchecked == [.spending]
                ? "The service would <b>grant</b> this proof now: every other check passes."
                : "No check that was made has failed. Not made: \(titles(explanation.unchecked))."
        }
        let refused: Markup = "The service would refuse this proof with <b>\(verdict.name)</b>: "
        let fails: Markup = refused + "the check “\(check.title)” fails."
        let earlier = explanation.undecided
        return earlier.isEmpty
            ? fails : fails + " Unless one of these fails, which were not made: \(titles(earlier))."
    }

    private static func check(_ finding: Explanation.Finding) -> Markup {
        let (kind, outcome): (Markup, String) =
            switch finding.outcome {
            case .passed: ("good", "passed")
            case .failed(let verdict): ("bad", "failed: \(verdict.name)")
            case .unchecked: ("open", "not checked")
            }
        return """
            <li class="\(kind)"><b>\(finding.check.title)</b> <span class="outcome">\(outcome)</span>\
            <p>\(finding.reason)</p></li>
            """
    }

    private func hashes(_ explanation: Explanation, _ proof: SignedIdentityProof) -> Markup {
        func code(_ digest: Digest) -> Markup { "<code>\(digest.description)</code>" }
        var rows: [[Markup]] = [
            ["leaf", "", "SHA-256 of the public key, \(proof.publicKey.count) bytes", code(explanation.leaf)]
        ]
        for (number, level) in (explanation.levels ?? []).enumerated() {
            rows.append(["level \(number)", "\(level.isRight ? 1 : 0)", "node", code(level.node)])
            rows.append(["", "", level.isRight ? "sibling, on the left" : "sibling, on the right", code(level.sibling)])
        }
        if let root = explanation.root { rows.append(["root hash", "", "", code(root)]) }
        return .table("Hashes from the leaf to the root", ["level", "bit", "what", "hash"], rows, empty: "")
    }

    /// The page around an answer.
    private func frame(
        _ line: String, _ name: String, _ status: HTTPResponse.Status, _ answer: Markup
    ) -> HTTPResponse {
        let collaboration: Markup =
            showsRecords
            ? """
            <label for="collaboration">Its collaboration, if you know it</label>
            <input id="collaboration" name="collaboration" value="\(Markup(verbatim: name))" autocomplete="off" \
            autocapitalize="off" spellcheck="false">
            """
            : """
            <p class="note">Whether the root hash is a participant's is told with <code>--console</code> only.</p>
            """
        return frame.page(
            "Explain a proof", at: Self.path, status: status,
            """
            <h1>Why was a proof refused?</h1>
            <p>Paste a proof as <code>rootgate verify</code> reads it: one line of JSON. Explaining changes nothing: \
            it spends no challenge, remembers no nonce, gives no grant, and counts no verdict.</p>
            <form method="post" action="/explain">
            <label for="proof">The proof</label>
            <textarea id="proof" name="proof" rows="5" required autocomplete="off" autocapitalize="off" \
            spellcheck="false">
            \(Markup(verbatim: line))</textarea>
            \(collaboration)
            <button type="submit">Explain</button>
            </form>
            \(answer)
            \(sample)
            """)
    }

    // MARK: The sample

    private var sample: Markup {
        guard showsRecords else { return "" }
        guard let sample = resources.sample else {
            return """
                <section aria-labelledby="sample"><h2 id="sample">Refused proofs</h2><p class="empty">The service \
                keeps none. It does with <code>--sample-proofs N</code>.</p></section>
                """
        }
        let rows = sample.entries.prefix(Limits.consoleRowsMax).map { entry -> [Markup] in
            [
                .link("proof \(Int(entry.number))", to: Self.path, [("sample", "\(entry.number)")]),
                "\(ageText(entry)) ago", "\(entry.verdict.name)",
                .name(String(decoding: entry.collaboration, as: UTF8.self)),
            ]
        }
        return """
            <section aria-labelledby="sample"><h2 id="sample">Refused proofs</h2>
            <p class="note">The service keeps the last \(sample.capacity) in memory, because it was started with \
            <code>--sample-proofs</code>. A proof has a device's public key, and its root hash stands for one person \
            in one collaboration. So whoever knows the app's keys or root hashes can tell who was refused, and when.</p>
            \(Markup.table("The newest first", ["proof", "when", "verdict", "collaboration"], rows,
                empty: "None was refused yet."))</section>
            """
    }

    private func ageText(_ entry: ProofSample.Entry) -> String {
        OverviewPage.duration(Int((resources.sample?.age(of: entry) ?? 0) / 1000))
    }
}
