// What every mutant of the P-256 kernel begins with. Then it includes the kernel's private headers from the bottom up,
// puts its substitution between two of them, and ends with end.h. Mutants are compiled for any processor: the self-test
// that refuses them does not depend on how their vectors are computed.
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define PORTABLE_LANES 8
#define LANES_FILE "lanes/portable.h"
#define GROUPS 1
#define KNOWN_KEY_FORM 0
