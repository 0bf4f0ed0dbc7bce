/* SPDX-License-Identifier: MIT OR GPL-2.0-only */
/*
 * What `mpc` knows: its constants, parameters and state, and the arithmetic of its numbers. The law is in ../mpc.h.
 */
#ifndef PACELINE_MPC_STATE_H
#define PACELINE_MPC_STATE_H

#include "../../include/cc_abi.h"
#include "../../include/cc_math.h"

#define MPC_FIELDS 8

#define MPC_START 0u
#define MPC_STEADY 1u
#define MPC_GROWTH 2u
#define MPC_DRAIN 3u

/*
 * Fractions have 20 bits, parameters 16, the slow queue 8 below the ns. Growth has 28: what is cut off in each of a thousand
 * short blocks would add up; so would a rho always rounded down.
 */
#define MPC_BITS 20
#define MPC_ONE ((cc_u64)1 << MPC_BITS)
#define MPC_PARAM_BITS 16
#define MPC_PARAM_ONE ((cc_u64)1 << MPC_PARAM_BITS)
#define MPC_SLOW_BITS 8
#define MPC_FINE_BITS 28
#define MPC_FINE_ONE ((cc_u64)1 << MPC_FINE_BITS)
/* A byte's time at rho has this many bits below the ns. */
#define MPC_BYTE_BITS 26
/* Limits that keep products within 64 bits. */
#define MPC_MAX_RATE ((cc_u64)1 << 40)
#define MPC_MAX_NS ((cc_u64)1 << 34)

/* Measurement: a block is at least this many ACKs, and this part of tau. */
#define MPC_BLOCK_ACKS 8
#define MPC_BLOCKS_PER_TAU 32
/* Blocks that are kept: two tau. A power of two. */
#define MPC_BLOCKS 64u
/* A pulse of start-up: so many times rho, for this part of tau, this often per tau. */
#define MPC_PULSE_GAIN 16
#define MPC_PULSE_PART 64
#define MPC_PULSES_PER_TAU 2
/* Judged by its last 3/10, at least so many packets: more than 3/1000 tau of queue, above the noise, end start-up. */
#define MPC_PULSE_TAIL(bytes) ((bytes) * 3 / 10)
#define MPC_PULSE_PACKETS 8
/* Pulses that may be on the way. A power of two. */
#define MPC_PULSES 4u
/* The rates of a drain and of what makes up for it, quarters of rho. */
#define MPC_DRAIN_QUARTERS 1
#define MPC_REFILL_QUARTERS 7
/* g when a pulse has ended start-up, per tau. A rise of rho in growth that makes the slow queue begin anew. */
#define MPC_PULSE_GROWTH (MPC_FINE_ONE / 20)
#define MPC_RISE (MPC_PARAM_ONE * 15 / 100)
/* Growth by this factor without a queue: nothing is left of the old path, and start-up is faster. */
#define MPC_ANOTHER_PATH 3
/* ln 2. */
#define MPC_LN2 45426u
/* Drains over which l_P is the least RTT. A power of two. */
#define MPC_DRAINS 8u
/* More than this part lost in a tau, and so many packets, is too much. */
#define MPC_LOSSY_PART 32
#define MPC_LOSSY_PACKETS 4
/* Beyond twice what rho fills: for bursts of the host. */
#define MPC_SPARE_PACKETS 64
/* What is sent in one piece counts as that for up to this part of tau. */
#define MPC_BURST_PART 8
/* Drains that do not reach an empty queue grow up to so many times. */
#define MPC_MAX_DEPTH (12 * MPC_ONE)

struct mpc_params {
	cc_u64 cap;            /* the flow's rate is never above; 0 = none */
	cc_u64 queue_ns;       /* q_t of a flow of 4 Gbit/s and 25 ms, but for the knee */
	cc_u64 rate_exponent;  /* gamma: q_t falls with the rate to this power */
	cc_u64 rtt_exponent;   /* q_t grows with l_P to this power */
	cc_u64 knee_ns;        /* l_P far below which q_t is in proportion to it */
	cc_u64 horizon;        /* H, in tau */
	cc_u64 fairness;       /* k, per tau */
	cc_u64 restraint;      /* of the fairness force when the queue is short */
	cc_u64 memory;         /* of the slow queue: tau^2 / qbar */
	cc_u64 settle;         /* without the fairness force after growth, in tau */
	cc_u64 drain_interval; /* T_d, in tau */
	cc_u64 drain_margin;   /* of a drain, in queues */
	cc_u64 growth;         /* g, first: in q_t / tau per tau */
	cc_u64 growth_max;     /* g, last: per tau */
	cc_u64 hold;           /* after growth rho is kept, in tau */
	cc_u64 least_packets;  /* tau is at least the time of so many */
	cc_u64 start_growth;   /* log2 of the growth of start-up per tau */
	cc_u64 start_queue;    /* that ends start-up, in tau */
};

/* What the packet of the least RTT in a block told. */
struct mpc_block {
	cc_u64 sent_ns;
	/* Sent before it, without what was found lost until its ACK, bytes. */
	cc_u64 position;
	cc_u64 rtt_ns;
	/* Of that, what the rest of its burst may have taken. */
	cc_u64 burst_ns;
	/* Lost until its ACK, bytes. */
	cc_u64 lost;
	/* When the block ended, and rho from there on. */
	cc_u64 ended_ns;
	cc_u64 rho;
};

struct mpc_pulse {
	cc_u64 started_ns;
	/* Positions of its judged tail, and the least RTT of it so far. */
	cc_u64 tail_from;
	cc_u64 tail_to;
	cc_u64 tail_rtt_ns;
	cc_u64 tail_bytes;
};

struct mpc {
	struct mpc_params params;
	cc_u64 packet_bytes;
	cc_u64 initial_window_packets;
	cc_u64 seed;
	cc_u32 state;
	/* Rates, bytes/s: nominal, sent, of departures; the last if the application did not bound it, else 0. */
	cc_u64 rho;
	cc_u64 rate;
	cc_u64 departure_rate;
	cc_u64 share_rate;
	/* l_P, tau, q_t. */
	cc_u64 base_ns;
	cc_u64 tau_ns;
	cc_u64 target_ns;
	/* q of the last block and of the one before; when the packet was sent that told it, and at which position. */
	cc_u64 queue_ns;
	cc_u64 prior_queue_ns;
	cc_u64 queue_sent_ns;
	cc_u64 queue_position;
	/* qbar in 2^-8 ns; the mean queue and its mean change from block to block. */
	cc_u64 slow_queue;
	cc_u64 mean_queue_ns;
	cc_u64 noise_ns;
	/* Of rho and tau, kept from block to block: the least rate, what two RTTs make, and the time of a byte in 2^-26 ns. */
	cc_u64 least_rate;
	cc_u64 two_rtts_bytes;
	cc_u64 byte_time;
	/* Losses: in all, and of the present step. */
	cc_u64 lost;
	cc_u64 lost_in_step;
	cc_u64 in_flight_bytes;
	cc_u64 delivered_bytes;

	/* Blocks, a ring; the one that is being filled. */
	struct mpc_block blocks[MPC_BLOCKS];
	cc_u64 ended_blocks;
	struct mpc_block block;
	cc_u64 block_began_ns;
	cc_u32 block_acks;
	cc_u32 block_is_drain;
	cc_u32 block_is_pulse;
	/* The application had no more to send; when the newest such packet was sent; the most in flight as one was sent, bytes. */
	cc_u32 block_is_limited;
	cc_u64 limited_ns;
	cc_u64 block_flight_bytes;

	/* Start-up. */
	struct mpc_pulse pulses[MPC_PULSES];
	cc_u64 started_pulses;
	cc_u64 judged_pulses;
	cc_u64 next_pulse_ns;
	/* The pulse that is being sent ends at this position; 0 = none. */
	cc_u64 pulse_to;

	/* Growth: g, rho where it began. The last block with a queue; where the queue came back. */
	cc_u64 growth;
	cc_u64 growth_from;
	cc_u64 queue_seen_ns;
	cc_u64 hold_until_ns;
	cc_u64 fair_from_ns;
	struct mpc_block snap;

	/* Drains: the present one or the last (0 = none, or judged), the next, when the present cycle began. */
	cc_u64 drain_ns;
	cc_u64 refill_ns;
	cc_u64 drain_end_ns;
	cc_u64 next_drain_ns;
	cc_u64 cycle_began_ns;
	cc_u64 cycle_ns;
	cc_u64 depth;
	cc_u64 drain_queue_ns;
	cc_u64 drain_rtt_ns;
	cc_u64 cycle_rtt_ns;
	cc_u64 drain_rtts[MPC_DRAINS];
	cc_u64 drains;
	cc_u64 emptied_ns;
	/* Another flow's drain: the dip of the queue it makes, so far. */
	cc_u32 in_dip;
	cc_u64 dip_queue_ns;
	cc_u64 dip_sent_ns;
	/* When the last drain that was heard began. */
	cc_u64 heard_ns;
};

/* ---------------------------------------------------------------------------------------------------------- arithmetic */

static inline cc_u64 mpc_of(cc_u64 value, cc_u64 param)
{
	return (value * param) >> MPC_PARAM_BITS;
}

/* a - b, or 0. */
static inline cc_u64 mpc_less(cc_u64 a, cc_u64 b)
{
	return a > b ? a - b : 0;
}

static inline cc_u64 mpc_distance(cc_u64 a, cc_u64 b)
{
	return a > b ? a - b : b - a;
}

static inline cc_u64 mpc_clamp(cc_u64 value, cc_u64 low, cc_u64 high)
{
	return cc_max(cc_min(value, high), low);
}

/* a / b as a fraction, at most 2^20. */
static inline cc_u64 mpc_share(cc_u64 a, cc_u64 b)
{
	return cc_min((cc_min(a, (cc_u64)1 << 43) << MPC_BITS) / cc_max(b, 1), (cc_u64)1 << 40);
}

/* The same of times with 28 bits, at most 2^6. */
static inline cc_u64 mpc_fine_share(cc_u64 a_ns, cc_u64 b_ns)
{
	return cc_min(mpc_share(cc_min(a_ns, MPC_MAX_NS) << (MPC_FINE_BITS - MPC_BITS), b_ns), MPC_FINE_ONE << 6);
}

/* `value`, at most 2^43, moved towards `goal` by the part `weight` of the way. */
static inline cc_u64 mpc_toward(cc_u64 value, cc_u64 goal, cc_u64 weight)
{
	weight = cc_min(weight, MPC_ONE);
	if (goal > value)
		return value + ((goal - value) * weight >> MPC_BITS);
	return value - ((value - goal) * weight >> MPC_BITS);
}

static inline cc_u64 mpc_slow_queue_ns(const struct mpc *mpc)
{
	return mpc->slow_queue >> MPC_SLOW_BITS;
}

static inline cc_u64 mpc_packet_ns(const struct mpc *mpc)
{
	return cc_min(cc_time(mpc->packet_bytes, mpc->rho), MPC_MAX_NS);
}

static inline void mpc_set_rho(struct mpc *mpc, cc_u64 rho)
{
	mpc->rho = mpc_clamp(cc_min(rho, mpc->params.cap), cc_min(mpc->least_rate, mpc->params.cap), MPC_MAX_RATE);
}

/* What follows from rho and tau until the next block. */
static inline void mpc_keep(struct mpc *mpc)
{
	cc_u64 ns = cc_min(mpc->tau_ns + mpc->queue_ns, MPC_MAX_NS);

	mpc->two_rtts_bytes = 2 * cc_bytes(mpc->rho, ns);
	mpc->byte_time = (CC_SECOND_NS << MPC_BYTE_BITS) / cc_max(mpc->rho, 1);
}

#endif
