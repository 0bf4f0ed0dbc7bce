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

/* a + b, or `most` if that is smaller. Both addends are taken as at most `most`, which must not exceed 2^63. */
static inline cc_u64 cc_add_capped(cc_u64 a, cc_u64 b, cc_u64 most)
{
	return cc_min(cc_min(a, most) + cc_min(b, most), most);
}

#endif
