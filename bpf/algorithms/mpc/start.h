/* SPDX-License-Identifier: MIT OR GPL-2.0-only */
/*
 * Start-up of `mpc`, (11) of docs/mpc.md: rho grows by what pulses tell of the path ahead, until there is a queue.
 */
#ifndef PACELINE_MPC_START_H
#define PACELINE_MPC_START_H

#include "model.h"

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
	mpc->room = 0;
	mpc->is_near = 0;
	mpc->queued_from_ns = 0;
	mpc->pulse_to = 0;
	mpc->depth = MPC_ONE;
	mpc->drain_ns = 0;
	mpc->drains = 0;
	mpc->cycle_rtt_ns = CC_NONE;
	mpc->in_dip = 0;
	mpc->rho = mpc_clamp(cc_min(rho, mpc->params.cap), 1, MPC_MAX_RATE);
	mpc->queue_ns = 0;
	mpc_set_target(mpc);
	/* Pulses of flows that begin together shall not coincide. */
	mpc->next_pulse_ns = now_ns + (mpc->tau_ns / MPC_PULSES_PER_TAU * mpc_chance(mpc) >> MPC_BITS);
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
	mpc->growth = mpc->params.growth_max << (MPC_FINE_BITS - MPC_PARAM_BITS);
	/* A pulse saw the end at up to as many times rho. */
	mpc->growth_from = mpc->rho * MPC_NEAR_GAIN;
}

/*
 * The tail of a pulse has all of its burst before it: its queue says whether there is room for as much. Where there is none, the next
 * pulses are gentler and rho waits for them; that of a gentle one ends start-up.
 */
static inline void mpc_judge_pulse(struct mpc *mpc, cc_u64 now_ns, const struct mpc_pulse *pulse)
{
	int is_seen = pulse->tail_bytes >= MPC_PULSE_PACKETS / 2 * mpc->packet_bytes;
	cc_u64 queue_ns = is_seen ? mpc_less(pulse->tail_rtt_ns, mpc->base_ns) : 0;
	int is_free = is_seen && queue_ns <= 3 * mpc->tau_ns / 1000 + 3 * mpc->noise_ns;

	if (!mpc->is_near) {
		mpc->room = is_free ? pulse->rho * pulse->gain : 0;
		if (is_free || !is_seen)
			return;
		mpc->is_near = 1;
		/* Those on the way tell no more, and their tails would hide the next one's. */
		mpc->judged_pulses = mpc->started_pulses;
		mpc->pulse_to = 0;
		mpc->next_pulse_ns = now_ns;
	} else if (is_free) {
		mpc_set_rho(mpc, cc_max(mpc->rho, pulse->rho * MPC_NEAR_HALVES / 2));
		mpc_keep(mpc);
		mpc->next_pulse_ns = now_ns;
	} else {
		mpc_end_start(mpc, now_ns, queue_ns, MPC_GROWTH);
	}
}

/* Whether the packet is of a pulse's tail. */
static inline cc_u32 mpc_see_pulse(struct mpc *mpc, const struct cc_ack *ack, cc_u64 rtt_ns, cc_u64 sent_ns, cc_u64 position)
{
	struct mpc_pulse *pulse = &mpc->pulses[mpc->judged_pulses & (MPC_PULSES - 1)];
	cc_u64 ahead_ns = 0;

	if (mpc->judged_pulses == mpc->started_pulses)
		return 0;
	if (position >= pulse->tail_from && position <= pulse->tail_to + ack->burst_bytes) {
		/* A host that sends in one piece sends faster than the pulse: at its rate what was ahead would have taken so long. */
		if (ack->burst_bytes)
			ahead_ns = cc_time(ack->burst_bytes, cc_min(pulse->rho * pulse->gain, MPC_MAX_RATE));
		/* What the host could not send in time tells nothing. */
		if (sent_ns < pulse->ends_ns) {
			pulse->tail_bytes += mpc->packet_bytes + ack->burst_bytes;
			pulse->tail_rtt_ns = cc_min(pulse->tail_rtt_ns, mpc_less(rtt_ns, ahead_ns));
		}
		return 1;
	}
	/* Somewhat after the pulse, for ACKs may have overtaken each other. */
	if (sent_ns < pulse->ends_ns + mpc->tau_ns / 16)
		return 0;
	mpc->judged_pulses++;
	if (mpc->state == MPC_START)
		mpc_judge_pulse(mpc, ack->now_ns, pulse);
	return 0;
}

/* The first window is sent unpaced, a pulse of its own: so many packets in a sixteenth of an RTT leave room for growth until one is sent. */
static inline void mpc_see_first_window(struct mpc *mpc, cc_u64 now_ns)
{
	if (now_ns - mpc->first_ns > mpc->base_ns / MPC_FIRST_PART)
		mpc->first_to = 0;
	else if (mpc->delivered_bytes >= mpc->first_to) {
		mpc->room = MPC_FIRST_PART * cc_rate((MPC_FIRST_PACKETS - 1) * mpc->packet_bytes, mpc->base_ns);
		mpc->first_to = 0;
	}
}

/* Whether at least `part` 16ths of what rho makes have been sent since `block`, but for a few packets. */
static inline int mpc_has_sent(const struct mpc *mpc, cc_u64 now_ns, const struct mpc_block *block, cc_u64 part)
{
	cc_u64 position = mpc->delivered_bytes + mpc->in_flight_bytes + MPC_BLOCK_ACKS * mpc->packet_bytes;
	cc_u64 sent_bytes = cc_min(mpc_less(position, block->position), mpc->two_rtts_bytes);
	cc_u64 sent_ns = sent_bytes * mpc->byte_time >> MPC_BYTE_BITS;

	return sent_ns >= (now_ns - cc_min(block->sent_ns, now_ns)) * part / 16;
}

/* A block of start-up: rho grows, until there is a queue. */
static inline void mpc_start_block(struct mpc *mpc, cc_u64 now_ns, const struct mpc_block *block, cc_u64 queue_ns, cc_u64 elapsed_ns)
{
	/* tau may be the time of 40 packets; as a first window, ten are enough. */
	cc_u64 unit_ns = cc_min(cc_max(mpc->base_ns, 10 * mpc_packet_ns(mpc)), mpc->tau_ns);
	cc_u64 start_growth = 2 * mpc->rho <= mpc->room ? cc_max(mpc->params.start_growth, MPC_FREE_GROWTH) : mpc->params.start_growth;
	/* With 44 bits of fraction, and the growth with 23. */
	cc_u64 log = start_growth * mpc_fine_share(elapsed_ns, unit_ns);
	cc_u64 growth = cc_exp2(cc_min(log >> MPC_FINE_BITS, 8 << CC_LOG_BITS) + (23 << CC_LOG_BITS));
	/* The product of a rho and a growth that fill 63 bits. */
	cc_u64 cut = mpc->rho >> 32 ? 8 : 0;

	growth += (growth * (log >> 12 & 0xffff) >> 16) * MPC_LN2 >> 32;
	if (!mpc->is_near && mpc_has_sent(mpc, now_ns, block, MPC_START_SENT))
		mpc_set_rho(mpc, (((mpc->rho >> cut) * growth + (1 << 22)) >> 23) << cut);
	if (mpc_is_lossy(mpc, block)) {
		cc_u64 rate = mpc_departure_rate(mpc_block_before(mpc, mpc->tau_ns), block, mpc->tau_ns / 10);

		if (rate)
			mpc_set_rho(mpc, cc_min(mpc->rho, rate));
	} else if (queue_ns <= mpc_of(mpc->tau_ns, mpc->params.start_queue) + mpc_packet_ns(mpc) + 3 * mpc->noise_ns) {
		mpc->queued_from_ns = 0;
		return;
	} else if (mpc->started_pulses) {
		/* A pulse's queue does not last. */
		if (!mpc->queued_from_ns)
			mpc->queued_from_ns = now_ns;
		if (now_ns - mpc->queued_from_ns < mpc->tau_ns / 8)
			return;
	}
	mpc_set_rho(mpc, mpc->rho / 2);
	mpc_end_start(mpc, now_ns, queue_ns, MPC_STEADY);
}

/*
 * (11) Start-up sends rho, and now and then a pulse that looks ahead whether there is room for more: far ahead, twice per tau; nearer
 * once such a one has met a queue, and then the next only when that has been judged.
 */
static inline cc_u64 mpc_start_rate(struct mpc *mpc, cc_u64 now_ns)
{
	cc_u64 position = mpc->delivered_bytes + mpc->in_flight_bytes;
	cc_u64 gain = mpc->is_near ? MPC_NEAR_GAIN : MPC_PULSE_GAIN;
	cc_u64 part_ns = mpc->tau_ns / (mpc->is_near ? MPC_NEAR_PART : MPC_PULSE_PART);
	cc_u64 bytes, tail;
	struct mpc_pulse *pulse;

	if (mpc->pulse_to && (position + mpc->packet_bytes > mpc->pulse_to ||
			      now_ns >= mpc->pulses[(mpc->started_pulses - 1) & (MPC_PULSES - 1)].ends_ns))
		mpc->pulse_to = 0;
	if (!mpc->pulse_to && now_ns >= mpc->next_pulse_ns) {
		mpc->next_pulse_ns = now_ns + mpc->tau_ns / MPC_PULSES_PER_TAU;
		bytes = cc_bytes(mpc->rho, part_ns) * gain;
		tail = MPC_PULSE_TAIL(bytes);
		if (tail < MPC_PULSE_PACKETS * mpc->packet_bytes) {
			mpc->is_near = 0;
		} else if (mpc->started_pulses - mpc->judged_pulses < MPC_PULSES) {
			pulse = &mpc->pulses[mpc->started_pulses++ & (MPC_PULSES - 1)];
			pulse->rho = mpc->rho;
			pulse->gain = gain;
			pulse->started_ns = now_ns;
			pulse->ends_ns = now_ns + 2 * part_ns;
			pulse->tail_from = position + bytes - tail;
			pulse->tail_to = position + bytes;
			pulse->tail_rtt_ns = CC_NONE;
			pulse->tail_bytes = 0;
			mpc->pulse_to = position + bytes;
			if (mpc->is_near)
				mpc->next_pulse_ns = CC_NEVER;
		}
	}
	return mpc->pulse_to ? mpc->rho * gain : mpc->rho;
}

#endif
