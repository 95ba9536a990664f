/// How long a request may take in a test that does not test its duration. Tasks share as many threads as the machine
/// has processors, so tests that compute without a pause can delay another test's task for many seconds.
public let patience: Duration = .seconds(120)
