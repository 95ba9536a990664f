extension Array where Element == UInt8 {
    /// Calls `body` with the bytes. Keeps the error type of `body`, which `withUnsafeBytes` does not.
    ///
    /// The method is public because the compiler inlines only public functions in other modules. A check of grants
    /// calls it for each record. A generic call there cost a tenth of the rate of checks.
    @inlinable @inline(__always)
    public func withRawBytes<R, E>(_ body: (UnsafeRawBufferPointer) throws(E) -> R) throws(E) -> R {
        try withUnsafeBufferPointer { bytes throws(E) in try body(UnsafeRawBufferPointer(bytes)) }
    }
}
