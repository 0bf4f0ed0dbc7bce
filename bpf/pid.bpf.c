/* SPDX-License-Identifier: MIT OR GPL-2.0-only */
#include "algorithms/pid.h"
#define CC_ALGORITHM pid
#include "include/cc_kernel.h"
