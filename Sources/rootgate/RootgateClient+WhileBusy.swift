import Core
import RootgateClient

extension RootgateClient {
    /// Sends a request, and sends it again for as long as the service is busy: after as long as it says, or a little
    /// while.
    ///
    /// `deadline`: until when it is sent again. Throws what the service answers last.
    func whileBusy<Answer>(
        until deadline: () -> ContinuousClock.Instant,
        _ send: (RootgateClient) async throws(ServiceError) -> Answer
    ) async throws(ServiceError) -> Answer {
        while true {
            do throws(ServiceError) {
                return try await send(self)
            } catch {
                let pause = max(error.retryAfter ?? .zero, .milliseconds(50))
                guard error.code == .busy, ContinuousClock.now + pause < deadline() else { throw error }
                guard (try? await Task.sleep(for: pause)) != nil else {
                    throw ServiceError(.cancelled, "the import was cancelled")
                }
            }
        }
    }

    /// The same, for at most so long.
    func whileBusy<Answer>(
        _ patience: Duration, _ send: (RootgateClient) async throws(ServiceError) -> Answer
    ) async throws(ServiceError) -> Answer {
        let deadline = ContinuousClock.now + patience
        return try await whileBusy(until: { deadline }, send)
    }
}
