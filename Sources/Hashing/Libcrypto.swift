import COpenSSL

/// libcrypto as a whole.
package enum Libcrypto {
    /// Keeps libcrypto until the process has ended. Otherwise it frees what it has at the end of the process, and
    /// threads that still use it fail, or read memory that was freed.
    ///
    /// To be called before anything else uses libcrypto, because its first use decides. A program does it first of all.
    package static func stayUntilExit() {
        precondition(OPENSSL_init_crypto(UInt64(OPENSSL_INIT_NO_ATEXIT), nil) == 1, "libcrypto can't be used")
    }
}
