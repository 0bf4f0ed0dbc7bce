/* SPDX-License-Identifier: MIT OR GPL-2.0-only */
/*
 * What Latte and its siblings of the CS 244 contest know of the path: smallest RTT, largest delivery rate, RTT gradient (Kumar 2017,
 * section 4.1, and the released code, whose steps these are). ACKs in. The siblings in Rust use the same functions
 * (crates/cc/src/algorithms/path_model.rs).
 */
#ifndef PACELINE_LATTE_PATH_H
#define PACELINE_LATTE_PATH_H

#include "../../include/cc_abi.h"
#include "../../include/cc_filter.h"
#include "../../include/cc_math.h"

/* Rates in packets/s, windows and parameters have 16 bits of fraction, shares and the gradient 28. */
#define LATTE_BITS 16
#define LATTE_ONE ((cc_u64)1 << LATTE_BITS)
#define LATTE_FINE_BITS 28
#define LATTE_FINE_ONE ((cc_u64)1 << LATTE_FINE_BITS)
/* Limits that keep products within 64 bits: 2^31 packets/s, 17 s, 2^30 packets. */
#define LATTE_MAX_RATE ((cc_u64)1 << 47)
#define LATTE_MAX_NS ((cc_u64)1 << 34)
#define LATTE_MAX_WINDOW ((cc_u64)1 << 46)
#define LATTE_MAX_GRADIENT ((cc_u64)1 << 44)

#define LATTE_MS_NS 1000000ull
/* Deliveries are remembered for so long, one entry per millisecond. */
#define LATTE_HISTORY_NS (15000 * LATTE_MS_NS)
/*
 * Deviation: at most so many, the newest; of RTTs longer than that, a second if every millisecond has an ACK, the rate is that of
 * this time. A power of two: all of a flow's state must stay below the 20 KB that Linux before 6.7 grants a socket.
 */
#define LATTE_HISTORY 1024u
/* Times in the history are in units of 16 ns, modulo 2^32: 68 s. */
#define LATTE_TIME_BITS 4

struct latte_path_settings {
	cc_u64 bandwidth_window_ns; /* W_B */
	cc_u64 min_rtt_window_ns;   /* W_R; with the next one, before the first ACK */
	cc_u64 min_rtt_windows;     /* W_R in RTT minima, from the first ACK on; 0 = as it was */
	cc_u64 gradient_weight;     /* of a new sample in the gradient's mean, alpha */
};

/* So many packets had been delivered by this time. */
struct latte_delivery {
	cc_u32 time;
	cc_u32 delivered;
};

struct latte_path {
	struct latte_path_settings settings;
	cc_u64 min_rtt_ns;
	cc_u64 previous_rtt_ns;
	/* g, with 28 bits. */
	cc_s64 gradient;
	/* S and B, with 16 bits. */
	cc_u64 smoothed;
	cc_u64 bandwidth;
	cc_u64 delivered;
	/* The newest delivery that the history has lost; at first the flow's beginning. */
	cc_u64 lost_ns;
	cc_u64 lost_delivered;
	/* When the newest entry was made. */
	cc_u64 newest_ns;
	cc_u32 first;
	cc_u32 count;
	struct latte_delivery history[LATTE_HISTORY];
	struct cc_largest bandwidths;
	/* Of LATTE_MAX_NS less the RTT: the smallest. */
	struct cc_largest rtts;
};

static inline cc_u64 latte_less(cc_u64 a, cc_u64 b)
{
	return a > b ? a - b : 0;
}

/* `value` times a number with `bits` of fraction. The product is within 64 bits. */
static inline cc_u64 latte_times(cc_u64 value, cc_u64 factor, int bits)
{
	return (value >> bits) * factor + ((value & (((cc_u64)1 << bits) - 1)) * factor >> bits);
}

/* now - then of numbers modulo 2^32. */
static inline cc_u32 latte_since(cc_u32 now, cc_u32 then)
{
	return now - then;
}

static inline cc_u32 latte_time(cc_u64 ns)
{
	return (cc_u32)(ns >> LATTE_TIME_BITS);
}

/* How many entries, from the first on, were made `age` before `now` or earlier. */
CC_APART cc_u64 latte_older(const struct latte_path *path, cc_u32 now, cc_u32 age)
{
	cc_u64 older = 0, step;

	CC_PRESENT(path);
	for (step = LATTE_HISTORY; step; step /= 2)
		older += step & ~cc_below(path->count, older + step) &
			 ~cc_below(latte_since(now, path->history[(path->first + older + step - 1) & (LATTE_HISTORY - 1)].time), age);
	return older;
}

/* Forgets the first `entries`, not all there are. */
static inline void latte_forget(struct latte_path *path, cc_u64 now_ns, cc_u64 entries)
{
	const struct latte_delivery *last = &path->history[(path->first + entries - 1) & (LATTE_HISTORY - 1)];
	cc_u64 age_ns = (cc_u64)latte_since(latte_time(now_ns), last->time) << LATTE_TIME_BITS;
	cc_u32 since = latte_since((cc_u32)path->delivered, last->delivered);

	path->lost_ns = latte_less(now_ns, age_ns);
	path->lost_delivered = latte_less(path->delivered, since);
	path->first = (cc_u32)(path->first + entries) & (LATTE_HISTORY - 1);
	path->count -= (cc_u32)cc_min(entries, path->count);
}

/* Step 3: remembers what is delivered now, forgets what is too old. */
static inline void latte_remember(struct latte_path *path, cc_u64 now_ns, cc_u32 acked_packets)
{
	struct latte_delivery *entry;

	if (path->count && now_ns - cc_min(path->newest_ns, now_ns) > LATTE_HISTORY_NS) {
		path->lost_ns = path->newest_ns;
		path->lost_delivered = path->delivered;
		path->count = 0;
	}
	path->delivered += acked_packets;
	/* Of one millisecond the latest counts. */
	if (path->count && now_ns / LATTE_MS_NS == path->newest_ns / LATTE_MS_NS)
		path->count--;
	else if (path->count >= LATTE_HISTORY)
		latte_forget(path, now_ns, 1);
	entry = &path->history[(path->first + path->count) & (LATTE_HISTORY - 1)];
	entry->time = latte_time(now_ns);
	entry->delivered = (cc_u32)path->delivered;
	path->count++;
	path->newest_ns = now_ns;
	if (latte_since(entry->time, path->history[path->first & (LATTE_HISTORY - 1)].time) >
	    (cc_u32)(LATTE_HISTORY_NS >> LATTE_TIME_BITS))
		latte_forget(path, now_ns, latte_older(path, entry->time, (cc_u32)(LATTE_HISTORY_NS >> LATTE_TIME_BITS) + 1));
}

/* Step 3: delivery rate since the packet was sent that is acknowledged now. CC_NONE if there is no time between. */
static inline cc_u64 latte_rate_since(const struct latte_path *path, cc_u64 now_ns, cc_u64 rtt_ns)
{
	cc_u32 now = latte_time(now_ns), age = latte_since(now, latte_time(latte_less(now_ns, rtt_ns)));
	cc_u64 older = latte_older(path, now, age);
	const struct latte_delivery *then;
	cc_u64 elapsed_ns, packets;

	if (older) {
		then = &path->history[(path->first + older - 1) & (LATTE_HISTORY - 1)];
		elapsed_ns = (cc_u64)latte_since(now, then->time) << LATTE_TIME_BITS;
		packets = latte_since((cc_u32)path->delivered, then->delivered);
	} else {
		elapsed_ns = now_ns - cc_min(path->lost_ns, now_ns);
		packets = path->delivered - cc_min(path->lost_delivered, path->delivered);
	}
	if (!elapsed_ns)
		return CC_NONE;
	return cc_min(cc_rate(cc_min(packets, (cc_u64)1 << 40) << LATTE_BITS, elapsed_ns), LATTE_MAX_RATE);
}

/* The contest entry's start: 10 packets/ms and 500 ms are assumed until the first ACK. */
static inline void latte_path_init(struct latte_path *path, cc_u64 now_ns, const struct latte_path_settings *settings)
{
	path->settings = *settings;
	path->min_rtt_ns = 500 * LATTE_MS_NS;
	path->previous_rtt_ns = 100 * LATTE_MS_NS;
	path->smoothed = 10000 * LATTE_ONE;
	path->bandwidth = 10000 * LATTE_ONE;
	path->lost_ns = now_ns;
	path->bandwidths.window = settings->bandwidth_window_ns;
	path->rtts.window = settings->min_rtt_window_ns;
}

/* Step 1, with the previous minimum. */
static inline void latte_see_gradient(struct latte_path *path, cc_u64 rtt_ns)
{
	int rises = rtt_ns > path->previous_rtt_ns;
	cc_u64 change_ns = rises ? rtt_ns - path->previous_rtt_ns : path->previous_rtt_ns - rtt_ns;
	cc_s64 change = (cc_s64)cc_min((change_ns << LATTE_FINE_BITS) / cc_max(path->min_rtt_ns, 1), LATTE_MAX_GRADIENT);
	cc_s64 weight = (cc_s64)cc_min(path->settings.gradient_weight, LATTE_ONE);

	path->gradient = (path->gradient * ((cc_s64)LATTE_ONE - weight) + (rises ? change : -change) * weight) >> LATTE_BITS;
	path->previous_rtt_ns = rtt_ns;
}

/* Steps 1 to 3 for an ACK. Returns its RTT in ns, 0 when it has none: an ambiguous one teaches nothing. */
static inline cc_u64 latte_path_on_ack(struct latte_path *path, const struct cc_ack *ack)
{
	cc_u64 rtt_ns = cc_min(ack->rtt_ns, LATTE_MAX_NS), rate;

	latte_remember(path, ack->now_ns, ack->acked_packets);
	if (!rtt_ns)
		return 0;
	latte_see_gradient(path, rtt_ns);
	/* Step 2. */
	path->min_rtt_ns = LATTE_MAX_NS - cc_min(cc_largest_update(&path->rtts, ack->now_ns, LATTE_MAX_NS - rtt_ns), LATTE_MAX_NS);
	if (path->settings.min_rtt_windows)
		path->rtts.window = latte_times(path->min_rtt_ns, path->settings.min_rtt_windows, LATTE_BITS);
	/* Step 3. */
	rate = latte_rate_since(path, ack->now_ns, rtt_ns);
	if (rate != CC_NONE) {
		path->smoothed = (3 * rate + 7 * path->smoothed) / 10;
		path->bandwidth = cc_largest_update(&path->bandwidths, ack->now_ns, rate);
	}
	return rtt_ns;
}

/* Bandwidth-delay product B minRTT in packets, with 16 bits. */
static inline cc_u64 latte_bdp(const struct latte_path *path)
{
	return cc_min(cc_bytes(path->bandwidth, path->min_rtt_ns), LATTE_MAX_WINDOW);
}

#endif
