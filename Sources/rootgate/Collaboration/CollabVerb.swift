import RootgateClient

/// One thing that `rootgate collab` does.
struct CollabVerb: Sendable {
    let name: String
    let operands: String
    let summary: String
    let run: @Sendable (CollabCall) async throws -> ExitCode

    init(
        _ name: String, _ operands: String, _ summary: String,
        run: @escaping @Sendable (CollabCall) async throws -> ExitCode
    ) {
        self.name = name
        self.operands = operands
        self.summary = summary
        self.run = run
    }

    /// A verb that lists. It prints one page with `--limit` items after `--after` and says when there are more; with
    /// `--all` it prints every page.
    ///
    /// `next` makes the request for the page after an answer, and the `--after` that leads there; `nil` when there is
    /// no such page.
    static func list<Request: CollaborationRequest>(
        _ name: String, _ operands: String, _ summary: String,
        request: @escaping @Sendable (CollabCall) throws -> Request,
        next: @escaping @Sendable (Request, Request.Answer) -> (request: Request, after: String)?
    ) -> CollabVerb {
        CollabVerb(name, operands, summary) { call in
            var request = try request(call)
            while true {
                let answer = try await call.client.send(request)
                try call.show(answer)
                guard let following = next(request, answer) else { return .success }
                guard call.arguments.isOn("all") else {
                    call.arguments.sayThereIsMore(after: following.after)
                    return .success
                }
                request = following.request
            }
        }
    }

    /// A verb that sends one request and prints its answer.
    init<Request: CollaborationRequest>(
        _ name: String, _ operands: String, _ summary: String,
        request: @escaping @Sendable (CollabCall) throws -> Request
    ) {
        self.init(name, operands, summary) { call in
            try call.show(try await call.client.send(try request(call)))
            return .success
        }
    }
}
