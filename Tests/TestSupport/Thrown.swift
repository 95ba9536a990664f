package import Core

/// The error of that type that `body` throws; `nil` when it throws none, or another one.
package func thrown<Failure: Error>(_ type: Failure.Type, _ body: () throws -> Void) -> Failure? {
    do {
        try body()
        return nil
    } catch {
        return error as? Failure
    }
}

/// The `ServiceError` that `body` throws; `nil` when it throws none.
package func thrownServiceError(_ body: () throws -> Void) -> ServiceError? {
    thrown(ServiceError.self, body)
}
