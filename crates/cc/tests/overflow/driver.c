/* SPDX-License-Identifier: MIT OR GPL-2.0-only */
/*
 * Drives one C algorithm to the corners of the envelope that cc_abi.h's hosts keep, under the compiler's checks of every
 * operation. crates/cc/tests/overflow.rs compiles it with
 *
 *   ALGORITHM   NAME of the algorithm
 *   HEADER      its header, quoted
 *   HOSTILE     1: events hold any numbers at all
 *
 * and a header params.h with the ends of its parameters' ranges. Arguments: seed, how many flows.
 */
#include <stdio.h>
#include <stdlib.h>

#include HEADER
#include "params.h"

#define JOIN_(a, b) a##b
#define JOIN(a, b) JOIN_(a, b)
#define CALL(callback) JOIN(JOIN(ALGORITHM, _), callback)

#define SECOND 1000000000ull

static cc_u64 random_state;

/* SplitMix64 (Steele, Lea and Flood 2014), which wraps on purpose. */
__attribute__((no_sanitize("unsigned-integer-overflow", "unsigned-shift-base")))
static cc_u64 random_bits(void)
{
	cc_u64 z = random_state += 0x9e3779b97f4a7c15ull;

	z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9ull;
	z = (z ^ (z >> 27)) * 0x94d049bb133111ebull;
	return z ^ (z >> 31);
}

static cc_u64 below(cc_u64 n)
{
	return random_bits() % n;
}

static int one_in(cc_u64 n)
{
	return below(n) == 0;
}

/* Of any magnitude between two numbers, both ends being likely. */
static cc_u64 between(cc_u64 low, cc_u64 high)
{
	cc_u64 value, digits = 0;

	if (one_in(16))
		return low;
	if (one_in(16))
		return high;
	while (digits < 64 && high >> digits)
		digits++;
	value = random_bits() >> (64 - cc_max(1, below(digits + 1)));
	return value < low ? low : value > high ? high : value;
}

/* Anything. */
static cc_u64 any(void)
{
	switch (below(4)) {
	case 0:
		return 0;
	case 1:
		return CC_NONE >> below(64);
	case 2:
		return random_bits() >> below(64);
	default:
		return below(256);
	}
}

/* A flow's path, and what its host counts. */
struct host {
	cc_u64 now_ns;
	cc_u64 capacity;
	cc_u64 base_ns;
	cc_u64 queue_ns;
	cc_u64 packet_bytes;
	/* ACKs per RTT, about: what looks at bursts needs many. */
	cc_u64 acks_per_rtt;
	cc_u64 delivered;
	cc_u64 flight;
	cc_u64 lost;
	struct cc_control control;
};

static void pick_path(struct host *host)
{
	/* 1 kbit/s to 8 Tbit/s, 1 us to 16 s. */
	host->capacity = between(125, 1000000000000ull);
	host->base_ns = between(1000, 16 * SECOND);
	host->queue_ns = 0;
}

static void pick_packet(struct host *host, struct cc_path *path)
{
	host->packet_bytes = between(64, 65536);
	path->now_ns = host->now_ns;
	path->packet_bytes = (cc_u32)host->packet_bytes;
	path->initial_window_packets = (cc_u32)between(1, 65536);
	path->seed = random_bits();
}

/* Time passes, and the queue with it: as the rate sent makes it, or by a jump. */
static void step(struct host *host)
{
	double rate = host->control.pacing_bytes_per_s == CC_UNPACED ? (double)host->capacity
								     : (double)host->control.pacing_bytes_per_s;
	cc_u64 most_ns = 16 * SECOND - host->base_ns, rtt_ns = host->base_ns + host->queue_ns;
	cc_u64 step_ns = between(1, 2 * rtt_ns / host->acks_per_rtt + 1);
	double queue_ns = (double)host->queue_ns + (rate / (double)host->capacity - 1.0) * (double)step_ns;
	double flight = (double)host->capacity * (double)rtt_ns / 1e9, bytes = (double)host->capacity * (double)step_ns / 1e9;

	host->queue_ns = queue_ns < 0.0 ? 0 : queue_ns > (double)most_ns ? most_ns : (cc_u64)queue_ns;
	if (one_in(4 * host->acks_per_rtt))
		host->queue_ns = between(0, most_ns);
	if (one_in(25 * host->acks_per_rtt))
		pick_path(host);
	if (one_in(25 * host->acks_per_rtt))
		step_ns = between(1, 3600 * SECOND);
	host->now_ns += step_ns;
	host->flight = (cc_u64)flight + host->packet_bytes;
	host->delivered += (cc_u64)bytes + 1;
}

static struct cc_ack ack_of(struct host *host)
{
	cc_u64 rtt_ns = cc_min(host->base_ns + host->queue_ns, host->now_ns);
	struct cc_ack ack = {
		.now_ns = host->now_ns,
		.acked_bytes = between(1, 64) * host->packet_bytes,
		.acked_packets = (cc_u32)between(1, 64),
		.ce_packets = (cc_u32)below(2),
		.in_flight_bytes = host->flight,
		.prior_in_flight_bytes = host->flight + host->packet_bytes,
		.rtt_ns = one_in(100) ? 0 : rtt_ns,
		.srtt_ns = rtt_ns,
		.min_rtt_ns = host->base_ns,
		.sent_ns = host->now_ns - rtt_ns,
		.delivered_bytes = cc_min(host->flight, host->delivered),
		.interval_ns = rtt_ns,
		.delivered_total_bytes = host->delivered,
		.prior_delivered_total_bytes = host->delivered - cc_min(host->flight, host->delivered),
		.tx_in_flight_bytes = one_in(50) ? between(0, (cc_u64)1 << 45) : host->flight,
		.lost_since_sent_bytes = one_in(20) ? between(0, host->flight) : 0,
		.burst_bytes = one_in(4) ? (cc_u32)between(0, 1 << 17) : 0,
		.flags = (cc_u32)(one_in(8) ? below(32) : CC_ACK_CWND_LIMITED | CC_ACK_CUMULATIVE),
	};
	cc_u64 word;

	if (HOSTILE && one_in(2)) {
		/* All but the time, word by word. */
		for (word = 1; word < sizeof(ack) / sizeof(cc_u64); word++)
			if (one_in(2))
				((cc_u64 *)&ack)[word] = any();
	}
	return ack;
}

static void on_loss(struct host *host, struct ALGORITHM *state)
{
	struct cc_loss loss = {
		.now_ns = host->now_ns,
		.lost_bytes = HOSTILE ? any() : between(1, host->flight + 1),
		.newest_lost_sent_ns = host->now_ns - cc_min(host->now_ns, host->base_ns),
		.in_flight_bytes = HOSTILE ? any() : host->flight,
		.prior_in_flight_bytes = HOSTILE ? any() : host->flight * 2,
		.lost_packets = 1,
		.flags = (cc_u32)below(4),
		.tx_in_flight_bytes = HOSTILE ? any() : host->flight,
		.lost_since_sent_bytes = HOSTILE ? any() : between(0, host->flight),
	};

	/* What is lost in a flow's life is bounded as what is delivered. */
	host->lost += HOSTILE ? 0 : loss.lost_bytes;
	if (host->lost < (cc_u64)1 << 61)
		CALL(on_loss)(state, &loss);
}

static void event(struct host *host, struct ALGORITHM *state)
{
	/* Few of an RTT's events are something else than an ACK. */
	cc_u64 kind = below(100 * host->acks_per_rtt);
	struct cc_ack ack;

	if (kind < 200) {
		on_loss(host, state);
	} else if (kind < 202) {
		struct cc_timeout timeout = { .now_ns = host->now_ns, .in_flight_bytes = host->flight, .consecutive = 1 };

		CALL(on_rto)(state, &timeout);
	} else if (kind < 220) {
		struct cc_undo undo = { .now_ns = host->now_ns, .started_ns = host->now_ns - cc_min(host->now_ns, host->base_ns) };

		CALL(on_spurious_loss)(state, &undo);
	} else if (kind < 230) {
		struct cc_resume resume = { .now_ns = host->now_ns, .idle_ns = between(1, 3600 * SECOND) };

		CALL(on_resume)(state, &resume);
	} else if (kind < 240) {
		struct cc_path path;

		pick_packet(host, &path);
		CALL(on_path_change)(state, &path);
	} else if (kind < 250) {
		CALL(on_timer)(state, host->now_ns);
	} else {
		ack = ack_of(host);
		CALL(on_ack)(state, &ack);
	}
}

static void require(int holds, const char *what, const struct host *host)
{
	if (holds)
		return;
	fprintf(stderr, "%s: window %llu, rate %llu, packet %llu\n", what, host->control.cwnd_bytes,
		host->control.pacing_bytes_per_s, host->packet_bytes);
	exit(1);
}

static void flow(void)
{
	struct ALGORITHM state = { 0 };
	union {
		struct JOIN(ALGORITHM, _params) params;
		cc_u64 values[sizeof(struct JOIN(ALGORITHM, _params)) / sizeof(cc_u64)];
	} params;
	struct host host = { 0 };
	struct cc_path path;
	cc_u64 out[JOIN(ALGORITHM, _fields)];
	cc_u64 events;
	cc_u32 i;

	for (i = 0; i < sizeof(params) / sizeof(cc_u64); i++)
		params.values[i] = one_in(2) ? PARAM_DEFAULTS[i] : between(PARAM_MINS[i], PARAM_MAXES[i]);
	pick_path(&host);
	host.acks_per_rtt = (cc_u64)16 << 3 * below(4);
	/* No packet was sent before the origin of time. */
	host.now_ns = 16 * SECOND + (one_in(2) ? between(0, (cc_u64)1 << 61) : 0);
	host.delivered = one_in(2) ? between(1, (cc_u64)1 << 60) : 0;
	pick_packet(&host, &path);
	CALL(init)(&state, &path, &params.params);
	CALL(control)(&state, &host.control);
	events = cc_min(200 * host.acks_per_rtt, 100000);
	for (i = 0; i < events && host.delivered < (cc_u64)1 << 61; i++) {
		step(&host);
		event(&host, &state);
		CALL(control)(&state, &host.control);
		CALL(observe)(&state, out);
		require(host.control.cwnd_bytes >= host.packet_bytes && host.control.cwnd_bytes < (cc_u64)1 << 62, "window", &host);
		require(host.control.pacing_bytes_per_s > 0, "rate", &host);
	}
}

int main(int argc, char **argv)
{
	cc_u64 flows = argc > 2 ? strtoull(argv[2], NULL, 10) : 1;

	random_state = argc > 1 ? strtoull(argv[1], NULL, 10) : 0;
	for (; flows; flows--)
		flow();
	return 0;
}
