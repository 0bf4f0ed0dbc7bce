/* SPDX-License-Identifier: MIT OR GPL-2.0-only */
#include "algorithms/mpc.h"
#define CC_ALGORITHM mpc
/* At its cap a flow must not take its own restraint for the path's. */
#define CC_SET_CAP(mpc, params, bytes_per_s) mpc_set_cap(mpc, params, bytes_per_s)
#include "include/cc_kernel.h"
