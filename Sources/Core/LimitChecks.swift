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

/// Throws unless `limit` is a valid number of items in a page: `malformedRequest` below 1, `limitExceeded` above
/// `most`.
package func checkPage(_ limit: Int, _ most: Int) throws(ServiceError) {
    guard limit > 0 else { throw ServiceError(.malformedRequest, "a page has at least one item") }
    try checkLimit(limit, most, "items in a page")
}
