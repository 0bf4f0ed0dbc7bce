/* SPDX-License-Identifier: MIT OR GPL-2.0-only */
#include "algorithms/reno.h"
#define CC_ALGORITHM reno
#include "include/cc_kernel.h"
