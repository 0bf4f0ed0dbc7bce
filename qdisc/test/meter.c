/* SPDX-License-Identifier: MIT OR GPL-2.0-only */
/*
 * What the meter makes of departures and ACKs, by hand-computed cases, and of bytes that are no TCP header. Prints what failed; the
 * exit status is how many.
 *
 *   meter            the cases
 *   meter params     the law's parameters, one a line
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "../mpc_tcp.h"

#define MS 1000000ull
#define FRAME 1514u
#define DATA 1448u

static int failures;

#define EXPECT(what, got, wanted)                                                                          \
	do {                                                                                               \
		unsigned long long got_ = (got), wanted_ = (wanted);                                       \
		if (got_ != wanted_) {                                                                     \
			printf("%s:%d: %s: %llu, expected %llu\n", __func__, __LINE__, what, got_, wanted_); \
			failures++;                                                                        \
		}                                                                                          \
	} while (0)

static struct meter fresh(void)
{
	static struct meter meter;

	memset(&meter, 0, sizeof(meter));
	meter_init(&meter, 0, FRAME, 1);
	return meter;
}

static void send_at(struct meter *m, cc_u64 ns, cc_u32 seq, cc_u32 tsval)
{
	struct meter_packet packet = { seq, DATA, tsval, METER_HAS_TIMESTAMP };

	meter_depart(m, ns, &packet, FRAME);
}

static cc_u64 hear_at(struct meter *m, cc_u64 ns, cc_u32 ack, cc_u32 tsecr)
{
	struct meter_ack answer = { .ack = ack, .tsecr = tsecr, .flags = METER_HAS_TIMESTAMP };

	return meter_hear(m, ns, &answer);
}

/* Ten packets share a timestamp, and each has an RTT of its own. The sequence numbers go round within them. */
static void a_coarse_clock(void)
{
	struct meter m = fresh();
	cc_u32 first = 0u - 5 * DATA, i;

	for (i = 0; i < 10; i++)
		send_at(&m, 10 * MS + i * MS / 10, first + i * DATA, 7);
	for (i = 0; i < 10; i++)
		EXPECT("RTT", hear_at(&m, 35 * MS + i * MS / 5, first + (i + 1) * DATA, 7), 25 * MS + i * MS / 10);
	EXPECT("samples", m.samples, 10);
	EXPECT("records", m.records, 0);
	EXPECT("delivered", m.delivered_bytes, 10 * FRAME);
	EXPECT("again", hear_at(&m, 40 * MS, first + 10 * DATA, 7), 0);
	EXPECT("beyond what was sent", hear_at(&m, 40 * MS, first + 11 * DATA, 7), 0);
}

/* One ACK for two packets, between which the clock ticks, echoes the first and tells the RTT of the second. */
static void an_ack_for_two(void)
{
	struct meter m = fresh();

	send_at(&m, 10 * MS, 1000, 7);
	send_at(&m, 14 * MS, 1000 + DATA, 8);
	EXPECT("RTT", hear_at(&m, 35 * MS, 1000 + 2 * DATA, 7), 21 * MS);
}

/* The timestamp says whether the first transmission or the second was answered. */
static void a_retransmission(void)
{
	struct meter m = fresh();

	send_at(&m, 10 * MS, 1000, 7);
	send_at(&m, 60 * MS, 1000, 57);
	EXPECT("retransmissions", m.retransmissions, 1);
	EXPECT("lost", m.lost_bytes, FRAME);
	EXPECT("RTT of the second", hear_at(&m, 85 * MS, 1000 + DATA, 57), 25 * MS);
	m = fresh();
	send_at(&m, 10 * MS, 1000, 7);
	send_at(&m, 60 * MS, 1000, 57);
	EXPECT("RTT of the first", hear_at(&m, 61 * MS, 1000 + DATA, 7), 51 * MS);
}

/* Without timestamps what was sent twice tells nothing (Karn), and what was sent after it does. */
static void no_timestamps(void)
{
	struct meter m = fresh();
	struct meter_packet packet = { 1000, DATA, 0, 0 };
	struct meter_ack answer = { .ack = 1000 + DATA };

	meter_depart(&m, 10 * MS, &packet, FRAME);
	EXPECT("RTT", meter_hear(&m, 35 * MS, &answer), 25 * MS);
	packet.seq += DATA;
	meter_depart(&m, 40 * MS, &packet, FRAME);
	meter_depart(&m, 90 * MS, &packet, FRAME);
	answer.ack += DATA;
	EXPECT("ambiguous", meter_hear(&m, 95 * MS, &answer), 0);
	packet.seq += DATA;
	meter_depart(&m, 100 * MS, &packet, FRAME);
	answer.ack += DATA;
	EXPECT("RTT again", meter_hear(&m, 126 * MS, &answer), 26 * MS);
}

/* Behind a gap selective ACKs go on measuring; the packet that fills it tells nothing of those that were there before. */
static void a_gap(void)
{
	struct meter m = fresh();
	struct meter_ack answer = { .ack = 1000, .tsecr = 7, .flags = METER_HAS_TIMESTAMP };
	cc_u32 i;

	for (i = 0; i < 4; i++)
		send_at(&m, (10 + i) * MS, 1000 + i * DATA, 7 + i);
	answer.sack_begin = 1000 + DATA;
	answer.sack_end = 1000 + 2 * DATA;
	EXPECT("second", meter_hear(&m, 36 * MS, &answer), 25 * MS);
	answer.sack_end = 1000 + 4 * DATA;
	EXPECT("fourth", meter_hear(&m, 38 * MS, &answer), 25 * MS);
	EXPECT("nothing new", meter_hear(&m, 39 * MS, &answer), 0);
	send_at(&m, 40 * MS, 1000, 37);
	EXPECT("the gap", hear_at(&m, 66 * MS, 1000 + 4 * DATA, 37), 26 * MS);
	EXPECT("lost", m.lost_bytes, FRAME);
	EXPECT("no timeout", m.timeouts, 0);
}

/* A retransmission long after the last ACK is a timeout's: what it declares lost is lost, and start-up begins anew. */
static void a_timeout(void)
{
	struct meter m = fresh();
	cc_u32 i;

	send_at(&m, 10 * MS, 1000, 7);
	hear_at(&m, 35 * MS, 1000 + DATA, 7);
	for (i = 1; i < 4; i++)
		send_at(&m, (35 + i) * MS, 1000 + i * DATA, 32 + i);
	send_at(&m, 300 * MS, 1000 + DATA, 297);
	EXPECT("timeouts", m.timeouts, 1);
	EXPECT("rate: two packets per RTT", m.rate, 2 * FRAME * 40);
	hear_at(&m, 325 * MS, 1000 + 2 * DATA, 297);
	send_at(&m, 326 * MS, 1000 + 2 * DATA, 323);
	EXPECT("lost", m.lost_bytes, 2 * FRAME);
	EXPECT("no loss beside the timeout", m.law.lost, 0);
}

/* More than 256 packets on the way: the records cover all of them, and what is found is of the newest not after the ACK. */
static void a_long_path(void)
{
	struct meter m = fresh();
	cc_u32 i;

	for (i = 0; i < 4000; i++)
		send_at(&m, 10 * MS + i * 10000, 1000 + i * DATA, 7);
	EXPECT("records stay", m.records <= METER_RECORDS, 1);
	for (i = 0; i < 4000; i += 2) {
		cc_u64 rtt_ns = hear_at(&m, 60 * MS + i * 10000, 1000 + (i + 1) * DATA, 7);

		if (rtt_ns && (rtt_ns < 50 * MS || rtt_ns > 50 * MS + 640000))
			EXPECT("RTT", rtt_ns, 50 * MS);
	}
	EXPECT("samples", m.samples > 60, 1);
}

static void pacing(void)
{
	struct meter m = fresh();

	EXPECT("unpaced", meter_next_release(&m, 0, 5 * MS, FRAME), 5 * MS);
	meter_set_cap(&m, 1514000);
	EXPECT("cap", meter_next_release(&m, 5 * MS, 5 * MS, FRAME), 6 * MS);
	EXPECT("a little late is made up for", meter_next_release(&m, 5 * MS, 5 * MS + 20000, FRAME), 6 * MS);
	EXPECT("idleness is not", meter_next_release(&m, 5 * MS, 50 * MS, FRAME), 51 * MS - 50000);
	EXPECT("limited", meter_is_limited(&m, 5 * MS, 50 * MS), 1);
	EXPECT("not limited", meter_is_limited(&m, 5 * MS, 5 * MS + 20000), 0);
	send_at(&m, 10 * MS, 1000, 7);
	hear_at(&m, 35 * MS, 1000 + DATA, 7);
	EXPECT("the law keeps to it", m.rate <= 1514000, 1);
	meter_set_cap(&m, CC_UNPACED);
	EXPECT("none", m.law.params.cap, MPC_MAX_RATE);
}

/* Another connection of the same addresses and ports begins elsewhere. */
static void another_connection(void)
{
	struct meter m = fresh();

	send_at(&m, 10 * MS, 1000, 7);
	send_at(&m, 20 * MS, 3000000000u, 7);
	EXPECT("no retransmission", m.retransmissions, 0);
	EXPECT("RTT", hear_at(&m, 45 * MS, 3000000000u + DATA, 7), 25 * MS);
}

static void headers(void)
{
	static const unsigned char sample[] = { 0x14, 0x51, 0, 80, 0, 0, 0, 9, 0, 0, 1, 0, 0xb0, 0x10, 0, 0, 0, 0, 0, 0, /* 44 bytes */
						1, 1, 8, 10, 0, 0, 2, 0, 0, 0, 3, 0, 5, 10, 0, 0, 4, 0, 0, 0, 5, 0, 0, 0 };
	struct tcp_header header;
	unsigned int round, bytes, i;

	EXPECT("reads", tcp_read(&header, sample, sizeof(sample)), 1);
	EXPECT("seq", header.seq, 9);
	EXPECT("ack", header.ack, 256);
	EXPECT("bytes", header.header_bytes, 44);
	EXPECT("timestamp", header.has_timestamp, 1);
	EXPECT("tsval", header.tsval, 512);
	EXPECT("tsecr", header.tsecr, 768);
	EXPECT("sack", header.sack_begin, 1024);
	EXPECT("sack", header.sack_end, 1280);
	EXPECT("too short", tcp_read(&header, sample, 43), 0);
	/* Anything, in memory of just that length: the sanitizer sees what is read beyond. */
	srand(1);
	for (round = 0; round < 200000; round++) {
		unsigned char *any;

		bytes = (unsigned int)rand() % (TCP_MOST_HEADER + 1);
		any = malloc(bytes ? bytes : 1);
		for (i = 0; i < bytes; i++)
			any[i] = (unsigned char)(rand() % 3 ? rand() % 12 : rand());
		if (bytes > 12 && rand() % 2)
			any[12] = (unsigned char)(bytes / 4 << 4);
		tcp_read(&header, any, bytes);
		free(any);
	}
}

/* Whatever departs and comes back, in any order: what is kept stays within its bounds. */
static void anything(void)
{
	struct meter m = fresh();
	cc_u64 now_ns = 0;
	unsigned int round;

	srand(2);
	for (round = 0; round < 300000; round++) {
		struct meter_packet packet = { (cc_u32)rand() % 4000 * 700, (cc_u32)rand() % 3 * 700, (cc_u32)(now_ns / MS), (cc_u32)rand() % 4 };
		struct meter_ack answer = { (cc_u32)rand() % 4000 * 700, (cc_u32)(now_ns / MS) - (cc_u32)rand() % 50,
					    (cc_u32)rand() % 4000 * 700, (cc_u32)rand() % 4000 * 700, (cc_u32)rand() % 2 };

		now_ns += (cc_u64)rand() % (rand() % 1000 ? MS / 5 : 400 * MS);
		if (rand() % 20 == 0)
			packet.seq = (cc_u32)rand() * 2u, answer.ack = packet.seq;
		if (rand() % 2)
			meter_depart(&m, now_ns, &packet, packet.payload_bytes + 66);
		else
			meter_hear(&m, now_ns, &answer);
		if (m.records > METER_RECORDS || m.lost_bytes > m.sent_bytes || m.delivered_bytes > m.sent_bytes || !m.rate ||
		    meter_next_release(&m, now_ns, now_ns, FRAME) > now_ns + 10 * CC_SECOND_NS) {
			printf("%s: round %u\n", __func__, round);
			failures++;
			return;
		}
	}
	EXPECT("heard", m.samples > 1000, 1);
}

int main(int argc, char **argv)
{
	if (argc > 1 && !strcmp(argv[1], "params")) {
		struct mpc_params params;
		const cc_u64 *value = &params.cap;
		unsigned int i;

		meter_params(&params);
		for (i = 0; i < sizeof(params) / sizeof(*value); i++)
			printf("%llu\n", value[i]);
		return 0;
	}
	a_coarse_clock();
	an_ack_for_two();
	a_retransmission();
	no_timestamps();
	a_gap();
	a_timeout();
	a_long_path();
	pacing();
	another_connection();
	headers();
	anything();
	return failures;
}
