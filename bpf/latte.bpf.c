/* SPDX-License-Identifier: MIT OR GPL-2.0-only */
#include "algorithms/latte.h"
#define CC_ALGORITHM latte
#include "include/cc_kernel.h"
