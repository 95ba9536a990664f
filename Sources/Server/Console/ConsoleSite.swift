import Core
import Verification

/// The pages for people among the operator's pages.
struct ConsoleSite: Sendable {
    /// The paths that are always there.
    static let paths = ["/", ExplainPage.path]
    /// What the pages load.
    static let parts = ["/console.css", "/console.js", "/console.svg"]
    /// Those that show collaborations, people and principals, and are there only when the operator wants that.
    static let recordPaths = RecordPages.paths

    private let overview: OverviewPage
    private let explain: ExplainPage
    /// `nil`: they are not there.
    private let records: RecordPages?

    /// Whether collaborations, people and principals are shown.
    var showsRecords: Bool { records != nil }

    init(
        _ pipeline: Pipeline, _ meter: RequestMeter, _ watch: ServiceWatch, _ history: ServiceHistory,
        showsRecords: Bool
    ) {
        let always = [("/", "Overview"), (ExplainPage.path, "Explain a proof")]
        let frame = ConsoleFrame(pages: showsRecords ? always + RecordPages.titles : always)
        overview = OverviewPage(frame: frame, history: history, watch: watch, meter: meter, pool: pipeline.pool)
        explain = ExplainPage(frame: frame, resources: pipeline.resources, showsRecords: showsRecords)
        records = showsRecords ? RecordPages(frame: frame, layer: pipeline.collaboration) : nil
    }

    /// The page that a request asks for, or what it gets in its place; `nil`: there is none.
    func page(for request: HTTPRequest, from place: ConsoleVisitor.Place) -> HTTPPage? {
        guard let page = content(of: request) else { return nil }
        return ConsoleVisitor.refusal(of: request, from: place).map { page.refused(with: $0) } ?? page
    }

    private func content(of request: HTTPRequest) -> HTTPPage? {
        switch request.path {
        case "/": HTTPPage { overview.page }
        case ExplainPage.path: explain.page(for: request)
        case "/console.css": HTTPPage { ConsoleFrame.style }
        case "/console.js": HTTPPage { ConsoleFrame.script }
        case "/console.svg": HTTPPage { ConsoleFrame.icon }
        default: records?.page(for: request)
        }
    }
}
