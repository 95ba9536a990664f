// The kernel modulo 43, in one group of eight lanes.
#define GROUPS 1
#define CONSTANTS_FILE "../../../Tests/ToyCurve/curve_43.h"
#include "toy_kernel.h"

extern const rg_toy_curve rg_toy_curve_43;
const rg_toy_curve rg_toy_curve_43 = CURVE("modulo 43");
