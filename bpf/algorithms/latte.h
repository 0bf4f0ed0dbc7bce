/* SPDX-License-Identifier: MIT OR GPL-2.0-only */
/*
 * Latte (CS 244 congestion-control contest, Kumar 2017): window = lambda * bandwidth * min RTT, scaled down by min RTT / RTT, and a
 * pacing gap of gamma / rate. The steps are those of the released code, per ACK.
 *
 * The window is computed from scratch each time, so nothing has to be decided when the application limits sending: only the bandwidth
 * estimate shrinks. A datagram algorithm: losses are not seen, and the silence timer sends a probe without changing the window.
 */
#ifndef PACELINE_LATTE_H
#define PACELINE_LATTE_H

#include "latte/path.h"

#define LATTE_FIELDS 4

/* Window before the first ACK, and the least: three packets keep ACKs coming. */
#define LATTE_INITIAL_WINDOW (50 * LATTE_ONE)
#define LATTE_MIN_WINDOW (3 * LATTE_ONE)
/* Window of the RTT minimum before the first ACK; afterwards `min_rtt_window` times the minimum. */
#define LATTE_FIRST_MIN_RTT_WINDOW_NS (10000 * LATTE_MS_NS)
/* Weight of a new sample in the gradient's mean: 0.7. A gradient above 0.1 cuts the window. */
#define LATTE_GRADIENT_WEIGHT (LATTE_ONE * 7 / 10)
#define LATTE_GRADIENT_THRESHOLD ((cc_s64)(LATTE_FINE_ONE / 10))
/* 8 Pbit/s. */
#define LATTE_MAX_PACING ((cc_u64)1 << 50)

struct latte_params {
	cc_u64 lambda_is_fixed;
	cc_u64 lambda;              /* if fixed */
	cc_u64 gamma;               /* pacing gap, in packets' times */
	cc_u64 paces_at_bandwidth;  /* always; else at the mean, if that is not far below */
	cc_u64 gradient_cut;
	cc_u64 bandwidth_window_ns; /* W_B */
	cc_u64 min_rtt_window;      /* W_R, in RTT minima */
	cc_u64 timeout;             /* in RTT minima */
};

struct latte {
	struct latte_params params;
	cc_u64 packet_bytes;
	/* w in packets and lambda of the last ACK (0 = none yet), with 16 bits. */
	cc_u64 window;
	cc_u64 lambda;
	struct latte_path path;
};

static inline void latte_on_path_change(struct latte *latte, const struct cc_path *path)
{
	latte->packet_bytes = cc_min(cc_max(path->packet_bytes, 1), 1 << 16);
}

static inline void latte_init(struct latte *latte, const struct cc_path *path, const struct latte_params *params)
{
	struct latte_path_settings settings = {
		.bandwidth_window_ns = params->bandwidth_window_ns,
		.min_rtt_window_ns = LATTE_FIRST_MIN_RTT_WINDOW_NS,
		.min_rtt_windows = params->min_rtt_window,
		.gradient_weight = LATTE_GRADIENT_WEIGHT,
	};

	latte->params = *params;
	latte->window = LATTE_INITIAL_WINDOW;
	latte_on_path_change(latte, path);
	latte_path_init(&latte->path, path->now_ns, &settings);
}

/* Step 4: lambda follows the old window. */
static inline cc_u64 latte_next_lambda(const struct latte *latte)
{
	if (latte->params.lambda_is_fixed)
		return latte->params.lambda;
	if (latte->window <= 10 * LATTE_ONE)
		return 2 * LATTE_ONE;
	return (LATTE_ONE * 16 + ((cc_u64)40 << 2 * LATTE_BITS) / latte->window) / 10;
}

static inline void latte_on_ack(struct latte *latte, const struct cc_ack *ack)
{
	const struct latte_path *path = &latte->path;
	cc_u64 rtt_ns = latte_path_on_ack(&latte->path, ack);
	cc_u64 window;

	if (!rtt_ns)
		return;
	latte->lambda = latte_next_lambda(latte);
	window = cc_min(latte_times(latte_bdp(path), latte->lambda, LATTE_BITS), LATTE_MAX_WINDOW);
	if (rtt_ns > path->min_rtt_ns)
		window = latte_times(window, (path->min_rtt_ns << LATTE_FINE_BITS) / rtt_ns, LATTE_FINE_BITS);
	if (latte->params.gradient_cut && path->gradient > LATTE_GRADIENT_THRESHOLD)
		window = latte_times(window, latte_less(LATTE_FINE_ONE, (cc_u64)path->gradient), LATTE_FINE_BITS);
	latte->window = cc_max(window, LATTE_MIN_WINDOW);
}

static inline void latte_on_loss(struct latte *latte, const struct cc_loss *loss)
{
	(void)latte;
	(void)loss;
}

static inline void latte_on_rto(struct latte *latte, const struct cc_timeout *timeout)
{
	(void)latte;
	(void)timeout;
}

static inline void latte_on_spurious_loss(struct latte *latte, const struct cc_undo *undo)
{
	(void)latte;
	(void)undo;
}

static inline void latte_on_resume(struct latte *latte, const struct cc_resume *resume)
{
	(void)latte;
	(void)resume;
}

static inline void latte_on_timer(struct latte *latte, cc_u64 now_ns)
{
	(void)latte;
	(void)now_ns;
}

static inline void latte_control(const struct latte *latte, struct cc_control *control)
{
	const struct latte_path *path = &latte->path;
	/* Step 5: the mean rate, unless it is below 0.8 of the largest. */
	cc_u64 rate = latte->params.paces_at_bandwidth || 5 * path->smoothed < 4 * path->bandwidth ? path->bandwidth : path->smoothed;
	/* Step 6. */
	cc_u64 timeout_ms = latte_times(path->min_rtt_ns, latte->params.timeout, LATTE_BITS) / LATTE_MS_NS;

	control->cwnd_bytes = (latte->window >> LATTE_BITS) * latte->packet_bytes;
	/* Deviation: the contest's sender truncates the gap to whole microseconds. */
	control->pacing_bytes_per_s = cc_max(cc_min(latte->packet_bytes * rate / cc_max(latte->params.gamma, 1), LATTE_MAX_PACING), 1);
	control->send_quantum_bytes = 0;
	control->next_timer_ns = CC_NEVER;
	control->timeout_ns = cc_max(timeout_ms, 1) * LATTE_MS_NS;
}

static inline void latte_observe(const struct latte *latte, cc_u64 *out)
{
	const struct latte_path *path = &latte->path;

	out[0] = path->bandwidth >> LATTE_BITS;
	out[1] = path->min_rtt_ns / 1000;
	out[2] = path->gradient > 0 ? ((cc_u64)path->gradient * 1000 + LATTE_FINE_ONE / 2) >> LATTE_FINE_BITS : 0;
	out[3] = latte->lambda ? (latte->lambda * 1000 + LATTE_ONE / 2) >> LATTE_BITS : CC_NONE;
}

#endif
