import CLibSSL

/// OpenSSL's queue of errors, which each thread has.
enum ErrorQueue {
    /// One error: a number of OpenSSL's, and its text.
    struct Entry {
        let reason: CInt
        let text: String
        /// Whether libssl made the error: only then `reason` is one of its reasons.
        let isOfLibSSL: Bool

        /// libssl's reason for an alert that was received is this number plus the alert's (RFC 8446, section 6.2).
        static let alertBase: CInt = 1000
        /// Whether the peer has sent an alert.
        var isAlert: Bool { isOfLibSSL && (0..<256).contains(reason - Entry.alertBase) }
    }

    /// Empties the queue and returns its oldest error, which is the cause of the others.
    static func drain() -> Entry? {
        let code = ERR_get_error()
        ERR_clear_error()
        guard code != 0 else { return nil }
        if ERR_GET_LIB(code) == ERR_LIB_PEM, ERR_GET_REASON(code) == PEM_R_NO_START_LINE {
            return Entry(reason: PEM_R_NO_START_LINE, text: "it has nothing of that kind in PEM", isOfLibSSL: false)
        }
        let text = ERR_reason_error_string(code).map { String(cString: $0) } ?? "error \(code)"
        return Entry(reason: ERR_GET_REASON(code), text: text, isOfLibSSL: ERR_GET_LIB(code) == ERR_LIB_SSL)
    }
}
