// Makes signatures, and libcrypto's outcomes of them, for check_kernels.c. It runs on the machine that compiles: other
// machines need no libcrypto.
//
//     make_cases COUNT SEED     COUNT random signatures; every other one is spoiled
//     make_cases --from-der     signatures from standard input, a line each: X9.63 point, signature in DER, message, in
//                               hexadecimal. A signature that is not the DER of two numbers of 256 bits is left out
//
// A line of the output has the point, r, s and the digest in hexadecimal, and "valid", "invalid" or "badkey".
#include <openssl/bn.h>
#include <openssl/ec.h>
#include <openssl/ecdsa.h>
#include <openssl/obj_mac.h>
#include <openssl/sha.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { NUMBER_BYTES = 32, POINT_BYTES_MAX = 65, LINE_BYTES_MAX = 1 << 16, KEYS = 64 };

typedef struct {
    uint8_t point[POINT_BYTES_MAX];
    size_t point_bytes;
    uint8_t r[NUMBER_BYTES], s[NUMBER_BYTES], digest[NUMBER_BYTES];
} signature_case;

static void require(int holds, const char *what) {
    if (holds) return;
    fprintf(stderr, "make_cases: %s\n", what);
    exit(2);
}

static const char *outcome_of(const signature_case *check) {
    EC_KEY *key = EC_KEY_new_by_curve_name(NID_X9_62_prime256v1);
    ECDSA_SIG *signature = ECDSA_SIG_new();
    require(key && signature, "libcrypto has no memory");
    const char *outcome = "badkey";
    if (EC_KEY_oct2key(key, check->point, check->point_bytes, NULL) == 1) {
        BIGNUM *r = BN_bin2bn(check->r, NUMBER_BYTES, NULL), *s = BN_bin2bn(check->s, NUMBER_BYTES, NULL);
        require(ECDSA_SIG_set0(signature, r, s) == 1, "libcrypto takes no numbers");
        outcome = ECDSA_do_verify(check->digest, NUMBER_BYTES, signature, key) == 1 ? "valid" : "invalid";
    }
    ECDSA_SIG_free(signature);
    EC_KEY_free(key);
    return outcome;
}

static void print_bytes(const uint8_t *bytes, size_t count) {
    for (size_t i = 0; i < count; i++) printf("%02x", bytes[i]);
    putchar(' ');
}

static void print_case(const signature_case *check) {
    print_bytes(check->point, check->point_bytes);
    print_bytes(check->r, NUMBER_BYTES);
    print_bytes(check->s, NUMBER_BYTES);
    print_bytes(check->digest, NUMBER_BYTES);
    puts(outcome_of(check));
}

// MARK: - Random signatures

static uint64_t state;

// The generator of Steele, Lea and Flood (SplitMix64).
static uint64_t next_random(void) {
    uint64_t z = state += 0x9e3779b97f4a7c15;
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9;
    z = (z ^ (z >> 27)) * 0x94d049bb133111eb;
    return z ^ (z >> 31);
}

static void flip_bit(uint8_t *bytes, size_t count) {
    const uint64_t bit = next_random() % (8 * count);
    bytes[bit / 8] ^= (uint8_t)(1 << bit % 8);
}

static void spoil(signature_case *check) {
    switch (next_random() % 8) {
    case 0:
        flip_bit(check->r, NUMBER_BYTES);
        break;
    case 1:
        flip_bit(check->s, NUMBER_BYTES);
        break;
    case 2:
        flip_bit(check->digest, NUMBER_BYTES);
        break;
    case 3:
        flip_bit(check->point + 1, NUMBER_BYTES);
        break;
    case 4:
        if (check->point_bytes == POINT_BYTES_MAX) flip_bit(check->point + 1 + NUMBER_BYTES, NUMBER_BYTES);
        break;
    case 5:
        memset(next_random() % 2 ? check->r : check->s, 0, NUMBER_BYTES);
        break;
    case 6:
        memset(next_random() % 2 ? check->r : check->s, 0xff, NUMBER_BYTES);
        break;
    case 7:
        if (check->point_bytes < POINT_BYTES_MAX) check->point[0] ^= 1;
        break;
    }
}

static void print_random_cases(unsigned long count) {
    EC_KEY *keys[KEYS];
    for (int i = 0; i < KEYS; i++) {
        keys[i] = EC_KEY_new_by_curve_name(NID_X9_62_prime256v1);
        require(keys[i] && EC_KEY_generate_key(keys[i]) == 1, "libcrypto makes no key");
    }
    for (unsigned long i = 0; i < count; i++) {
        EC_KEY *key = keys[next_random() % KEYS];
        signature_case check;
        for (int byte = 0; byte < NUMBER_BYTES; byte++) check.digest[byte] = (uint8_t)next_random();
        ECDSA_SIG *signature = ECDSA_do_sign(check.digest, NUMBER_BYTES, key);
        require(signature != NULL, "libcrypto makes no signature");
        const BIGNUM *r = ECDSA_SIG_get0_r(signature), *s = ECDSA_SIG_get0_s(signature);
        require(BN_bn2binpad(r, check.r, NUMBER_BYTES) == NUMBER_BYTES, "r is too long");
        require(BN_bn2binpad(s, check.s, NUMBER_BYTES) == NUMBER_BYTES, "s is too long");
        ECDSA_SIG_free(signature);
        const point_conversion_form_t form =
            next_random() % 3 == 0 ? POINT_CONVERSION_COMPRESSED : POINT_CONVERSION_UNCOMPRESSED;
        check.point_bytes = EC_POINT_point2oct(
            EC_KEY_get0_group(key), EC_KEY_get0_public_key(key), form, check.point, POINT_BYTES_MAX, NULL);
        require(check.point_bytes > 0, "libcrypto writes no point");
        if (i % 2 == 1) spoil(&check);
        print_case(&check);
    }
    for (int i = 0; i < KEYS; i++) EC_KEY_free(keys[i]);
}

// MARK: - Signatures in DER

// The bytes of a hexadecimal field; -1 when it is none or too long.
static long read_field(char **rest, uint8_t *bytes, size_t most) {
    while (**rest == ' ') (*rest)++;
    long count = 0;
    unsigned byte;
    for (; sscanf(*rest, "%2x", &byte) == 1 && **rest != ' '; *rest += 2) {
        if ((size_t)count == most) return -1;
        bytes[count++] = (uint8_t)byte;
    }
    return count;
}

static int read_der(const uint8_t *bytes, size_t count, signature_case *check) {
    const unsigned char *next = bytes;
    ECDSA_SIG *signature = d2i_ECDSA_SIG(NULL, &next, (long)count);
    if (!signature) return 0;
    unsigned char *encoded = NULL;
    const int length = i2d_ECDSA_SIG(signature, &encoded);
    const BIGNUM *r = ECDSA_SIG_get0_r(signature), *s = ECDSA_SIG_get0_s(signature);
    const int is_read = length == (int)count && memcmp(encoded, bytes, count) == 0 && !BN_is_negative(r) &&
        !BN_is_negative(s) && BN_bn2binpad(r, check->r, NUMBER_BYTES) == NUMBER_BYTES &&
        BN_bn2binpad(s, check->s, NUMBER_BYTES) == NUMBER_BYTES;
    OPENSSL_free(encoded);
    ECDSA_SIG_free(signature);
    return is_read;
}

static void print_cases_from_der(void) {
    static char line[LINE_BYTES_MAX];
    static uint8_t der[LINE_BYTES_MAX], message[LINE_BYTES_MAX];
    while (fgets(line, sizeof line, stdin)) {
        line[strcspn(line, "\n")] = 0;
        char *rest = line;
        signature_case check;
        const long point_bytes = read_field(&rest, check.point, POINT_BYTES_MAX);
        const long der_bytes = read_field(&rest, der, sizeof der);
        // An empty message is the empty rest of a line.
        const long message_bytes = read_field(&rest, message, sizeof message);
        require(point_bytes > 0 && der_bytes >= 0 && message_bytes >= 0, "a line is not in hexadecimal");
        check.point_bytes = (size_t)point_bytes;
        SHA256(message, (size_t)message_bytes, check.digest);
        if (read_der(der, (size_t)der_bytes, &check)) print_case(&check);
    }
}

int main(int count, char **words) {
    if (count == 2 && strcmp(words[1], "--from-der") == 0) {
        print_cases_from_der();
    } else {
        require(count == 3, "usage: make_cases COUNT SEED | make_cases --from-der");
        state = strtoull(words[2], NULL, 10);
        print_random_cases(strtoul(words[1], NULL, 10));
    }
    return fflush(stdout) == 0 ? 0 : 2;
}
