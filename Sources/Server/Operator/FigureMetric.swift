import Principals

/// A metric that is made of one or several figures of the statistics.
struct FigureMetric: Sendable {
    private enum Kind {
        case counter
        case gauge
    }

    private enum Figures {
        /// One figure.
        case named(String)
        /// The figures with a prefix. What follows it is the value of the label.
        case prefixed(String, label: String)
        /// Some figures, each with the value of the label.
        case listed([(figure: String, value: String)], label: String)
        /// The rates of kernels: `rate-NAME-WORK`.
        case rates
    }

    /// Without `rootgate_` and `_total`.
    let name: String
    private let kind: Kind
    private let help: String
    private let figures: Figures
    /// By what the figure is divided.
    private let divisor: Double

    private init(
        _ kind: Kind, _ name: String, _ figures: Figures, _ help: String, dividedBy divisor: Double = 1
    ) {
        (self.kind, self.name, self.figures, self.help, self.divisor) = (kind, name, figures, help, divisor)
    }

    /// Writes the metric, and removes the figures that it has from the list. A metric without figures is not written.
    func write(_ list: inout [(name: String, value: UInt64)], to text: inout MetricsText) {
        var samples: [(labels: MetricsText.Labels, value: UInt64)] = []
        list.removeAll { figure in
            guard let labels = labels(of: figure.name) else { return false }
            samples.append((labels, figure.value))
            return true
        }
        guard !samples.isEmpty else { return }
        switch kind {
        case .counter: text.counter(name, help, samples)
        case .gauge: text.gauge(name, help, samples.map { ($0.labels, Double($0.value) / divisor) })
        }
    }

    /// The labels of a figure; `nil`: it is another metric's.
    private func labels(of figure: String) -> MetricsText.Labels? {
        switch figures {
        case .named(let name): return figure == name ? [] : nil
        case .prefixed(let prefix, let label):
            return figure.hasPrefix(prefix) ? [(label, String(figure.dropFirst(prefix.count)))] : nil
        case .listed(let list, let label):
            return list.first { $0.figure == figure }.map { [(label, $0.value)] }
        case .rates:
            guard figure.hasPrefix("rate-"), let hyphen = figure.lastIndex(of: "-") else { return nil }
            return [
                ("kernel", String(figure[..<hyphen].dropFirst("rate-".count))),
                ("work", String(figure[figure.index(after: hyphen)...])),
            ]
        }
    }

    private static let refusals: [(figure: String, value: String)] =
        [("requests-busy", "busy"), ("keys-slowed", "keys-slowed")]
        + PrincipalLimits.Kind.allCases.map { ($0.figure, $0.figure) }

    /// Every metric, in the order of the page. Each figure of the statistics is in one of them.
    static let all: [FigureMetric] = ofConnections + ofStorage + ofVerification

    private static let ofConnections = [
        FigureMetric(
            .gauge, "uptime_seconds", .named("uptime-milliseconds"), "Time since the start.", dividedBy: 1000),
        FigureMetric(.gauge, "resident_memory_bytes", .named("resident-bytes"), "Memory of the process."),
        FigureMetric(.gauge, "connections", .named("connections"), "Connections of clients."),
        FigureMetric(
            .counter, "connections_accepted", .named("connections-accepted"), "Connections since the start."),
        FigureMetric(.counter, "requests", .named("requests"), "Requests since the start."),
        FigureMetric(
            .counter, "operations", .prefixed("operation-", label: "operation"),
            "Requests since the start, by operation."),
        FigureMetric(
            .gauge, "requests_in_flight", .named("requests-in-flight"), "Requests that a thread works on or will."),
        FigureMetric(
            .gauge, "requests_suspended", .named("requests-following"), "Queries that wait for a change."),
        FigureMetric(
            .counter, "refusals", .listed(refusals, label: "reason"),
            "Requests that were refused with busy or because of a limit, and keys that were not looked at."),
        FigureMetric(
            .gauge, "request_memory_bytes", .named("request-memory-bytes"),
            "Memory of received frames, requests in work and unread answers."),
        FigureMetric(.gauge, "proofs_waiting", .named("proofs-waiting"), "Proofs and short reads that wait."),
        FigureMetric(.gauge, "mutations_waiting", .named("mutations-waiting"), "Mutations that wait."),
    ]

    private static let ofStorage = [
        FigureMetric(.counter, "mutations", .named("mutations"), "Mutations that were committed."),
        FigureMetric(.counter, "commits", .named("commits"), "Commits since the start."),
        FigureMetric(
            .gauge, "storage_checked", .named("storage-checked"), "Whether all of the storage was checked."),
        FigureMetric(.gauge, "storage_damaged", .named("storage-damaged"), "Whether the storage is damaged."),
        FigureMetric(.gauge, "storage_failed", .named("storage-failed"), "Whether the storage has failed."),
        FigureMetric(.gauge, "storage_sequence", .named("sequence"), "The number of the last change."),
        FigureMetric(
            .gauge, "storage_log_first_sequence", .named("log-first-sequence"),
            "The number of the oldest change in the log."),
        FigureMetric(.gauge, "storage_log_bytes", .named("log-bytes"), "Size of the change log."),
        FigureMetric(.gauge, "collaborations", .named("collaborations"), "Collaborations."),
        FigureMetric(.gauge, "roots", .named("roots"), "Root hashes of all collaborations."),
        FigureMetric(.gauge, "storage_file_bytes", .named("storage-bytes"), "Size of the data file."),
        FigureMetric(
            .gauge, "storage_used_bytes", .named("storage-used-bytes"), "What of the data file holds data."),
        FigureMetric(
            .gauge, "cluster_segment", .named("cluster-segment"),
            "The number of the cluster's last segment that was applied."),
        FigureMetric(
            .gauge, "cluster_behind_seconds", .named("cluster-behind-milliseconds"),
            "Time since the service had everything that the cluster's log had.", dividedBy: 1000),
        FigureMetric(
            .gauge, "cluster_foreign_secrets", .named("cluster-foreign-secrets"),
            "Other services of the cluster that have another secret."),
    ]

    private static let ofVerification = [
        FigureMetric(
            .counter, "challenges_issued", .named("challenges-issued"), "Challenges since the start."),
        FigureMetric(
            .gauge, "replay_memory_bytes", .named("replay-memory-bytes"), "Memory of spent challenges."),
        FigureMetric(
            .gauge, "nonces_remembered", .named("nonces-remembered"), "Device nonces that were spent."),
        FigureMetric(.gauge, "known_keys", .named("known-keys"), "Keys with tables."),
        FigureMetric(.gauge, "known_key_table_bytes", .named("known-key-bytes"), "Memory of the tables."),
        FigureMetric(
            .counter, "known_key_hits", .named("known-key-hits"), "Signatures that were verified with a table."),
        FigureMetric(
            .counter, "cross_checks", .named("cross-checks"), "Signatures that OpenSSL has verified again."),
        FigureMetric(
            .counter, "cross_checks_skipped", .named("cross-checks-skipped"), "Samples that it had no time for."),
        FigureMetric(
            .counter, "cross_check_disagreements", .named("cross-check-disagreements"),
            "Signatures about which a kernel and OpenSSL disagreed."),
        FigureMetric(
            .gauge, "kernel_in_use", .prefixed("kernel-", label: "kernel"), "Whether a kernel is in use."),
        FigureMetric(
            .gauge, "kernel_rate", .rates, "What a kernel did in a second when it was measured at the start."),
        FigureMetric(.counter, "verdicts", .prefixed("verdict-", label: "verdict"), "Verdicts since the start."),
    ]
}
