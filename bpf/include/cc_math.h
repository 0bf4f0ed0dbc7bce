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

#define CC_SECOND_NS 1000000000ull

/* bytes/s of `bytes` in `ns`; 0 when there is no time. Up to 8 GiB and 16 s, more of either counting as that. */
static inline cc_u64 cc_rate(cc_u64 bytes, cc_u64 ns)
{
	bytes = cc_min(bytes, (cc_u64)1 << 33);
	ns = cc_min(ns, (cc_u64)1 << 34);
	if (!ns)
		return 0;
	return bytes / ns * CC_SECOND_NS + bytes % ns * CC_SECOND_NS / ns;
}

/* Bytes that `rate` bytes/s, at most 2^40, makes in `ns`, at most 2^34: without a product of more than 64 bits. */
static inline cc_u64 cc_bytes(cc_u64 rate, cc_u64 ns)
{
	cc_u64 rate_giga = rate / CC_SECOND_NS, rate_rest = rate % CC_SECOND_NS;
	cc_u64 seconds = ns / CC_SECOND_NS, ns_rest = ns % CC_SECOND_NS;

	return rate * seconds + rate_giga * ns_rest + rate_rest * ns_rest / CC_SECOND_NS;
}

#endif
