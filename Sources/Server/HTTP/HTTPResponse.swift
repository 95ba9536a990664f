import Foundation

/// A response of HTTP/1.1. It says that the connection is closed behind it.
struct HTTPResponse: Sendable {
    enum Status: String, CaseIterable, Sendable {
        case ok = "200 OK"
        case badRequest = "400 Bad Request"
        case unauthorized = "401 Unauthorized"
        case forbidden = "403 Forbidden"
        case notFound = "404 Not Found"
        case methodNotAllowed = "405 Method Not Allowed"
        case requestTimeout = "408 Request Timeout"
        case lengthRequired = "411 Length Required"
        case contentTooLarge = "413 Content Too Large"
        case unsupportedMediaType = "415 Unsupported Media Type"
        case misdirected = "421 Misdirected Request"
        case tooManyRequests = "429 Too Many Requests"
        case headTooLarge = "431 Request Header Fields Too Large"
        case unavailable = "503 Service Unavailable"
    }

    let status: Status
    let contentType: String
    let body: [UInt8]
    /// Fields besides those that every response has.
    let fields: [(name: String, value: String)]

    init(
        _ status: Status, _ body: [UInt8], contentType: String, fields: [(name: String, value: String)] = []
    ) {
        self.status = status
        self.contentType = contentType
        self.body = body
        self.fields = fields
    }

    /// A line of text with the status, and a line that says why, if there is a reason.
    static func refusal(_ status: Status, because reason: String? = nil) -> HTTPResponse {
        let text = status.rawValue + "\n" + (reason.map { $0 + "\n" } ?? "")
        return HTTPResponse(status, Array(text.utf8), contentType: "text/plain; charset=utf-8")
    }

    /// The response with another field.
    func with(_ name: String, _ value: String) -> HTTPResponse {
        HTTPResponse(status, body, contentType: contentType, fields: fields + [(name, value)])
    }

    /// What a request gets that is neither read nor, at a page that takes forms, sent. `methods`: those of the page.
    static func methodNotAllowed(_ methods: String) -> HTTPResponse {
        refusal(.methodNotAllowed).with("Allow", methods)
    }

    /// The response as it is sent. `hasBody`: false for a request of HEAD, whose response has the length of the body
    /// all the same. `seconds`: since 1970.
    func bytes(hasBody: Bool = true, at seconds: time_t = time(nil)) -> [UInt8] {
        var head = "HTTP/1.1 \(status.rawValue)\r\n"
        if let date = HTTPResponse.date(seconds) { head += "Date: \(date)\r\n" }
        head += "Content-Type: \(contentType)\r\nContent-Length: \(body.count)\r\n"
        for field in fields { head += "\(field.name): \(field.value)\r\n" }
        return Array((head + "Connection: close\r\n\r\n").utf8) + (hasBody ? body : [])
    }

    private static let days = ["Sun", "Mon", "Tue", "Wed", "Thu", "Fri", "Sat"]
    private static let months = [
        "Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec",
    ]

    /// A date as RFC 9110, section 5.6.7 wants it, in no locale; `nil` for one that the system can't split.
    static func date(_ seconds: time_t) -> String? {
        var seconds = seconds
        var parts = tm()
        guard gmtime_r(&seconds, &parts) != nil, days.indices.contains(Int(parts.tm_wday)),
            months.indices.contains(Int(parts.tm_mon))
        else { return nil }
        func padded(_ number: CInt) -> String { (number < 10 ? "0" : "") + String(number) }
        let time = [parts.tm_hour, parts.tm_min, parts.tm_sec].map(padded).joined(separator: ":")
        return "\(days[Int(parts.tm_wday)]), \(padded(parts.tm_mday)) \(months[Int(parts.tm_mon)]) "
            + "\(parts.tm_year + 1900) \(time) GMT"
    }
}
