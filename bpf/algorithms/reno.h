/* SPDX-License-Identifier: MIT OR GPL-2.0-only */
/*
 * Reno: slow start, congestion avoidance and halving (RFC 5681), one halving per window of data (RFC 6582), growth by the
 * bytes acknowledged (RFC 3465), ECN marks as losses (RFC 3168). Loss detection and retransmission are the host's.
 */
#ifndef PACELINE_RENO_H
#define PACELINE_RENO_H

#include "../include/cc_abi.h"
#include "../include/cc_math.h"

#define RENO_FIELDS 1
/* Keeps cwnd * packet_bytes within 64 bits: 2^46 * 2^16. */
#define RENO_MAX_BYTES ((cc_u64)1 << 46)
#define RENO_MAX_PACKET_BYTES ((cc_u64)1 << 16)
/* A half in 2^-16. */
#define RENO_HALF ((cc_u64)1 << 15)
#define RENO_SECOND_NS 1000000000ull
/* An initial threshold of this many packets means none. */
#define RENO_NO_SSTHRESH_PACKETS 1000000000ull

struct reno_params {
	cc_u64 initial_window_packets; /* 0 = as the host starts */
	cc_u64 initial_ssthresh_packets;
	cc_u64 ecn_beta; /* in 2^-16 */
};

struct reno {
	cc_u64 cwnd_bytes;
	cc_u64 ssthresh_bytes;
	/* Growth owed, in bytes * cwnd: the fraction of a byte that integer division left over. */
	cc_u64 credit;
	cc_u64 packet_bytes;
	cc_u64 initial_window_bytes;
	cc_u64 srtt_ns;
	/* beta_ecn of RFC 8511, in 2^-16: what a mark leaves. */
	cc_u64 ecn_beta;
	/* A mark counts only if its packet was sent after the last reaction. */
	cc_u64 reacted_ns;
	/* What the last episode took, for reordering; 0 = nothing to restore. */
	cc_u64 prior_cwnd_bytes;
	cc_u64 prior_ssthresh_bytes;
	cc_u32 has_reacted;
	/* Fast recovery: from a loss episode's start until the host has repaired it, or a timeout. */
	cc_u32 in_fast_recovery;
};

static inline void reno_set_cwnd(struct reno *reno, cc_u64 bytes)
{
	reno->cwnd_bytes = cc_max(cc_min(bytes, RENO_MAX_BYTES), reno->packet_bytes);
}

static inline void reno_init(struct reno *reno, const struct cc_path *path, const struct reno_params *params)
{
	cc_u64 window = params->initial_window_packets ? params->initial_window_packets : path->initial_window_packets;

	reno->packet_bytes = cc_min(cc_max(path->packet_bytes, 1), RENO_MAX_PACKET_BYTES);
	reno->initial_window_bytes = cc_min(window, 1 << 24) * reno->packet_bytes;
	reno->ecn_beta = params->ecn_beta;
	reno->ssthresh_bytes = RENO_MAX_BYTES;
	if (params->initial_ssthresh_packets < RENO_NO_SSTHRESH_PACKETS)
		reno->ssthresh_bytes = cc_min(params->initial_ssthresh_packets * reno->packet_bytes, RENO_MAX_BYTES);
	reno_set_cwnd(reno, reno->initial_window_bytes);
}

/* RFC 5681 (4): half of what is in flight (or another fraction, RFC 8511), at least two packets. */
static inline cc_u64 reno_keep(const struct reno *reno, cc_u64 in_flight_bytes, cc_u64 beta)
{
	/* RFC 5681 §3.2: limited transmit may have put more than cwnd in flight; that excess does not count. */
	return cc_max((cc_min(in_flight_bytes, reno->cwnd_bytes) * beta) >> 16, 2 * reno->packet_bytes);
}

static inline void reno_reduce(struct reno *reno, cc_u64 now_ns, cc_u64 in_flight_bytes, cc_u64 beta)
{
	reno->prior_cwnd_bytes = reno->cwnd_bytes;
	reno->prior_ssthresh_bytes = reno->ssthresh_bytes;
	reno->ssthresh_bytes = reno_keep(reno, in_flight_bytes, beta);
	/*
	 * Deviation: cwnd = ssthresh at once, without the inflation by three and more packets of RFC 5681 §3.2: a host that
	 * counts what is in flight does not need it (RFC 6675).
	 */
	reno_set_cwnd(reno, cc_min(reno->ssthresh_bytes, reno->cwnd_bytes));
	reno->credit = 0;
	reno->reacted_ns = now_ns;
	reno->has_reacted = 1;
}

static inline void reno_on_loss(struct reno *reno, const struct cc_loss *loss)
{
	/* RFC 6582: once per window of data; the host says which loss opens a new episode. */
	if (!(loss->flags & CC_LOSS_EPISODE_START))
		return;
	reno_reduce(reno, loss->now_ns, loss->prior_in_flight_bytes, RENO_HALF);
	reno->in_fast_recovery = 1;
}

static inline void reno_grow(struct reno *reno, cc_u64 acked_bytes)
{
	cc_u64 acked = cc_min(acked_bytes, RENO_MAX_BYTES);

	if (reno->cwnd_bytes < reno->ssthresh_bytes) {
		/*
		 * RFC 5681 (2), RFC 3465 with no limit L per ACK. What exceeds ssthresh is left to avoidance.
		 */
		cc_u64 slow = cc_min(acked, reno->ssthresh_bytes - reno->cwnd_bytes);

		reno_set_cwnd(reno, reno->cwnd_bytes + slow);
		acked -= slow;
	}
	/* RFC 5681 (3): cwnd += packet * acked / cwnd, the remainder carried. At most the window counts (one packet). */
	acked = cc_min(acked, reno->cwnd_bytes);
	reno->credit += acked * reno->packet_bytes;
	{
		cc_u64 cwnd = reno->cwnd_bytes;
		cc_u64 growth = reno->credit / cwnd;

		reno->credit -= growth * cwnd;
		reno_set_cwnd(reno, cwnd + growth);
	}
}

static inline void reno_on_ack(struct reno *reno, const struct cc_ack *ack)
{
	reno->srtt_ns = ack->srtt_ns;
	if (!(ack->flags & CC_ACK_IN_RECOVERY))
		reno->in_fast_recovery = 0;
	/* RFC 3168 §6.1.2: a mark halves like a loss, once per window of data; RFC 8511 lets it take less. */
	if (ack->ce_packets && !reno->in_fast_recovery &&
	    (!reno->has_reacted || ack->sent_ns > reno->reacted_ns)) {
		reno_reduce(reno, ack->now_ns, ack->prior_in_flight_bytes, reno->ecn_beta);
		return;
	}
	if (reno->in_fast_recovery || !(ack->flags & CC_ACK_CWND_LIMITED))
		return;
	/* A duplicate may be the first sign of a loss (RFC 5681 §3.1); an ACK that reports a mark opens no window (RFC 3168). */
	if (!(ack->flags & CC_ACK_CUMULATIVE) || ack->ce_packets)
		return;
	reno_grow(reno, ack->acked_bytes);
}

static inline void reno_on_rto(struct reno *reno, const struct cc_timeout *timeout)
{
	/* RFC 5681 §3.1: ssthresh is lowered only by the first expiry. */
	if (timeout->consecutive <= 1) {
		reno->prior_cwnd_bytes = reno->cwnd_bytes;
		reno->prior_ssthresh_bytes = reno->ssthresh_bytes;
		reno->ssthresh_bytes = reno_keep(reno, timeout->in_flight_bytes, RENO_HALF);
	}
	/* RFC 5681 §3.1: the loss window is one packet. */
	reno_set_cwnd(reno, reno->packet_bytes);
	reno->credit = 0;
	reno->reacted_ns = timeout->now_ns;
	reno->has_reacted = 1;
	reno->in_fast_recovery = 0;
}

static inline void reno_on_spurious_loss(struct reno *reno, const struct cc_undo *undo)
{
	(void)undo;
	if (!reno->prior_cwnd_bytes)
		return;
	reno_set_cwnd(reno, cc_max(reno->cwnd_bytes, reno->prior_cwnd_bytes));
	reno->ssthresh_bytes = cc_max(reno->ssthresh_bytes, reno->prior_ssthresh_bytes);
	reno->prior_cwnd_bytes = 0;
	reno->in_fast_recovery = 0;
}

static inline void reno_on_resume(struct reno *reno, const struct cc_resume *resume)
{
	/*
	 * RFC 5681 §4.1: after more than one RTO of silence restart from the initial window. Deviation: the event does not
	 * say the RTO; the larger of 1 s and twice the smoothed RTT stands for it.
	 */
	cc_u64 rto_ns = cc_max(RENO_SECOND_NS, 2 * cc_min(reno->srtt_ns, CC_NONE / 2));

	if (resume->idle_ns > rto_ns)
		reno_set_cwnd(reno, cc_min(reno->cwnd_bytes, reno->initial_window_bytes));
}

static inline void reno_on_path_change(struct reno *reno, const struct cc_path *path)
{
	/* The window in bytes stays; only the step and the floor follow the packet size. */
	reno->packet_bytes = cc_min(cc_max(path->packet_bytes, 1), RENO_MAX_PACKET_BYTES);
	reno->credit = 0;
	reno_set_cwnd(reno, reno->cwnd_bytes);
}

static inline void reno_on_timer(struct reno *reno, cc_u64 now_ns)
{
	(void)reno;
	(void)now_ns;
}

static inline void reno_control(const struct reno *reno, struct cc_control *control)
{
	control->cwnd_bytes = reno->cwnd_bytes;
	control->pacing_bytes_per_s = CC_UNPACED;
	control->send_quantum_bytes = 0;
	control->next_timer_ns = CC_NEVER;
	control->timeout_ns = 0;
}

static inline void reno_observe(const struct reno *reno, cc_u64 *out)
{
	out[0] = reno->ssthresh_bytes < RENO_MAX_BYTES ? reno->ssthresh_bytes : CC_NONE;
}

#endif
