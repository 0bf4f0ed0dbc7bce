/* SPDX-License-Identifier: MIT OR GPL-2.0-only */
/*
 * The largest value of the last `window` of time; for the smallest, store what is left to a bound. Values and times are below 2^63.
 *
 * A queue of candidates in an array, each larger than all that follow it. To bound it, a sample no larger than the newest candidate
 * and less than window / (CC_KEPT - 1) younger is not kept: the window is exact for samples wider apart, and at most that much
 * short otherwise.
 */
#ifndef PACELINE_CC_FILTER_H
#define PACELINE_CC_FILTER_H

#include "cc_abi.h"
#include "cc_math.h"

/* A power of two; a socket in the kernel has not room for more. */
#ifndef CC_KEPT
#define CC_KEPT 128u
#endif

struct cc_kept {
	cc_u64 at;
	cc_u64 value;
};

/* Zeroed, but for its window, it is empty. */
struct cc_largest {
	cc_u64 window;
	cc_u32 first;
	cc_u32 count;
	struct cc_kept kept[CC_KEPT];
};

static inline const struct cc_kept *cc_kept_at(const struct cc_largest *largest, cc_u64 index)
{
	return &largest->kept[(largest->first + index) & (CC_KEPT - 1)];
}

/* How many candidates, from the first on, are older than the window. One exactly as old still counts. */
CC_APART cc_u64 cc_largest_expired(const struct cc_largest *largest, cc_u64 at)
{
	cc_u64 expired = 0, step;

	CC_PRESENT(largest);
	for (step = CC_KEPT; step; step /= 2)
		expired += step & ~cc_below(largest->count, expired + step) &
			   cc_below(largest->window, at - cc_kept_at(largest, expired + step - 1)->at);
	return expired;
}

/* How many candidates, from the first on, are larger than `value`. */
CC_APART cc_u64 cc_largest_above(const struct cc_largest *largest, cc_u64 value)
{
	cc_u64 above = 0, step;

	CC_PRESENT(largest);
	for (step = CC_KEPT; step; step /= 2)
		above += step & ~cc_below(largest->count, above + step) &
			 cc_below(value, cc_kept_at(largest, above + step - 1)->value);
	return above;
}

/* Adds `value` as seen `at`, never before the one added last. Returns the largest. */
static inline cc_u64 cc_largest_update(struct cc_largest *largest, cc_u64 at, cc_u64 value)
{
	struct cc_kept *slot;
	cc_u64 expired, since_ns;

	if (largest->count && at - cc_min(cc_kept_at(largest, 0)->at, at) > largest->window) {
		expired = cc_largest_expired(largest, at);
		largest->first = (cc_u32)(largest->first + expired) & (CC_KEPT - 1);
		largest->count -= (cc_u32)cc_min(expired, largest->count);
	}
	if (largest->count && cc_kept_at(largest, largest->count - 1)->value <= value)
		largest->count = (cc_u32)cc_largest_above(largest, value);
	if (largest->count) {
		since_ns = at - cc_min(cc_kept_at(largest, largest->count - 1)->at, at);
		/* It is full only right after the window was widened. */
		if (!since_ns || since_ns < largest->window / (CC_KEPT - 1) || largest->count >= CC_KEPT)
			return cc_kept_at(largest, 0)->value;
	}
	slot = &largest->kept[(largest->first + largest->count) & (CC_KEPT - 1)];
	slot->at = at;
	slot->value = value;
	largest->count++;
	return cc_kept_at(largest, 0)->value;
}

#endif
