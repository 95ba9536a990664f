package import Core

/// The `ServiceError` that `body` throws; `nil` when it throws none.
package func thrownServiceError(_ body: () throws -> Void) -> ServiceError? {
    do {
        try body()
        return nil
    } catch {
        return error as? ServiceError
    }
}
