extension Array where Element == UInt8 {
    /// Lends the bytes, keeping the type of what `body` throws (`withUnsafeBytes` does not).
    ///
    /// Public, because only public functions are inlined in other modules: a generic call for each record of a check of
    /// grants took a tenth of its rate.
    @inlinable @inline(__always)
    public func withRawBytes<R, E>(_ body: (UnsafeRawBufferPointer) throws(E) -> R) throws(E) -> R {
        try withUnsafeBufferPointer { bytes throws(E) in try body(UnsafeRawBufferPointer(bytes)) }
    }
}
