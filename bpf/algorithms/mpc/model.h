/* SPDX-License-Identifier: MIT OR GPL-2.0-only */
/*
 * What `mpc` makes of what it has measured: tau and the price of its rate, the rate of departures, whether too much is lost.
 * Equation numbers are those of docs/mpc.md.
 */
#ifndef PACELINE_MPC_MODEL_H
#define PACELINE_MPC_MODEL_H

#include "state.h"

/*
 * (1) tau, the time in which the flow learns what it does, and (2) q_t, the queueing delay that its rate is worth:
 * a (rho / 4 Gbit/s)^-gamma (l_P / 25 ms)^delta, and below the knee in proportion to l_P.
 */
static inline void mpc_set_target(struct mpc *mpc)
{
	const struct mpc_params *p = &mpc->params;
	cc_u64 least_ns = cc_min(cc_time(p->least_packets * mpc->packet_bytes, mpc->rho), MPC_MAX_NS);
	cc_s64 log = (cc_s64)cc_log2(p->queue_ns);
	cc_s64 rate_log = (cc_s64)cc_log2(500000000) - (cc_s64)cc_log2(mpc->rho);
	cc_s64 rtt_log = (cc_s64)cc_log2(mpc->base_ns) - (cc_s64)cc_log2(25000000);
	cc_u64 queue_ns;

	mpc->tau_ns = mpc_clamp(mpc->base_ns + mpc_slow_queue_ns(mpc), least_ns, MPC_MAX_NS);
	/* Two packets per tau keep the measurement going. */
	mpc->least_rate = cc_max(cc_rate(2 * mpc->packet_bytes, mpc->tau_ns), 1);
	log += (rate_log * (cc_s64)p->rate_exponent + rtt_log * (cc_s64)p->rtt_exponent) >> MPC_PARAM_BITS;
	queue_ns = cc_min(cc_exp2(log > 0 ? (cc_u64)log : 0), MPC_MAX_NS);
	mpc->target_ns = cc_max(queue_ns * mpc_share(mpc->base_ns, mpc->base_ns + p->knee_ns) >> MPC_BITS, 1);
}

static inline const struct mpc_block *mpc_last_block(const struct mpc *mpc, cc_u64 back)
{
	return &mpc->blocks[(mpc->ended_blocks - 1 - back) & (MPC_BLOCKS - 1)];
}

/* How far back the first block is that is `window_ns` older than the last, or the oldest. */
CC_APART cc_u64 mpc_blocks_within(const struct mpc *mpc, cc_u64 window_ns)
{
	cc_u64 sent_ns, back;

	CC_PRESENT(mpc);
	sent_ns = mpc_last_block(mpc, 0)->sent_ns;
	for (back = 1; back < MPC_BLOCKS && back < mpc->ended_blocks; back++)
		if (mpc_last_block(mpc, back)->sent_ns + window_ns <= sent_ns)
			return back;
	return back - 1;
}

static inline const struct mpc_block *mpc_block_before(const struct mpc *mpc, cc_u64 window_ns)
{
	return mpc_last_block(mpc, mpc_blocks_within(mpc, window_ns));
}

/*
 * (3) The rate r_B at which packets leave: what was sent between two blocks and not lost, over the time in which it left. 0 if
 * that is less than `least_ns`.
 */
static inline cc_u64 mpc_departure_rate(const struct mpc_block *first, const struct mpc_block *last, cc_u64 least_ns)
{
	cc_u64 gone_ns = mpc_less(last->sent_ns + last->rtt_ns, first->sent_ns + first->rtt_ns);

	if (gone_ns <= least_ns)
		return 0;
	return cc_min(cc_rate(mpc_less(last->position, first->position), gone_ns), MPC_MAX_RATE);
}

/* (13) Far more is lost than chance takes: there is no more room, though there may be no queue. */
static inline int mpc_is_lossy(const struct mpc *mpc, const struct mpc_block *last)
{
	const struct mpc_block *first = mpc_block_before(mpc, mpc->tau_ns);
	cc_u64 lost = mpc_less(last->lost, first->lost);
	cc_u64 sent = lost + mpc_less(last->position, first->position);

	return lost > sent / MPC_LOSSY_PART + MPC_LOSSY_PACKETS * mpc->packet_bytes;
}

/* rho when the packet was sent that is acknowledged now. */
CC_APART cc_u64 mpc_rho_at(const struct mpc *mpc, cc_u64 sent_ns)
{
	cc_u64 back;

	CC_PRESENT(mpc);
	for (back = 0; back < MPC_BLOCKS && back < mpc->ended_blocks; back++)
		if (mpc_last_block(mpc, back)->ended_ns <= sent_ns)
			return mpc_last_block(mpc, back)->rho;
	return mpc->rho;
}

#endif
