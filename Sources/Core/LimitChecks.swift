/// Throws `limitExceeded` unless `count` is at most `limit`; `what` names what was counted.
package func checkLimit(_ count: Int, _ limit: Int, _ what: String) throws(ServiceError) {
    guard count <= limit else {
        throw ServiceError(.limitExceeded, detail: UInt32(limit), "\(count) \(what) are over the limit of \(limit)")
    }
}

/// Throws `behindSequence` when `wanted` is greater than `last`. `wanted` is the sequence that a request demands,
/// `last` that of the last change applied here.
package func checkSequence(_ wanted: UInt64, last: UInt64) throws(ServiceError) {
    guard last < wanted else { return }
    throw ServiceError(
        .behindSequence, detail: UInt32(clamping: wanted - last),
        "sequence \(wanted) has not been applied here: the last one is \(last)")
}

/// Throws unless the value of a field is in its range: `malformedRequest` below it, `limitExceeded` above it.
package func checkRange(_ value: Int, _ range: ClosedRange<Int>, _ field: String) throws(ServiceError) {
    guard !range.contains(value) else { return }
    let reason = "\(field) is \(value), not a number from \(range.lowerBound) to \(range.upperBound)"
    guard value > range.upperBound else { throw ServiceError(.malformedRequest, reason) }
    throw ServiceError(.limitExceeded, detail: UInt32(clamping: range.upperBound), reason)
}

/// Throws unless `limit` is a valid number of items in a page: `malformedRequest` below 1, `limitExceeded` above
/// `most`.
package func checkPage(_ limit: Int, _ most: Int) throws(ServiceError) {
    try checkRange(limit, 1...most, "limit")
}
