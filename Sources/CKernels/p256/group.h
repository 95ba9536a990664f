// The group of P-256: points, their doubling and addition, odd multiples, and tables of points.
#pragma once

#include "addition.h"
#include "chain.h"
#include "doubling.h"
#include "point.h"
#include "rows.h"
