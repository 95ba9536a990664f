import CLibSSL
import Foundation
import Platform

/// libssl's socket BIO, except that writing to a connection that the peer has closed raises no SIGPIPE.
/// Where the kernel encrypts, libssl's own function writes; a service ignores that signal.
enum SocketMethod {
    /// Made once and never freed. Nothing writes to it after that.
    private nonisolated(unsafe) static let shared: OpaquePointer? = {
        guard let base = BIO_s_socket(), let method = BIO_meth_new(tls_socket_type(), "socket without SIGPIPE") else {
            return nil
        }
        let isSet =
            BIO_meth_set_read(method, BIO_meth_get_read(base)) == 1
            && BIO_meth_set_ctrl(method, BIO_meth_get_ctrl(base)) == 1
            && BIO_meth_set_create(method, BIO_meth_get_create(base)) == 1
            && BIO_meth_set_destroy(method, BIO_meth_get_destroy(base)) == 1
            && BIO_meth_set_puts(method, BIO_meth_get_puts(base)) == 1
            && BIO_meth_set_write(method, write) == 1
        guard isSet else {
            BIO_meth_free(method)
            return nil
        }
        return method
    }()

    private static let write: @convention(c) (OpaquePointer?, UnsafePointer<CChar>?, CInt) -> CInt = {
        bio, bytes, count in
        if tls_kernel_sends(bio) == 1, let write = BIO_meth_get_write(BIO_s_socket()) {
            return write(bio, bytes, count)
        }
        tls_clear_retry(bio)
        while true {
            let sent = Foundation.send(tls_get_descriptor(bio), bytes, Int(count), System.sendFlags)
            if sent >= 0 { return CInt(truncatingIfNeeded: sent) }
            if errno == EINTR { continue }
            if errno == EAGAIN || errno == EWOULDBLOCK { tls_set_retry_write(bio) }
            return -1
        }
    }

    /// Lets `ssl` read from and write to `descriptor`, which stays the caller's. Returns false when there is no memory.
    static func attach(_ ssl: OpaquePointer, to descriptor: CInt) -> Bool {
        guard let shared, let bio = BIO_new(shared) else { return false }
        tls_set_descriptor(bio, descriptor)
        // `ssl` owns `bio` from here on.
        SSL_set_bio(ssl, bio, bio)
        return true
    }
}
