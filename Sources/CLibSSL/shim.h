// OpenSSL 3's libssl, as one system module.
//
// Swift can't call macros with parameters. For each one that is needed there is a function of the same meaning.
//
// As in COpenSSL: what both modules declare must not be deprecated in one of them.
#define OPENSSL_SUPPRESS_DEPRECATED 1
#include <openssl/bio.h>
#include <openssl/err.h>
#include <openssl/pem.h>
#include <openssl/ssl.h>
#include <openssl/x509v3.h>

/// Allows the versions from `minimum` to TLS 1.3. Returns 1 on success.
static inline int tls_set_minimum_version(SSL_CTX *context, int minimum) {
    return SSL_CTX_set_min_proto_version(context, minimum) && SSL_CTX_set_max_proto_version(context, TLS1_3_VERSION);
}

/// A call of SSL_write may send a part and may be repeated from another address; an idle connection keeps no buffers.
/// One call of recv(2) may read several records.
static inline void tls_set_modes(SSL_CTX *context) {
    SSL_CTX_set_mode(
        context, SSL_MODE_ENABLE_PARTIAL_WRITE | SSL_MODE_ACCEPT_MOVING_WRITE_BUFFER | SSL_MODE_RELEASE_BUFFERS);
    SSL_CTX_set_read_ahead(context, 1);
}

/// No compression and no renegotiation; the kernel encrypts where it can and `uses_kernel` is set.
static inline void tls_set_options(SSL_CTX *context, int uses_kernel) {
    SSL_CTX_set_options(
        context, SSL_OP_NO_COMPRESSION | SSL_OP_NO_RENEGOTIATION | (uses_kernel ? SSL_OP_ENABLE_KTLS : 0));
}

/// The argument of the context's message callback for one connection.
static inline void tls_set_message_argument(SSL *ssl, void *argument) { SSL_set_msg_callback_arg(ssl, argument); }

static inline int tls_set_groups(SSL_CTX *context, const char *names) {
    return (int)SSL_CTX_set1_groups_list(context, names);
}

static inline void tls_set_session_cache_mode(SSL_CTX *context, long mode) {
    SSL_CTX_set_session_cache_mode(context, mode);
}

static inline void tls_set_certificates_max(SSL_CTX *context, long bytes) { SSL_CTX_set_max_cert_list(context, bytes); }

/// Forgets the certificates that are sent behind the own one. Returns 1 on success.
static inline int tls_clear_chain(SSL_CTX *context) { return (int)SSL_CTX_clear_chain_certs(context); }

/// Sends a certificate behind the own one. The context owns it when this returns 1.
static inline int tls_add_to_chain(SSL_CTX *context, X509 *certificate) {
    return (int)SSL_CTX_add0_chain_cert(context, certificate);
}

/// Sends `name` in the handshake. Returns 1 on success.
static inline int tls_set_sent_name(SSL *ssl, const char *name) { return (int)SSL_set_tlsext_host_name(ssl, name); }

static inline int tls_fatal_alert_of_no_protocol(void) { return SSL_AD_NO_APPLICATION_PROTOCOL; }

// MARK: Sockets

static inline int tls_socket_type(void) { return BIO_TYPE_SOCKET; }
static inline int tls_get_descriptor(BIO *bio) { return (int)BIO_get_fd(bio, NULL); }
static inline void tls_set_descriptor(BIO *bio, int descriptor) { BIO_set_fd(bio, descriptor, BIO_NOCLOSE); }
static inline int tls_kernel_sends(BIO *bio) { return BIO_get_ktls_send(bio) != 0; }
static inline void tls_clear_retry(BIO *bio) { BIO_clear_retry_flags(bio); }
static inline void tls_set_retry_write(BIO *bio) { BIO_set_retry_write(bio); }

// MARK: Names in certificates

static inline int tls_name_count(const GENERAL_NAMES *names) { return sk_GENERAL_NAME_num(names); }
static inline const GENERAL_NAME *tls_name(const GENERAL_NAMES *names, int index) {
    return sk_GENERAL_NAME_value(names, index);
}

static inline unsigned long tls_rfc2253_flags(void) { return XN_FLAG_RFC2253; }
