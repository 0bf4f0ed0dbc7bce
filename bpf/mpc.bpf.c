/* SPDX-License-Identifier: MIT OR GPL-2.0-only */
#include "algorithms/mpc.h"
#define CC_ALGORITHM mpc
#include "include/cc_kernel.h"
