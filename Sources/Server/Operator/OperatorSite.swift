/// The pages for whoever operates the service, and for the programs that watch it.
struct OperatorSite: HTTPSite {
    /// The paths of the pages.
    static let paths = ["/livez", "/readyz", "/metrics", "/debug/requests"]

    let watch: ServiceWatch
    let metrics: MetricsPage
    let slowest: SlowestRequests

    func page(at path: String) -> (() -> HTTPResponse)? {
        switch path {
        case "/livez": { watch.liveness.page }
        case "/readyz": { watch.readiness.page }
        case "/metrics": { metrics.page }
        case "/debug/requests": { slowest.page }
        default: nil
        }
    }
}
