/// The pages for whoever operates the service, and for the programs that watch it.
struct OperatorSite: HTTPSite {
    /// The paths of the pages.
    static let paths = ["/livez", "/readyz"]

    let watch: ServiceWatch

    func page(at path: String) -> (() -> HTTPResponse)? {
        switch path {
        case "/livez": { watch.liveness.page }
        case "/readyz": { watch.readiness.page }
        default: nil
        }
    }
}
