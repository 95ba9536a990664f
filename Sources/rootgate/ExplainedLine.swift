import Core
import Server
import Verification

/// What `rootgate explain` prints about one line of its input.
struct ExplainedLine {
    private enum Content {
        case malformed(String)
        case proof(SignedIdentityProof, Explanation)
    }

    private let number: Int
    private let content: Content
    /// What a service has said; `nil` when none was asked.
    private let service: LineVerdict?
    /// Why a service that there is was not asked.
    private let silence: String?

    /// `service`: what `judgeByService` has returned for the line.
    init(_ number: Int, _ line: ProofLine, _ explainer: ProofExplainer, service: LineVerdict?) throws {
        self.number = number
        let isAsked = service != nil && line.proofForService != nil
        self.service = isAsked ? service : nil
        switch line {
        case .malformed(let reason):
            content = .malformed(reason)
            silence = service == nil ? nil : "not asked: the line is no proof"
        case .proof(let proof, let index):
            content = .proof(proof, try explainer.explain(proof, index: index))
            silence = service == nil || isAsked ? nil : "not asked: the proof is too long for a request"
        }
    }

    /// Whether a check has failed, here or by the service.
    var isRefused: Bool {
        switch content {
        case .malformed: true
        case .proof(_, let explanation): explanation.failure != nil || service?.verdict.isRefusal == true
        }
    }

    // MARK: JSON

    /// The line as JSON. What is not known is missing.
    var object: [String: Any] {
        var object: [String: Any] = ["line": number]
        switch content {
        case .malformed(let reason):
            object["verdict"] = Verdict.malformed.name
            object["reason"] = reason
        case .proof(let proof, let explanation):
            object["leaf"] = explanation.leaf.description
            object["levels"] = explanation.levels.map { levels in
                levels.enumerated().map { describe($1, number: $0) }
            }
            if explanation.levels != nil { object["index"] = proof.publicKeyIndex }
            object["rootHash"] = explanation.root?.description
            object["verdict"] = explanation.failure?.verdict.name
            object["failed"] = explanation.failure?.check.rawValue
            object["checks"] = explanation.findings.map { describe($0, of: explanation) }
            if let service {
                var told: [String: Any] = [
                    "verdict": service.verdict.name,
                    "checks": explanation.checks(thatGive: service.verdict).map(\.rawValue),
                ]
                told["rootHash"] = service.root?.description
                told["advice"] = advice
                object["service"] = told
            }
        }
        object["serviceReason"] = silence
        return object
    }

    private func describe(_ level: Explanation.Level, number: Int) -> [String: Any] {
        [
            "level": number, "bit": level.isRight ? 1 : 0, "node": level.node.description,
            "sibling": level.sibling.description, "siblingSide": level.isRight ? "left" : "right",
            "parent": level.parent.description,
        ]
    }

    private func describe(_ finding: Explanation.Finding, of explanation: Explanation) -> [String: Any] {
        var object: [String: Any] = ["check": finding.check.rawValue, "reason": finding.reason]
        switch finding.outcome {
        case .passed: object["outcome"] = "passed"
        case .failed(let verdict): (object["outcome"], object["verdict"]) = ("failed", verdict.name)
        case .unchecked: object["outcome"] = "not-checked"
        }
        if let service {
            object["service"] = explanation.told(about: finding.check, by: service.verdict).rawValue
        }
        return object
    }

    // MARK: Text

    /// The line as lines of text, without characters that steer a terminal.
    var text: [String] {
        var lines: [String]
        switch content {
        case .malformed(let reason):
            lines = ["line \(number): malformed: \(reason)", "  no check was made: the line is no proof"]
        case .proof(let proof, let explanation):
            lines = ["line \(number): \(summary(of: explanation))"]
            lines += tree(of: proof, explanation) + ["  checks, in the order of a service"]
            lines += explanation.findings.flatMap { checkLines($0, of: explanation) }
            if let service { lines.append(contentsOf: serviceLines(service, explanation)) }
        }
        if let silence { lines.append("  the service was \(silence)") }
        return lines.map(\.escapingControls)
    }

    /// What decides, as far as it is known.
    private func summary(of explanation: Explanation) -> String {
        if let service {
            let deciding = explanation.checks(thatGive: service.verdict).map(\.title).joined(separator: ", or ")
            return "the service says \(service.verdict.name)" + (deciding.isEmpty ? "" : ": \(deciding)")
                + (advice.map { "; \($0)" } ?? "")
        }
        guard let (check, verdict) = explanation.failure else {
            return "no check that was made has failed; not made: \(titles(explanation.unchecked))"
        }
        let earlier = explanation.undecided
        return "\(verdict.name): \(check.title)"
            + (earlier.isEmpty ? "" : ", unless one of these fails, which were not made: \(titles(earlier))")
    }

    /// What a service's verdict asks for; `nil`: nothing that its name does not say.
    private var advice: String? {
        guard service?.verdict == .challengeElsewhere else { return nil }
        return "another service of the cluster has issued the challenge, or this one before its start: "
            + "send the proof where its challenge came from"
    }

    private func titles(_ checks: [Explanation.Check]) -> String { checks.map(\.title).joined(separator: ", ") }

    private func tree(of proof: SignedIdentityProof, _ explanation: Explanation) -> [String] {
        var lines = ["  leaf: SHA-256 of the public key, \(proof.publicKey.count) bytes", "    \(explanation.leaf)"]
        guard let levels = explanation.levels else {
            return lines + ["  no root hash: see the checks of lengths and index"]
        }
        for (number, level) in levels.enumerated() {
            let (left, right) = level.isRight ? (level.sibling, level.node) : (level.node, level.sibling)
            lines += [
                "  level \(number): the index's bit is \(level.isRight ? 1 : 0), so the sibling is on the "
                    + (level.isRight ? "left" : "right"),
                "    left   \(left)\(level.isRight ? " (sibling)" : "")",
                "    right  \(right)\(level.isRight ? "" : " (sibling)")",
                "    parent \(level.parent)",
            ]
        }
        let distance = levels.isEmpty ? "the leaf itself" : "the last parent"
        return lines + ["  root hash: \(distance)", "    \(levels.last?.parent ?? explanation.leaf)"]
    }

    private func checkLines(_ finding: Explanation.Finding, of explanation: Explanation) -> [String] {
        let outcome =
            switch finding.outcome {
            case .passed: "passed"
            case .failed(let verdict): "failed, \(verdict.name)"
            case .unchecked: "not checked"
            }
        var lines = ["    \(finding.check.title): \(outcome): \(finding.reason)"]
        if let service {
            let told =
                switch explanation.told(about: finding.check, by: service.verdict) {
                case .passed: "passed"
                case .failed: "failed"
                case .perhapsFailed: "perhaps failed, its verdict does not tell"
                case .silent: "its verdict does not tell"
                }
            lines.append("      by the service: \(told)")
        }
        return lines
    }

    private func serviceLines(_ service: LineVerdict, _ explanation: Explanation) -> [String] {
        guard let root = service.root else { return ["  the service has told no root hash"] }
        return root == explanation.root
            ? ["  the service has computed the same root hash"]
            : ["  the service has computed another root hash", "    \(root)"]
    }
}
