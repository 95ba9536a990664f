import Core
import Foundation
import Principals
import Verification

/// The console's first page: how the service is, and what it does. It names no collaboration, no person and no
/// principal.
struct OverviewPage: Sendable {
    let frame: ConsoleFrame
    let history: ServiceHistory
    let watch: ServiceWatch
    let meter: RequestMeter
    let pool: WorkerPool

    var page: HTTPResponse {
        let present = history.present
        let readiness = watch.readiness
        return frame.page(
            "Overview", at: "/", refreshes: true,
            """
            <h1>Overview</h1>
            \(state(present.view, readiness))
            \(alarms(present.view))
            <h2>The last minutes</h2>
            <div class="plots">\(plots(present.moments).map(\.figure))</div>
            <div class="columns">
            <section><h2>Readiness</h2>\(checks(readiness))</section>
            <section><h2>Verdicts</h2>\(verdicts(present.view))</section>
            <section><h2>Times since the start</h2>\(times)</section>
            <section><h2>Storage and keys</h2>\(storage(present.view))</section>
            <section><h2>Connections and memory</h2>\(connections(present.view))</section>
            <section><h2>Kernels</h2>\(kernels(present.view))</section>
            </div>
            <p class="note">This page is as of its loading; with scripts it renews itself. \
            <a href="/">Load it again</a>. It names no collaboration, no person and no principal.</p>
            """)
    }

    // MARK: State

    private func state(_ view: ServiceView, _ readiness: ReadinessReport) -> Markup {
        let failed = readiness.checks.filter { $0.fault != nil }.map(\.name)
        let sign: Markup =
            failed.isEmpty
            ? "<strong class=\"good\">Ready</strong>"
            : "<strong class=\"bad\">Not ready: \(failed.joined(separator: ", "))</strong>"
        let seconds = Int(view.sample["uptime-milliseconds"] / 1000)
        return """
            <p class="state">\(sign) <span>up for \(Self.duration(seconds))</span> \
            <span>proofs \(ServiceView.rate(view.proofRate))</span> \
            <span>requests \(ServiceView.rate(view.rates["requests"]))</span></p>
            """
    }

    private func alarms(_ view: ServiceView) -> Markup {
        let alarms = view.alarms.map { "<li>\($0)</li>" as Markup }
        return alarms.isEmpty ? "" : "<ul class=\"alarms\" role=\"alert\">\(alarms)</ul>"
    }

    private func checks(_ readiness: ReadinessReport) -> Markup {
        let rows = readiness.checks.map { check -> [Markup] in
            let outcome: Markup =
                check.fault.map { "<span class=\"bad\">failed: \($0)</span>" } ?? "<span class=\"good\">ok</span>"
            return ["\(check.name)", outcome]
        }
        return .table("As /readyz answers", ["check", "outcome"], rows, empty: "no checks")
    }

    // MARK: Plots

    private func plots(_ moments: [ServiceHistory.Moment]) -> [TimePlot] {
        typealias Moment = ServiceHistory.Moment
        let shown = max(Limits.historyMomentsShownMin, moments.count)
        let span = Self.duration(shown * Limits.historyMilliseconds / 1000) + " ago"
        func plot(
            _ title: String, _ text: @escaping (Double) -> String, _ lines: [(String, KeyPath<Moment, Double?>)]
        ) -> TimePlot {
            TimePlot(
                title: title,
                lines: lines.map { name, field in TimePlot.Line(name: name, values: moments.map { $0[keyPath: field] })
                },
                text: text, momentsMax: shown, begin: span)
        }
        let (rate, count, time) = (Self.rate, Self.count, Self.time)
        return [
            plot("Proofs and requests", rate, [("proofs", \.proofs), ("requests", \.requests)]),
            plot("Verdicts", rate, [("granted", \.granted), ("refused", \.refused)]),
            plot("Time of requests", time, [("half within", \.halfWithin), ("99 of 100 within", \.mostWithin)]),
            plot("Passes", rate, [("passes", \.passes)]),
            plot("Proofs in a pass", count, [("on average", \.proofsPerPass)]),
            plot("Waiting", count, [("proofs", \.waitingProofs), ("changes", \.waitingMutations)]),
            plot("Changes", rate, [("changes", \.mutations), ("commits", \.commits)]),
            plot("Time of commits", time, [("half within", \.halfDurable), ("99 of 100 within", \.mostDurable)]),
            plot("Connections", count, [("open", \.connections), ("queries that wait", \.suspended)]),
        ]
    }

    static func rate(_ value: Double) -> String { ServiceView.rate(value) }

    static func count(_ value: Double) -> String {
        let isWhole = value == value.rounded() && value >= 0 && value < 1e18
        return isWhole ? ServiceView.grouped(UInt64(value)) : String(format: "%.1f", value)
    }

    /// Seconds in the unit that suits them.
    static func time(_ seconds: Double) -> String {
        let (value, unit) =
            seconds < 1e-3 ? (seconds * 1e6, "µs") : seconds < 1 ? (seconds * 1e3, "ms") : (seconds, "s")
        return String(format: value < 9.95 ? "%.1f" : "%.0f", value) + " " + unit
    }

    static func duration(_ seconds: Int) -> String {
        let (days, hours, minutes) = (seconds / 86_400, seconds / 3600 % 24, seconds / 60 % 60)
        if days > 0 { return "\(days) d \(hours) h" }
        if hours > 0 { return "\(hours) h \(minutes) min" }
        if minutes == 0 || seconds % 60 == 0 { return minutes == 0 ? "\(seconds) s" : "\(minutes) min" }
        return "\(minutes) min \(seconds % 60) s"
    }

    // MARK: Tables

    private func verdicts(_ view: ServiceView) -> Markup {
        let rows = view.sample.verdicts.filter { $0.count > 0 }.map { name, count -> [Markup] in
            let share = view.shares[name].map { String(format: "%.1f %%", $0 * 100) } ?? "–"
            return [
                "\(name)", "\(ServiceView.rate(view.rates[ServiceSample.verdictPrefix + name]))", "\(share)",
                "\(ServiceView.grouped(count))",
            ]
        }
        return .table(
            "Rates and shares of the last two seconds", ["verdict", "rate", "share", "since the start"], rows,
            empty: "No verdict was given yet.")
    }

    /// How long requests and passes took since the start, by role and stage.
    private var times: Markup {
        let requests = meter.figures
        let passes = pool.passFigures
        let roles = (PrincipalRole.allCases + [nil]).map { role in
            ("requests: " + (role?.rawValue ?? "no role"), requests.durations(of: role))
        }
        let stages = PassStage.allCases.map { ("pass: " + $0.rawValue, passes.durations(of: $0)) }
        let rows = (roles + [("passes", passes.durations)] + stages).filter { $0.1.count > 0 }.map {
            name, times -> [Markup] in
            let parts = [0.5, 0.99].map { times.quantile($0).map(Self.time) ?? "–" }
            return ["\(name)", "\(ServiceView.grouped(times.count))", "\(parts[0])", "\(parts[1])"]
        }
        return .table(
            "Requests by role, and passes of the verifiers by stage",
            ["of", "count", "half within", "99 of 100 within"], rows, empty: "No request was answered yet.")
    }

    private func storage(_ view: ServiceView) -> Markup {
        Self.figures(
            view,
            [
                ("collaborations", "collaborations", false), ("root hashes", "roots", false),
                ("data in use", "storage-used-bytes", true), ("data file", "storage-bytes", true),
                ("change log", "log-bytes", true), ("last change", "sequence", false),
                ("known keys", "known-keys", false), ("tables of known keys", "known-key-bytes", true),
                ("spent challenges", "replay-memory-bytes", true), ("device nonces", "nonces-remembered", false),
            ],
            [("proofs by known keys", "\(ServiceView.rate(view.rates["known-key-hits"]))")])
    }

    private func connections(_ view: ServiceView) -> Markup {
        let limited = view.sample.figures.keys.filter { $0.hasPrefix("limited-") }.sorted()
        let refused = (["requests-busy", "keys-slowed"] + limited).filter { view.sample[$0] > 0 }.map {
            ("refused: " + $0, "\(ServiceView.grouped(view.sample[$0]))" as Markup)
        }
        return Self.figures(
            view,
            [
                ("open connections", "connections", false),
                ("connections since the start", "connections-accepted", false),
                ("requests in work", "requests-in-flight", false), ("queries that wait", "requests-following", false),
                ("memory of requests", "request-memory-bytes", true), ("memory of the process", "resident-bytes", true),
            ],
            refused)
    }

    /// Figures that the service tells, and further entries.
    private static func figures(
        _ view: ServiceView, _ names: [(title: String, figure: String, isBytes: Bool)],
        _ more: [(name: String, value: Markup)]
    ) -> Markup {
        let entries = names.compactMap { name -> (name: String, value: Markup)? in
            guard let value = view.sample.figures[name.figure] else { return nil }
            return (name.title, "\(name.isBytes ? ServiceView.size(value) : ServiceView.grouped(value))")
        }
        return .list(entries + more)
    }

    private func kernels(_ view: ServiceView) -> Markup {
        let used = view.sample.figures.filter { $0.key.hasPrefix("kernel-") && $0.value > 0 }.map {
            String($0.key.dropFirst("kernel-".count))
        }
        let rates = view.sample.figures.filter { $0.key.hasPrefix("rate-") }.sorted { $0.key < $1.key }.map {
            name, value -> [Markup] in
            let parts = name.dropFirst("rate-".count)
            let hyphen = parts.lastIndex(of: "-") ?? parts.endIndex
            let kernel = String(parts[..<hyphen])
            return [
                "\(kernel)", "\(String(parts[hyphen...].dropFirst()))", "\(ServiceView.grouped(value))/s",
                "\(used.contains(kernel) ? "in use" : "")",
            ]
        }
        return .table(
            "What they did when they were measured at the start", ["kernel", "work", "rate", ""], rates,
            empty: "Not measured yet.")
    }
}
