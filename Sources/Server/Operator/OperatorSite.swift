import Principals

/// The pages for whoever operates the service, and for the programs that watch it.
struct OperatorSite: HTTPSite {
    /// The paths of the pages that are always there. Those for people come first.
    static let paths = ConsoleSite.paths + ["/livez", "/readyz", "/metrics", "/debug/requests"]

    let watch: ServiceWatch
    let metrics: MetricsPage
    let slowest: SlowestRequests
    let console: ConsoleSite

    /// What a principal needs, over everything, to get what is at a path.
    func roles(forPath path: String) -> [PrincipalRole] {
        switch path {
        // With records it shows the proofs of others, and of which collaborations they are.
        case ExplainPage.path: [.observe, .verify] + (console.showsRecords ? [.enrol, .collaborate] : [])
        case "/principals": [.administer]
        // They show nothing, and every page needs them.
        case _ where ConsoleSite.parts.contains(path): []
        case _ where ConsoleSite.recordPaths.contains(path): [.observe, .enrol, .collaborate]
        default: [.observe]
        }
    }

    /// For visitors from this machine.
    func page(for request: HTTPRequest) -> HTTPPage? { page(for: request, from: .thisMachine) }

    func page(for request: HTTPRequest, from place: ConsoleVisitor.Place) -> HTTPPage? {
        switch request.path {
        case "/livez": HTTPPage { watch.liveness.page }
        case "/readyz": HTTPPage { watch.readiness.page }
        case "/metrics": HTTPPage { metrics.page }
        case "/debug/requests": HTTPPage { slowest.page }
        default: console.page(for: request, from: place)
        }
    }
}
