/// What is at a path of a site. The functions are called on the server's thread, and take a bounded time.
struct HTTPPage {
    /// A form that can be sent to the page, as a browser encodes it unless the page says otherwise.
    struct Form {
        /// Bytes of the body, at most.
        let bytesMax: Int
        /// Answers the fields of the form.
        let answer: (FormFields) -> HTTPResponse
    }

    let read: () -> HTTPResponse
    /// `nil`: the page is only read.
    let form: Form?
    /// What every request gets in place of the page; `nil`: nothing.
    private(set) var refusal: HTTPResponse?

    init(form: Form? = nil, read: @escaping () -> HTTPResponse) {
        self.read = read
        self.form = form
    }

    /// The page, when the request is to get only `refusal`.
    func refused(with refusal: HTTPResponse) -> HTTPPage {
        var page = self
        page.refusal = refusal
        return page
    }

    /// The methods that the page has.
    var methods: String { form == nil ? "GET, HEAD" : "GET, HEAD, POST" }
}

/// What a server does about a request whose head has arrived.
enum HTTPReception {
    case response([UInt8])
    /// The response follows from the body, which has so many bytes.
    case body(Int, response: (UnsafeRawBufferPointer) -> [UInt8])
}

extension HTTPSite {
    /// `head`: ends with the empty line.
    func reception(of head: UnsafeRawBufferPointer) -> HTTPReception {
        guard let request = HTTPRequest(head: head) else { return .response(HTTPResponse.refusal(.badRequest).bytes()) }
        let hasBody = request.method != .head
        guard let page = page(for: request) else {
            return .response(HTTPResponse.refusal(.notFound).bytes(hasBody: hasBody))
        }
        if let refusal = page.refusal { return .response(refusal.bytes(hasBody: hasBody)) }
        switch (request.method, page.form) {
        case (.get, _), (.head, _): return .response(page.read().bytes(hasBody: hasBody))
        case (.post, let form?): return request.reception(of: form)
        case (.post, nil), (.other, _): return .response(HTTPResponse.methodNotAllowed(page.methods).bytes())
        }
    }
}

extension HTTPRequest {
    fileprivate func reception(of form: HTTPPage.Form) -> HTTPReception {
        func refusal(_ status: HTTPResponse.Status) -> HTTPReception {
            .response(HTTPResponse.refusal(status).bytes())
        }
        // A body in chunks would have no length that can be compared with the limit.
        guard has("content-length"), !has("transfer-encoding") else { return refusal(.lengthRequired) }
        guard let text = value(of: "content-length"), !text.isEmpty,
            text.utf8.allSatisfy({ (UInt8(ascii: "0")...UInt8(ascii: "9")).contains($0) })
        else { return refusal(.badRequest) }
        // A number that is too long for an integer is above every limit.
        guard let count = Int(text), count <= form.bytesMax else { return refusal(.contentTooLarge) }
        let type = value(of: "content-type")?.prefix { $0 != ";" && $0 != " " }.lowercased()
        guard type == "application/x-www-form-urlencoded" else { return refusal(.unsupportedMediaType) }
        return .body(count) { body in
            guard let fields = FormFields(body) else { return HTTPResponse.refusal(.badRequest).bytes() }
            return form.answer(fields).bytes()
        }
    }
}
