/// What the system may give a process only so much of (setrlimit).
package enum LimitedResource: Sendable {
    /// Open files: numbers of descriptors below the limit.
    case descriptors
    /// Bytes of addresses, whether there is memory behind them or not.
    case addresses
    /// Bytes of memory that is this process's alone.
    case privateMemory
    /// Bytes of a thread's stack.
    case stack
}
