#include "libcrypto_start.h"

#include <openssl/crypto.h>

static int stays;

// Before `main`, because the first use of libcrypto decides whether it is cleaned up at exit.
__attribute__((constructor)) static void start(void) { stays = OPENSSL_init_crypto(OPENSSL_INIT_NO_ATEXIT, NULL); }

int libcrypto_stays(void) { return stays; }
