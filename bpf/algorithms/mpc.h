/* SPDX-License-Identifier: MIT OR GPL-2.0-only */
/*
 * Model-predictive control of the queueing delay, Paceline's own law. docs/mpc.md derives it and shows how far it goes; the
 * equation numbers here are those of that page.
 *
 * A flow keeps a nominal rate rho, its estimate of its own share. Around it the rate sent follows the queue that packets sent
 * now will meet (4), (5); rho follows the rate at which packets leave while there is a queue (3), bent by a price of rate in
 * queueing delay (2) that lets flows of one bottleneck agree on equal shares (6).
 */
#ifndef PACELINE_MPC_H
#define PACELINE_MPC_H

#include "mpc/state.h"

/* ------------------------------------------------------------------------------------------------------------ the model */

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

/*
 * The same, and 0 as well if the application had nothing to send in between: what leaves is then what it makes, and no share of C.
 * Without a branch, for the verifier.
 */
static inline cc_u64 mpc_share_rate(const struct mpc *mpc, const struct mpc_block *first, const struct mpc_block *last, cc_u64 least_ns)
{
	return mpc_departure_rate(first, last, least_ns) & ~cc_below(first->sent_ns, mpc->limited_ns);
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

/* ----------------------------------------------------------------------------------------------------------- the drains */

/* The next drain is due `cycle_ns` after `began_ns`, or as many times that as are over. */
static inline void mpc_begin_cycle(struct mpc *mpc, cc_u64 began_ns, cc_u64 cycle_ns, cc_u64 now_ns)
{
	mpc->cycle_began_ns = began_ns;
	mpc->next_drain_ns = began_ns + cycle_ns;
	if (mpc->next_drain_ns < now_ns)
		mpc->next_drain_ns += ((now_ns - mpc->next_drain_ns) / cc_max(cycle_ns, 1) + 1) * cycle_ns;
}

/* How long a drain sends a quarter of rho: until the queue `queue_ns` is gone with some margin, and a packet. */
static inline cc_u64 mpc_drain_ns(const struct mpc *mpc, cc_u64 queue_ns)
{
	cc_u64 wanted_ns = queue_ns + mpc_of(queue_ns, mpc->params.drain_margin) + mpc_packet_ns(mpc);

	return wanted_ns * 4 / (4 - MPC_DRAIN_QUARTERS);
}

/* Far more queue than wanted: the capacity has fallen, or another flow has come. */
static inline int mpc_is_overloaded(const struct mpc *mpc, cc_u64 queue_ns)
{
	return queue_ns > mpc->target_ns + mpc->tau_ns / 10;
}

/*
 * (9) Drains the queue for a moment, and sends later what was not sent. Only if it has not been empty of itself, and is not being
 * emptied anyway.
 */
CC_SELDOM void mpc_begin_drain(struct mpc *mpc, cc_u64 now_ns)
{
	cc_u64 drain_ns, refill_ns;

	mpc_begin_cycle(mpc, now_ns, mpc->cycle_ns, now_ns);
	if (mpc->emptied_ns + mpc->cycle_ns / 2 >= now_ns || mpc->rho >= mpc->params.cap - mpc->params.cap / 50 ||
	    mpc_is_overloaded(mpc, mpc->queue_ns))
		return;
	drain_ns = cc_min(mpc_drain_ns(mpc, mpc->queue_ns) * mpc->depth >> MPC_BITS, mpc->tau_ns);
	/* A deep drain is made up for in full, a plain one but for its margin. */
	refill_ns = mpc->depth > MPC_ONE ? drain_ns : mpc->queue_ns * 4 / (MPC_REFILL_QUARTERS - 4);
	mpc->state = MPC_DRAIN;
	mpc->drain_ns = now_ns;
	mpc->refill_ns = now_ns + drain_ns;
	mpc->drain_end_ns = mpc->refill_ns + refill_ns;
	mpc->drain_queue_ns = mpc->queue_ns;
	mpc->drain_rtt_ns = CC_NONE;
}

static inline int mpc_sent_in_drain(const struct mpc *mpc, cc_u64 sent_ns)
{
	return mpc->drain_ns && sent_ns >= mpc->drain_ns && sent_ns < mpc->drain_end_ns;
}

/* The packets of the last drain are back: was it deep enough, and what is l_P? */
CC_SELDOM void mpc_judge_drain(struct mpc *mpc)
{
	cc_u64 least_ns = CC_NONE;
	cc_u32 i;

	if (mpc->drain_rtt_ns > mpc->base_ns + mpc->drain_queue_ns / 4)
		mpc->depth = cc_min(mpc->depth * 3 / 2, MPC_MAX_DEPTH);
	else
		mpc->depth = cc_max(mpc->depth * 2 / 3, MPC_ONE);
	mpc->drain_rtts[mpc->drains++ & (MPC_DRAINS - 1)] = mpc->cycle_rtt_ns;
	for (i = 0; i < MPC_DRAINS && i < mpc->drains; i++)
		least_ns = cc_min(least_ns, mpc->drain_rtts[i]);
	/* It rises only by what eight drains have seen: the path has become longer. */
	if (mpc->drains >= MPC_DRAINS && least_ns != CC_NONE && least_ns > mpc->base_ns)
		mpc->base_ns = least_ns;
	mpc->cycle_rtt_ns = CC_NONE;
	mpc->cycle_ns = mpc_of(mpc->tau_ns, mpc->params.drain_interval);
	mpc->drain_ns = 0;
}

/*
 * (10) Drains of several flows must coincide, or none empties the queue. A dip of the queue that is not the flow's own tells
 * another's drain. Of two within 3/10 of a cycle the earlier is followed, another one a cycle later; where drains are heard two
 * to four times per cycle, after a whole number of theirs.
 */
static inline void mpc_hear_drain(struct mpc *mpc, cc_u64 queue_ns, cc_u64 sent_ns, cc_u64 now_ns)
{
	cc_u64 mean_ns = mpc->mean_queue_ns, cycle_ns = mpc->cycle_ns, began_ns, interval_ns;

	if (!mpc->in_dip && mpc->state != MPC_GROWTH && queue_ns + 3 * mpc->noise_ns < mean_ns - mean_ns / 5) {
		mpc->in_dip = 1;
		mpc->dip_queue_ns = queue_ns;
		mpc->dip_sent_ns = sent_ns;
	}
	if (!mpc->in_dip)
		return;
	if (queue_ns < mpc->dip_queue_ns) {
		mpc->dip_queue_ns = queue_ns;
		mpc->dip_sent_ns = sent_ns;
		return;
	}
	if (queue_ns <= mpc->dip_queue_ns + 3 * mpc_less(mean_ns, mpc->dip_queue_ns) / 10)
		return;
	/* Over. It was deepest when the drain ended. */
	mpc->in_dip = 0;
	began_ns = mpc_less(mpc->dip_sent_ns, mpc_drain_ns(mpc, mean_ns) * 9 / 10);
	interval_ns = mpc_less(began_ns, mpc->heard_ns);
	mpc->heard_ns = began_ns;
	if (interval_ns > cycle_ns / 4 && interval_ns < 3 * (cycle_ns / 4))
		cycle_ns = (cycle_ns + interval_ns / 2) / interval_ns * interval_ns;
	if (began_ns < mpc->cycle_began_ns || began_ns - mpc->cycle_began_ns >= 3 * mpc->cycle_ns / 10)
		mpc_begin_cycle(mpc, began_ns, cycle_ns, now_ns);
}

/* --------------------------------------------------------------------------------------------------------- the rate sent */

/*
 * (4) The queue that a packet sent now will meet: the one last seen, and what was sent since, less what left since. (5) The rate
 * that brings it to the target within the horizon.
 */
static inline cc_u64 mpc_steered_rate(const struct mpc *mpc, cc_u64 now_ns)
{
	cc_u64 position = mpc->delivered_bytes + mpc->in_flight_bytes;
	cc_u64 sent_bytes = cc_min(mpc_less(position, mpc->queue_position), mpc->two_rtts_bytes);
	cc_u64 sent_ns = sent_bytes * mpc->byte_time >> MPC_BYTE_BITS;
	cc_u64 elapsed_ns = now_ns - cc_min(mpc->queue_sent_ns, now_ns);
	cc_u64 queue_ns, horizon_ns = cc_max(mpc_of(mpc->tau_ns, mpc->params.horizon), 1);

	if (sent_ns > elapsed_ns)
		queue_ns = mpc->queue_ns + cc_min(sent_ns - elapsed_ns, mpc->tau_ns);
	else
		queue_ns = mpc_less(mpc->queue_ns, cc_min(elapsed_ns - sent_ns, mpc->tau_ns));
	if (queue_ns > mpc->target_ns) {
		cc_u64 down = cc_min(mpc_share(queue_ns - mpc->target_ns, horizon_ns), MPC_ONE * 3 / 5);

		return mpc->rho - (mpc->rho * down >> MPC_BITS);
	}
	return mpc->rho + (mpc->rho * cc_min(mpc_share(mpc->target_ns - queue_ns, horizon_ns), MPC_ONE / 10) >> MPC_BITS);
}

/* (11) Start-up sends rho, and now and then a pulse that looks ahead whether there is room for more. */
static inline cc_u64 mpc_start_rate(struct mpc *mpc, cc_u64 now_ns)
{
	cc_u64 position = mpc->delivered_bytes + mpc->in_flight_bytes;
	cc_u64 part_ns = mpc->tau_ns / MPC_PULSE_PART;
	cc_u64 bytes, tail;
	struct mpc_pulse *pulse;

	if (mpc->pulse_to && (position + mpc->packet_bytes > mpc->pulse_to ||
			      now_ns >= mpc->pulses[(mpc->started_pulses - 1) & (MPC_PULSES - 1)].started_ns + 2 * part_ns))
		mpc->pulse_to = 0;
	if (!mpc->pulse_to && now_ns >= mpc->next_pulse_ns) {
		mpc->next_pulse_ns = now_ns + mpc->tau_ns / MPC_PULSES_PER_TAU;
		bytes = cc_bytes(mpc->rho, part_ns) * MPC_PULSE_GAIN;
		tail = MPC_PULSE_TAIL(bytes);
		if (tail >= MPC_PULSE_PACKETS * mpc->packet_bytes && mpc->started_pulses - mpc->judged_pulses < MPC_PULSES) {
			pulse = &mpc->pulses[mpc->started_pulses++ & (MPC_PULSES - 1)];
			pulse->started_ns = now_ns;
			pulse->tail_from = position + bytes - tail;
			pulse->tail_to = position + bytes;
			pulse->tail_rtt_ns = CC_NONE;
			pulse->tail_bytes = 0;
			mpc->pulse_to = position + bytes;
		}
	}
	return mpc->pulse_to ? mpc->rho * MPC_PULSE_GAIN : mpc->rho;
}

static inline void mpc_set_rate(struct mpc *mpc, cc_u64 now_ns)
{
	cc_u64 rate;

	if (mpc->state == MPC_START) {
		rate = mpc_start_rate(mpc, now_ns);
	} else {
		rate = mpc_steered_rate(mpc, now_ns);
		if (mpc->state == MPC_STEADY && now_ns >= mpc->next_drain_ns && !mpc->drain_ns)
			mpc_begin_drain(mpc, now_ns);
		if (mpc->state == MPC_DRAIN) {
			if (now_ns < mpc->refill_ns)
				rate = mpc->rho * MPC_DRAIN_QUARTERS / 4;
			else if (now_ns < mpc->drain_end_ns)
				rate = mpc->rho * MPC_REFILL_QUARTERS / 4;
			else
				mpc->state = MPC_STEADY;
		}
	}
	mpc->rate = cc_min(mpc_clamp(rate, mpc->least_rate, MPC_MAX_RATE), mpc->params.cap);
}

/* ------------------------------------------------------------------------------------------------------------- start-up */

/* A number in [0, 1), drawn once: flows that begin together do not drain together. SplitMix64's finalizer. */
static inline cc_u64 mpc_chance(const struct mpc *mpc)
{
	cc_u64 z = mpc->seed + 0x9e3779b97f4a7c15ull;

	z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9ull;
	z = (z ^ (z >> 27)) * 0x94d049bb133111ebull;
	return (z ^ (z >> 31)) >> (64 - MPC_BITS);
}

CC_SELDOM void mpc_begin_start(struct mpc *mpc, cc_u64 now_ns, cc_u64 rho)
{
	mpc->state = MPC_START;
	mpc->ended_blocks = 0;
	mpc->block_acks = 0;
	mpc->block_began_ns = now_ns;
	mpc->slow_queue = 0;
	mpc->started_pulses = 0;
	mpc->judged_pulses = 0;
	mpc->pulse_to = 0;
	mpc->next_pulse_ns = now_ns;
	mpc->depth = MPC_ONE;
	mpc->drain_ns = 0;
	mpc->drains = 0;
	mpc->cycle_rtt_ns = CC_NONE;
	mpc->in_dip = 0;
	mpc->rho = mpc_clamp(cc_min(rho, mpc->params.cap), 1, MPC_MAX_RATE);
	mpc->queue_ns = 0;
	mpc_set_target(mpc);
	mpc_keep(mpc);
	mpc->rate = mpc->rho;
}

/* A queue of `queue_ns` ends start-up: for good, or for growth at a gentler pace. */
CC_SELDOM void mpc_end_start(struct mpc *mpc, cc_u64 now_ns, cc_u64 queue_ns, cc_u32 state)
{
	cc_u64 wait = 3 * mpc_chance(mpc) / 10 + (state == MPC_GROWTH ? MPC_ONE : 0);

	mpc->state = state;
	mpc->pulse_to = 0;
	mpc->queue_ns = queue_ns;
	mpc->slow_queue = queue_ns << MPC_SLOW_BITS;
	mpc->mean_queue_ns = queue_ns;
	mpc->fair_from_ns = now_ns + mpc_of(mpc->tau_ns, mpc->params.settle);
	mpc->queue_seen_ns = mpc->queue_sent_ns;
	mpc->hold_until_ns = mpc->queue_sent_ns + mpc_of(mpc->tau_ns, mpc->params.hold);
	mpc->emptied_ns = 0;
	mpc->cycle_ns = mpc_of(mpc->tau_ns, mpc->params.drain_interval);
	mpc->cycle_began_ns = now_ns;
	mpc->next_drain_ns = now_ns + (mpc->cycle_ns * wait >> MPC_BITS);
	mpc->growth = MPC_PULSE_GROWTH;
	/* A pulse saw the end at up to as many times rho. */
	mpc->growth_from = mpc->rho * MPC_PULSE_GAIN;
}

/* The tail of a pulse has all of its burst before it: its queue says how much room is left. Whether the packet is of a tail. */
static inline cc_u32 mpc_see_pulse(struct mpc *mpc, cc_u64 now_ns, cc_u64 sent_ns, cc_u64 position, cc_u64 rtt_ns)
{
	struct mpc_pulse *pulse = &mpc->pulses[mpc->judged_pulses & (MPC_PULSES - 1)];
	cc_u64 queue_ns;

	if (mpc->judged_pulses == mpc->started_pulses)
		return 0;
	if (position >= pulse->tail_from && position < pulse->tail_to) {
		pulse->tail_bytes += mpc->packet_bytes;
		pulse->tail_rtt_ns = cc_min(pulse->tail_rtt_ns, rtt_ns);
		return 1;
	}
	/* Well after the pulse, for ACKs may have overtaken each other. */
	if (sent_ns < pulse->started_ns + mpc->tau_ns / 4)
		return 0;
	mpc->judged_pulses++;
	queue_ns = mpc_less(pulse->tail_rtt_ns, mpc->base_ns);
	if (mpc->state == MPC_START && pulse->tail_bytes >= MPC_PULSE_PACKETS * mpc->packet_bytes &&
	    queue_ns > 3 * mpc->tau_ns / 1000 + 3 * mpc->noise_ns)
		mpc_end_start(mpc, now_ns, queue_ns, MPC_GROWTH);
	return 0;
}

/* A block of start-up: rho grows, until there is a queue. */
static inline void mpc_start_block(struct mpc *mpc, cc_u64 now_ns, const struct mpc_block *block, cc_u64 queue_ns, cc_u64 elapsed_ns)
{
	/* tau may be the time of 40 packets; as a first window, ten are enough. */
	cc_u64 unit_ns = cc_min(cc_max(mpc->base_ns, 10 * mpc_packet_ns(mpc)), mpc->tau_ns);
	/* With 44 bits of fraction, and the growth with 23. A silence is no growth. */
	cc_u64 log = mpc->params.start_growth * mpc_fine_share(cc_min(elapsed_ns, 4 * unit_ns), unit_ns);
	cc_u64 growth = cc_exp2((log >> MPC_FINE_BITS) + (23 << CC_LOG_BITS));
	/* The product of a rho and a growth that fill 63 bits. */
	cc_u64 cut = mpc->rho >> 32 ? 8 : 0;
	/* All bits if the application makes less than half of what rho could send: that tells nothing of rho, nor of the queue it makes. */
	cc_u64 is_idle = cc_below(mpc->block_flight_bytes, cc_bytes(mpc->rho, unit_ns) / 2 * mpc->block_is_limited);

	growth += (growth * (log >> 12 & 0xffff) >> 16) * MPC_LN2 >> 32;
	growth = (growth & ~is_idle) | (is_idle & 1 << 23);
	queue_ns &= ~is_idle;
	mpc_set_rho(mpc, (((mpc->rho >> cut) * growth + (1 << 22)) >> 23) << cut);
	if (mpc_is_lossy(mpc, block)) {
		cc_u64 rate = mpc_departure_rate(mpc_block_before(mpc, mpc->tau_ns), block, mpc->tau_ns / 10);

		if (rate)
			mpc_set_rho(mpc, cc_min(mpc->rho, rate));
	} else if (queue_ns <= mpc_of(mpc->tau_ns, mpc->params.start_queue) + mpc_packet_ns(mpc) + 3 * mpc->noise_ns) {
		return;
	}
	mpc_set_rho(mpc, mpc->rho / 2);
	mpc_end_start(mpc, now_ns, queue_ns, MPC_STEADY);
}

/* ----------------------------------------------------------------------------------------------------- the nominal rate */

/*
 * (6) The force F = ln(q_t / qbar) / gamma: how many e-folds of rate the flow is below the one at which its price is the queue
 * that all see. Bounded by 4, and below by what a short queue bears. With 16 bits of fraction.
 */
static inline cc_s64 mpc_fairness(const struct mpc *mpc)
{
	const struct mpc_params *p = &mpc->params;
	cc_u64 slow_ns = cc_max(mpc_slow_queue_ns(mpc), cc_max(mpc->target_ns / 50, 1));
	cc_s64 log = (cc_s64)cc_log2(mpc->target_ns) - (cc_s64)cc_log2(slow_ns);
	cc_u64 most = 4 << MPC_PARAM_BITS;
	cc_u64 least = mpc_of(mpc_share(mpc->mean_queue_ns, mpc->tau_ns), p->restraint) << MPC_PARAM_BITS;
	cc_u64 force = mpc_of((cc_u64)(log < 0 ? -log : log), MPC_LN2);

	/* 1.5 k H, with 20 bits. */
	least /= cc_max(mpc_of(p->fairness, p->horizon) * 3 / 2 << (MPC_BITS - MPC_PARAM_BITS), 1);
	force = (force << MPC_PARAM_BITS) / cc_max(p->rate_exponent, 1);
	return log < 0 ? -(cc_s64)cc_min(force, cc_min(least, most)) : (cc_s64)cc_min(force, most);
}

/* (7) A block with a queue: rho follows the rate of departures, bent by the force. */
static inline void mpc_follow(struct mpc *mpc, cc_u64 now_ns, cc_u64 elapsed_ns)
{
	cc_u64 goal = mpc->share_rate;
	cc_u64 weight = mpc_share(elapsed_ns, mpc->tau_ns / 2);
	cc_s64 force = now_ns > mpc->fair_from_ns ? mpc_fairness(mpc) : 0;
	cc_u64 bend = mpc_of((cc_u64)(force < 0 ? -force : force), mpc->params.fairness) * 3 / 2;

	bend = goal * cc_min(bend, MPC_PARAM_ONE) >> MPC_PARAM_BITS;
	goal = force < 0 ? goal - bend : goal + bend;
	mpc_set_rho(mpc, mpc_toward(mpc->rho, cc_min(goal, MPC_MAX_RATE), weight));
}

/* (8) A block without a queue: after most of a tau rho grows, faster and faster. */
static inline void mpc_grow(struct mpc *mpc, cc_u64 now_ns, const struct mpc_block *block, cc_u64 elapsed_ns)
{
	const struct mpc_params *p = &mpc->params;
	/* A silence is no room. */
	cc_u64 part = cc_min(mpc_fine_share(elapsed_ns, mpc->tau_ns), MPC_FINE_ONE), rise;

	mpc->snap.sent_ns = 0;
	if (mpc_less(block->sent_ns, mpc->queue_seen_ns) <= mpc->tau_ns - mpc->tau_ns / 10 || mpc->block_is_limited ||
	    mpc->rate >= p->cap - p->cap / 1000)
		return;
	if (mpc->state == MPC_STEADY) {
		mpc->state = MPC_GROWTH;
		mpc->growth_from = mpc->rho;
		mpc->growth = cc_min(mpc_of(mpc_fine_share(mpc->target_ns, mpc->tau_ns), p->growth), MPC_FINE_ONE / 25);
	}
	if (mpc->state != MPC_GROWTH)
		return;
	if (mpc->rho > MPC_ANOTHER_PATH * mpc->growth_from) {
		mpc_begin_start(mpc, now_ns, mpc->rho);
		return;
	}
	/* The slow queue says nothing of a share so different: it starts anew. */
	if (now_ns < mpc->fair_from_ns || mpc->rho > mpc->growth_from + mpc_of(mpc->growth_from, MPC_RISE))
		mpc->fair_from_ns = now_ns + mpc_of(mpc->tau_ns, p->settle);
	rise = cc_min(mpc->growth * part >> MPC_FINE_BITS, MPC_FINE_ONE) >> 5;
	mpc_set_rho(mpc, mpc->rho + ((mpc->rho * rise + (1 << 22)) >> 23));
	mpc->growth += mpc->growth * part >> MPC_FINE_BITS;
	mpc->growth = cc_min(mpc->growth, p->growth_max << (MPC_FINE_BITS - MPC_PARAM_BITS));
}

/*
 * The queue is back. rho is what it was when the packet was sent that met it, and is kept until what that does is seen. Until then
 * the departures since say better what the rate is.
 */
static inline void mpc_queue_is_back(struct mpc *mpc, cc_u64 now_ns, const struct mpc_block *block)
{
	mpc_set_rho(mpc, cc_min(mpc->rho, mpc_rho_at(mpc, block->sent_ns)));
	mpc->state = MPC_STEADY;
	mpc->hold_until_ns = now_ns + mpc_of(mpc->tau_ns, mpc->params.hold);
	mpc->next_drain_ns = now_ns + mpc->cycle_ns / 2;
	mpc->snap = *block;
}

static inline void mpc_snap(struct mpc *mpc, const struct mpc_block *block)
{
	cc_u64 rate = mpc_share_rate(mpc, &mpc->snap, block, mpc->tau_ns / 5);

	if (rate && mpc_less(block->sent_ns, mpc->snap.sent_ns) > 3 * mpc->tau_ns / 10)
		mpc_set_rho(mpc, rate);
}

/*
 * (12) An overload, or (13) much is lost without a queue, as a policer does. What left last is all there is.
 */
static inline void mpc_bound(struct mpc *mpc, cc_u64 now_ns, const struct mpc_block *block)
{
	cc_u64 rate = 0;

	if (mpc_is_overloaded(mpc, mpc->queue_ns)) {
		rate = mpc_share_rate(mpc, mpc_block_before(mpc, 3 * mpc->tau_ns / 10), block, mpc->tau_ns / 10);
		/* Such a queue says nothing of shares. */
		mpc->fair_from_ns = now_ns + mpc_of(mpc->tau_ns, mpc->params.settle);
	} else if (mpc_is_lossy(mpc, block)) {
		rate = mpc->departure_rate;
	}
	if (rate && rate < mpc->rho)
		mpc_set_rho(mpc, rate);
}

/* The slow queue: nearly a constant to the loop, so that forces of all flows add up to nothing. */
static inline void mpc_average(struct mpc *mpc, cc_u64 elapsed_ns, cc_u64 memory_ns)
{
	/* Of an overload no more than makes it one: the rest is no price, and would make tau long. */
	cc_u64 queue_ns = cc_min(mpc->queue_ns, mpc->target_ns + mpc->tau_ns / 10);

	mpc->slow_queue = mpc_toward(mpc->slow_queue, queue_ns << MPC_SLOW_BITS, mpc_share(elapsed_ns, memory_ns));
	/* Not below what a logarithm can be taken of. */
	mpc->slow_queue = cc_max(mpc->slow_queue, 100 << MPC_SLOW_BITS);
}

/*
 * What is sent in one piece, `bytes` of it ahead of the packet that told the RTT, is no queue of the path. At a bottleneck it took
 * bytes / C. C is not known, but at least rho where there is no queue, and rho is it where one flow has one: bytes / rho is at most too
 * much, by which flows that share a bottleneck keep a longer queue.
 */
static inline cc_u64 mpc_burst_ns(const struct mpc *mpc, cc_u64 bytes)
{
	return bytes ? cc_min(cc_time(bytes, mpc->rho), mpc->tau_ns / MPC_BURST_PART) : 0;
}

/* A block has ended. */
CC_SELDOM void mpc_end_block(struct mpc *mpc, cc_u64 now_ns)
{
	const struct mpc_block *last = mpc->ended_blocks ? mpc_last_block(mpc, 0) : &mpc->block;
	struct mpc_block block = mpc->block;
	cc_u64 elapsed_ns = mpc_less(block.sent_ns, last->sent_ns);
	cc_u64 queue_ns, present_ns;

	if (block.rtt_ns < mpc->base_ns) {
		/* The empty path is shorter than it seemed; so all queues were longer. */
		cc_u64 shorter_ns = mpc->base_ns - block.rtt_ns;

		mpc->base_ns = block.rtt_ns;
		mpc->queue_ns += shorter_ns;
		mpc->prior_queue_ns += shorter_ns;
		mpc->mean_queue_ns += shorter_ns;
		mpc->slow_queue += shorter_ns << MPC_SLOW_BITS;
	}
	queue_ns = mpc_less(block.rtt_ns, mpc->base_ns + block.burst_ns);
	mpc_set_target(mpc);
	if (mpc->block_is_drain && mpc->state != MPC_START)
		return;
	block.ended_ns = now_ns;
	block.rho = mpc->rho;
	mpc->blocks[mpc->ended_blocks++ & (MPC_BLOCKS - 1)] = block;
	mpc->queue_sent_ns = block.sent_ns;
	mpc->queue_position = block.position;
	mpc->noise_ns = mpc_toward(mpc->noise_ns, mpc_distance(queue_ns, mpc->queue_ns), MPC_ONE / 20);
	if (mpc->state == MPC_START) {
		mpc->queue_ns = queue_ns;
		mpc_start_block(mpc, now_ns, &block, queue_ns, elapsed_ns);
		mpc->blocks[(mpc->ended_blocks - 1) & (MPC_BLOCKS - 1)].rho = mpc->rho;
		return;
	}
	mpc_hear_drain(mpc, queue_ns, block.sent_ns, now_ns);
	mpc->mean_queue_ns = mpc_toward(mpc->mean_queue_ns, queue_ns, MPC_ONE / (mpc->in_dip ? 50 : 10));
	mpc->queue_ns = queue_ns;
	mpc->departure_rate = mpc_departure_rate(mpc_block_before(mpc, mpc->tau_ns), &block, 3 * mpc->tau_ns / 10);
	mpc->share_rate = mpc_share_rate(mpc, mpc_block_before(mpc, mpc->tau_ns), &block, 3 * mpc->tau_ns / 10);
	if (now_ns >= mpc->fair_from_ns) {
		cc_u64 short_ns = cc_max(mpc_slow_queue_ns(mpc), cc_max(mpc->tau_ns / 1000, 1));
		cc_u64 memory_ns = mpc_of(mpc->tau_ns, mpc->params.memory);

		memory_ns = cc_min(memory_ns, MPC_MAX_NS) * mpc_share(mpc->tau_ns, short_ns) >> MPC_BITS;
		mpc_average(mpc, elapsed_ns, cc_max(memory_ns, 8 * mpc->tau_ns));
	}
	/* A queue is there if two blocks in a row say so. What is too short to be one is a matter of the path, not of the price. */
	present_ns = cc_max(mpc->tau_ns / 500 + mpc_packet_ns(mpc), 3 * mpc->noise_ns);
	present_ns = cc_min(present_ns, mpc->target_ns / 10);
	present_ns = cc_max(present_ns, cc_min(mpc_slow_queue_ns(mpc), mpc->target_ns) / 4);
	if (cc_min(queue_ns, mpc->prior_queue_ns) <= present_ns) {
		mpc->emptied_ns = now_ns;
		mpc_grow(mpc, now_ns, &block, elapsed_ns);
	} else if (mpc->state == MPC_GROWTH && mpc->block_is_pulse) {
		mpc_grow(mpc, now_ns, &block, elapsed_ns);
	} else {
		mpc->queue_seen_ns = block.sent_ns;
		if (mpc->state == MPC_GROWTH)
			mpc_queue_is_back(mpc, now_ns, &block);
		else if (mpc->snap.sent_ns && block.sent_ns < mpc->hold_until_ns && queue_ns > present_ns)
			mpc_snap(mpc, &block);
		if (now_ns < mpc->fair_from_ns && block.sent_ns > mpc->hold_until_ns)
			mpc_average(mpc, elapsed_ns, 2 * mpc->tau_ns);
		if (mpc->share_rate && block.sent_ns > mpc->hold_until_ns)
			mpc_follow(mpc, now_ns, elapsed_ns);
	}
	if (mpc->state == MPC_START)
		return;
	mpc_bound(mpc, now_ns, &block);
	mpc->prior_queue_ns = queue_ns;
	mpc->blocks[(mpc->ended_blocks - 1) & (MPC_BLOCKS - 1)].rho = mpc->rho;
}

/* -------------------------------------------------------------------------------------------------------------- events */

static inline void mpc_on_path_change(struct mpc *mpc, const struct cc_path *path)
{
	mpc->packet_bytes = mpc_clamp(path->packet_bytes, 1, 1 << 16);
	if (!mpc->base_ns)
		return;
	mpc_set_target(mpc);
	mpc_keep(mpc);
}

/* The parameter's cap, or the host's if that is less: at its cap a flow must not take its own restraint for the path's. */
#define CC_SET_CAP mpc_set_cap
static inline void mpc_set_cap(struct mpc *mpc, const struct mpc_params *params, cc_u64 host_bytes_per_s)
{
	mpc->params.cap = cc_min(params->cap ? cc_min(params->cap, MPC_MAX_RATE) : MPC_MAX_RATE, host_bytes_per_s);
}

static inline void mpc_init(struct mpc *mpc, const struct cc_path *path, const struct mpc_params *params)
{
	mpc->params = *params;
	mpc_set_cap(mpc, params, MPC_MAX_RATE);
	mpc_on_path_change(mpc, path);
	mpc->initial_window_packets = mpc_clamp(path->initial_window_packets, 1, 1 << 16);
	mpc->seed = path->seed;
}

static inline void mpc_on_ack(struct mpc *mpc, const struct cc_ack *ack)
{
	cc_u64 now_ns = ack->now_ns, rtt_ns = cc_min(ack->rtt_ns, MPC_MAX_NS);
	cc_u64 sent_ns = mpc_less(now_ns, rtt_ns), burst_ns, head_rtt_ns;
	cc_u64 position = mpc_less(ack->prior_delivered_total_bytes + ack->tx_in_flight_bytes,
				   ack->lost_since_sent_bytes + mpc->lost_in_step);

	mpc->lost_in_step = 0;
	mpc->delivered_bytes = ack->delivered_total_bytes;
	mpc->in_flight_bytes = ack->in_flight_bytes;
	if (!rtt_ns)
		return;
	if (!mpc->base_ns) {
		mpc->base_ns = rtt_ns;
		mpc->tau_ns = rtt_ns;
		mpc_begin_start(mpc, now_ns, cc_rate(mpc->initial_window_packets * mpc->packet_bytes, rtt_ns));
	}
	burst_ns = mpc_burst_ns(mpc, ack->burst_bytes);
	head_rtt_ns = mpc_less(rtt_ns, burst_ns);
	mpc->cycle_rtt_ns = cc_min(mpc->cycle_rtt_ns, head_rtt_ns);
	if (mpc_sent_in_drain(mpc, sent_ns)) {
		mpc->drain_rtt_ns = cc_min(mpc->drain_rtt_ns, head_rtt_ns);
		mpc->block_is_drain = 1;
	} else if (mpc->drain_ns && mpc->state != MPC_DRAIN &&
		   now_ns > mpc->drain_end_ns + mpc->base_ns * 5 / 4 + mpc->queue_ns) {
		mpc_judge_drain(mpc);
	}
	mpc->block_is_pulse |= mpc_see_pulse(mpc, now_ns, sent_ns, position, head_rtt_ns);
	mpc->block_flight_bytes = cc_max(mpc->block_flight_bytes, cc_min(ack->tx_in_flight_bytes, CC_NONE >> 1));
	mpc->block_is_limited |= ack->flags & CC_ACK_APP_LIMITED;
	mpc->limited_ns = cc_max(mpc->limited_ns, sent_ns * (ack->flags & CC_ACK_APP_LIMITED));
	if (!mpc->block_acks || rtt_ns < mpc->block.rtt_ns) {
		mpc->block.sent_ns = sent_ns;
		mpc->block.position = position;
		mpc->block.rtt_ns = rtt_ns;
		mpc->block.burst_ns = burst_ns;
		mpc->block.lost = mpc->lost;
	}
	mpc->block_acks++;
	if (mpc->block_acks >= MPC_BLOCK_ACKS && now_ns - mpc->block_began_ns >= mpc->tau_ns / MPC_BLOCKS_PER_TAU) {
		mpc_end_block(mpc, now_ns);
		mpc_keep(mpc);
		mpc->block_acks = 0;
		mpc->block_began_ns = now_ns;
		mpc->block_is_drain = 0;
		mpc->block_is_pulse = 0;
		mpc->block_is_limited = 0;
		mpc->block_flight_bytes = 0;
	}
	mpc_set_rate(mpc, now_ns);
}

static inline void mpc_on_loss(struct mpc *mpc, const struct cc_loss *loss)
{
	/* What is lost does not leave, and (3) says so. Only if much is, the next block reacts to it (13). */
	mpc->lost += loss->lost_bytes;
	mpc->lost_in_step += loss->lost_bytes;
	mpc->in_flight_bytes = loss->in_flight_bytes;
}

static inline void mpc_on_rto(struct mpc *mpc, const struct cc_timeout *timeout)
{
	if (!mpc->base_ns)
		return;
	mpc_begin_start(mpc, timeout->now_ns, cc_rate(2 * mpc->packet_bytes, mpc->base_ns));
}

static inline void mpc_on_spurious_loss(struct mpc *mpc, const struct cc_undo *undo)
{
	(void)mpc;
	(void)undo;
}

static inline void mpc_on_resume(struct mpc *mpc, const struct cc_resume *resume)
{
	/* A slow flow has nothing in flight between two packets: that is no idleness. */
	if (!mpc->base_ns || mpc->state == MPC_START || resume->idle_ns < mpc->tau_ns)
		return;
	/* What the blocks tell of the path is over; rho is still the best guess, and is paced. */
	mpc->state = MPC_STEADY;
	mpc->ended_blocks = 0;
	mpc->block_acks = 0;
	mpc->drain_ns = 0;
	mpc->in_dip = 0;
	mpc->queue_ns = 0;
	mpc->prior_queue_ns = 0;
	mpc->queue_sent_ns = resume->now_ns;
	mpc->queue_position = mpc->delivered_bytes;
	mpc->queue_seen_ns = resume->now_ns;
	mpc->snap.sent_ns = 0;
	mpc_keep(mpc);
}

static inline void mpc_on_timer(struct mpc *mpc, cc_u64 now_ns)
{
	(void)mpc;
	(void)now_ns;
}

static inline void mpc_control(const struct mpc *mpc, struct cc_control *control)
{
	cc_u64 window = mpc->initial_window_packets * mpc->packet_bytes;

	control->pacing_bytes_per_s = CC_UNPACED;
	if (mpc->base_ns) {
		/* The rate controls; the window is there for when ACKs stop, and ends a pulse. */
		window = mpc->two_rtts_bytes + MPC_SPARE_PACKETS * mpc->packet_bytes;
		if (mpc->pulse_to)
			window = mpc_clamp(mpc_less(mpc->pulse_to, mpc->delivered_bytes), mpc->packet_bytes, window);
		control->pacing_bytes_per_s = mpc->rate;
	}
	control->cwnd_bytes = window;
	control->send_quantum_bytes = 0;
	control->next_timer_ns = CC_NEVER;
	control->timeout_ns = 0;
}

static inline void mpc_observe(const struct mpc *mpc, cc_u64 *out)
{
	cc_u32 i;

	for (i = 0; i < MPC_FIELDS; i++)
		out[i] = CC_NONE;
	if (!mpc->base_ns)
		return;
	out[0] = mpc->state;
	out[1] = mpc->rho;
	out[2] = mpc->departure_rate ? mpc->departure_rate : CC_NONE;
	out[3] = mpc->base_ns / 1000;
	out[4] = mpc->tau_ns / 1000;
	out[5] = mpc->target_ns / 1000;
	out[6] = mpc->queue_ns / 1000;
	out[7] = mpc_slow_queue_ns(mpc) / 1000;
}

#endif
