// OpenSSL 3's libcrypto, as one system module.
//
// The one-block SHA-256 and the EC_KEY/ECDSA interfaces are marked deprecated
// since 3.0 in favour of EVP, which allocates and fetches on every call. They
// are supported through all of OpenSSL 3, and the hot path needs them.
#define OPENSSL_SUPPRESS_DEPRECATED 1
#include <openssl/bn.h>
#include <openssl/crypto.h>
#include <openssl/ec.h>
#include <openssl/ecdsa.h>
#include <openssl/err.h>
#include <openssl/evp.h>
#include <openssl/kdf.h>
#include <openssl/obj_mac.h>
#include <openssl/rand.h>
#include <openssl/sha.h>
#include <openssl/x509.h>
