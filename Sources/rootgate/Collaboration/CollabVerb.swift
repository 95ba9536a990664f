import RootgateClient

/// One thing that `rootgate collab` does.
struct CollabVerb: Sendable {
    let verb: Verb
    let run: @Sendable (CollabCall) async throws -> ExitCode

    init(_ verb: Verb, run: @escaping @Sendable (CollabCall) async throws -> ExitCode) {
        self.verb = verb
        self.run = run
    }

    /// A verb that lists. It prints one page with `--limit` items after `--after` and says when there are more; with
    /// `--all` it prints every page.
    ///
    /// `next` makes the request for the page after an answer, and the `--after` that leads there; `nil` when there is
    /// no such page.
    static func list<Request: CollaborationRequest>(
        _ verb: Verb,
        request: @escaping @Sendable (CollabCall) throws -> Request,
        next: @escaping @Sendable (Request, Request.Answer) -> (request: Request, after: String)?
    ) -> CollabVerb {
        CollabVerb(verb) { call in
            try await call.arguments.eachPage(from: try request(call)) { request in
                let answer = try await call.client().send(request)
                try call.show(answer)
                return next(request, answer).map { (start: $0.request, after: $0.after) }
            }
            return .success
        }
    }

    /// A verb that sends one request and prints its answer.
    init<Request: CollaborationRequest>(
        _ verb: Verb, request: @escaping @Sendable (CollabCall) throws -> Request
    ) {
        self.init(verb) { call in
            let request = try request(call)
            try call.show(try await call.client().send(request))
            return .success
        }
    }
}
