// The kernel modulo 1283, in two groups of eight lanes.
#define GROUPS 2
#define CONSTANTS_FILE "../../../Tests/ToyCurve/curve_1283.h"
#include "toy_kernel.h"

extern const rg_toy_curve rg_toy_curve_1283;
const rg_toy_curve rg_toy_curve_1283 = CURVE("modulo 1283");
