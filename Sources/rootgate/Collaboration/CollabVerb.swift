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
