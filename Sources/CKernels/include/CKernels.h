// Kernels for vector units, and in plain C. They allocate nothing, do no input or output, and keep no state.
#pragma once

#include "kernels.h"
#include "p256.h"
