extension Array where Element == UInt8 {
    /// Lends the bytes, keeping the type of what `body` throws (`withUnsafeBytes` does not).
    package func withRawBytes<R, E>(_ body: (UnsafeRawBufferPointer) throws(E) -> R) throws(E) -> R {
        try withUnsafeBufferPointer { bytes throws(E) in try body(UnsafeRawBufferPointer(bytes)) }
    }
}
