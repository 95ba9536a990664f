/// How long a request of a test may take that tests something else. Tasks share as many threads as the machine has
/// processors, and tests that compute without a pause keep a task waiting for many seconds.
public let patience: Duration = .seconds(120)
