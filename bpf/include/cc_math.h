/* SPDX-License-Identifier: MIT OR GPL-2.0-only */
/*
 * Unsigned 64-bit arithmetic for algorithms that also run as BPF.
 */
#ifndef PACELINE_CC_MATH_H
#define PACELINE_CC_MATH_H

#include "cc_abi.h"

static inline cc_u64 cc_min(cc_u64 a, cc_u64 b)
{
	return a < b ? a : b;
}

static inline cc_u64 cc_max(cc_u64 a, cc_u64 b)
{
	return a > b ? a : b;
}

#endif
