import RootgateClient

/// The code of what `body` throws; `nil` when it does not.
func code(of body: @Sendable () async throws(ServiceError) -> Void) async -> ServiceError.Code? {
    do throws(ServiceError) {
        try await body()
        return nil
    } catch {
        return error.code
    }
}
