import Core
import Principals
import RootSets
import Verification

/// The page of metrics: the figures of the statistics and the histograms. No label names a person or a collaboration.
struct MetricsPage: Sendable {
    let statistics: StatisticsSource
    let rootSets: RootSets
    let pool: WorkerPool
    let meter: RequestMeter
    let watch: ServiceWatch
    /// Handshakes that were finished, and those that were refused or given up; `nil`: clients speak plain text.
    let handshakes: @Sendable () -> (finished: UInt64, refused: UInt64)?

    var page: HTTPResponse {
        var text = MetricsText()
        text.information("build", "The version of the service.", [("version", Service.version)])
        // The figures of a storage that has failed are missing.
        let storage = try? rootSets.read { snapshot throws(ServiceError) in try snapshot.statistics() }
        var figures = statistics.figures(storage: storage)
        for metric in FigureMetric.all { metric.write(&figures, to: &text) }
        writeWatch(to: &text)
        writeRequests(to: &text)
        writePasses(to: &text)
        writeCommits(to: &text)
        return HTTPResponse(.ok, text.finished(), contentType: MetricsText.contentType)
    }

    private func writeWatch(to text: inout MetricsText) {
        text.gauge(
            "ready", "Whether a check of /readyz passes.",
            watch.readiness.checks.map { ([("check", $0.name)], $0.fault == nil ? 1 : 0) })
        text.counter("own_proofs", "Proofs of the service's own that were judged.", watch.ownProofs)
        if let end = watch.certificateEnd() {
            text.gauge("tls_certificate_end_timestamp_seconds", "When the certificate expires.", Double(end))
        }
        guard let handshakes = handshakes() else { return }
        text.counter(
            "tls_handshakes", "Handshakes that were finished, and those that were refused or given up.",
            [([("outcome", "finished")], handshakes.finished), ([("outcome", "refused")], handshakes.refused)])
    }

    private func writeRequests(to text: inout MetricsText) {
        let figures = meter.figures
        let roles: [PrincipalRole?] = PrincipalRole.allCases + [nil]
        text.histogram(
            "request_duration_seconds", "From a request's frame to its answer, without the wait for a change.",
            roles.map { ([("role", $0?.rawValue ?? "none")], figures.durations(of: $0)) })
        text.histogram(
            "request_stage_duration_seconds", "How long requests were in each stage.",
            RequestStage.allCases.map { ([("stage", $0.rawValue)], figures.durations(in: $0)) })
    }

    private func writePasses(to text: inout MetricsText) {
        let figures = pool.passFigures
        text.histogram("pass_proofs", "Proofs that a worker verified together.", [([], figures.proofs)])
        text.histogram(
            "pass_duration_seconds", "How long a worker took for them.", [([], figures.durations)])
        text.histogram(
            "pass_stage_duration_seconds", "How long each stage of that took.",
            PassStage.allCases.map { ([("stage", $0.rawValue)], figures.durations(of: $0)) })
    }

    private func writeCommits(to text: inout MetricsText) {
        let figures = rootSets.commitFigures
        text.histogram("commit_mutations", "Mutations in a commit.", [([], figures.mutations)])
        text.histogram(
            "commit_apply_duration_seconds", "How long the mutations of a commit took to be applied.",
            [([], figures.applying)])
        text.histogram(
            "commit_write_duration_seconds", "How long a commit took to be written and made durable.",
            [([], figures.writing)])
    }
}
