/// The pages for whoever operates the service, and for the programs that watch it.
struct OperatorSite: HTTPSite {
    /// The paths of the pages that are always there. Those for people come first.
    static let paths = ConsoleSite.paths + ["/livez", "/readyz", "/metrics", "/debug/requests"]

    let watch: ServiceWatch
    let metrics: MetricsPage
    let slowest: SlowestRequests
    let console: ConsoleSite

    func page(for request: HTTPRequest) -> HTTPPage? {
        switch request.path {
        case "/livez": HTTPPage { watch.liveness.page }
        case "/readyz": HTTPPage { watch.readiness.page }
        case "/metrics": HTTPPage { metrics.page }
        case "/debug/requests": HTTPPage { slowest.page }
        default: console.page(for: request)
        }
    }
}
