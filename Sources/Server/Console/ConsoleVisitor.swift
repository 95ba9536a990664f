import Core
import Transport

/// Whether a request for a page of the console may come from the operator's own browser or program.
///
/// A page of another site can't read an answer of this machine, unless its name is made to lead here (DNS rebinding):
/// then the browser sends that name as the host. It can send a form here, and the browser says so.
enum ConsoleVisitor {
    /// Where a request comes from.
    enum Place {
        /// Over HTTP, and nobody has to show who it is.
        case thisMachine
        /// Over TLS, from a principal. A name that leads here is not one of the certificate, and the browser sends the
        /// key to no other name.
        case elsewhere
    }

    /// What a request gets in place of the page; `nil`: it may have the page.
    static func refusal(of request: HTTPRequest, from place: Place) -> HTTPResponse? {
        if place == .thisMachine, !(request.host.map(isLocal) ?? false) {
            return .refusal(
                .misdirected, because: "This page is for this machine only: ask for localhost, 127.0.0.1 or [::1].")
        }
        if request.method == .post, isForeign(request, place) {
            return .refusal(.forbidden, because: "This form was sent by a page of another site.")
        }
        return nil
    }

    /// Whether a host, with or without a port, is the loopback interface by name or by address.
    static func isLocal(_ host: String) -> Bool {
        let name = Endpoint(host) ?? Endpoint(host + ":0")
        return name.map { $0.path == nil && $0.isLoopback } ?? false
    }

    /// Whether a page of another site has sent the form. Browsers tell where a form comes from in two fields; the first
    /// one, which no page can set, decides.
    private static func isForeign(_ request: HTTPRequest, _ place: Place) -> Bool {
        if request.has("sec-fetch-site") { return request.value(of: "sec-fetch-site") != "same-origin" }
        guard request.has("origin") else { return false }
        guard let origin = request.value(of: "origin"), let host = request.host else { return true }
        let scheme = place == .thisMachine ? "http://" : "https://"
        return origin.lowercased() != scheme + host.lowercased()
    }
}
