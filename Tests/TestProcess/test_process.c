#include "test_process.h"

#include <openssl/crypto.h>
#include <stdlib.h>

// Keeps libcrypto until the process of tests has ended. Services that a test has left behind still have threads then,
// and some of them use libcrypto. Otherwise libcrypto would free what they use, and the process would end by SIGSEGV
// after all of its tests have passed. Programs do the same first of all (`Libcrypto.stayUntilExit`).
//
// A test in a process of its own (SWT_EXIT_TEST_ID) decides by itself: some give libcrypto their own memory, which
// must be before its first use.
__attribute__((constructor)) static void keep_libcrypto(void) {
    if (getenv("SWT_EXIT_TEST_ID") == NULL) {
        if (OPENSSL_init_crypto(OPENSSL_INIT_NO_ATEXIT, NULL) != 1) {
            abort();
        }
    }
}
