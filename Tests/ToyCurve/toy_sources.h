// Where the kernel's sources find a small curve: another field, other constants and other shapes. The including file
// defines GROUPS, and CONSTANTS_FILE with the curve's numbers.
#pragma once

#define PORTABLE_LANES 8
#define LANES_FILE "lanes/portable.h"
#define KNOWN_KEY_FORM 0
#define FIELD_FILE "../../../Tests/ToyCurve/toy_field.h"
#define SHAPES_FILE "../../../Tests/ToyCurve/toy_shapes.h"
#include "../../Sources/CKernels/p256/kernel_headers.h"
