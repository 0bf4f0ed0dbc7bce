/* SPDX-License-Identifier: MIT OR GPL-2.0-only */
/*
 * Flows that always have data, each let go by its meter, over one first-in first-out link to receivers that acknowledge every
 * second packet. Prints what the link and the meters measured from 5 s on, one "key value" a line.
 *
 *   link FLOWS RATE_MBIT RTT_US SECONDS
 */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "../mpc_tcp.h"

#define MOST_FLOWS 16
#define PACKET 1514u
#define PAYLOAD 1448u
#define HEADERS_AND_ACKS (1u << 20)

struct answer {
	cc_u64 at_ns;
	unsigned int flow;
	struct meter_ack ack;
};

struct end {
	struct meter meter;
	cc_u64 release_ns;
	cc_u32 next;
	cc_u32 held;
	cc_u32 held_tsval;
	cc_u64 bytes;
};

static struct end ends[MOST_FLOWS];
static struct answer answers[HEADERS_AND_ACKS];

int main(int argc, char **argv)
{
	unsigned int flows = argc == 5 ? (unsigned int)atoi(argv[1]) : 0, f;
	cc_u64 rate, rtt_ns, end_ns, now_ns = 0, free_ns = 0, first = 0, last = 0;
	double sum = 0, squares = 0, samples = 0, most = 0;

	if (!flows || flows > MOST_FLOWS)
		return 2;
	rate = (cc_u64)(atof(argv[2]) * 125000);
	rtt_ns = (cc_u64)(atof(argv[3]) * 1000);
	end_ns = (cc_u64)(atof(argv[4]) * 1e9);
	for (f = 0; f < flows; f++) {
		meter_init(&ends[f].meter, 0, PACKET, 7 + f);
		ends[f].next = 0xfff00000u;
	}
	for (;;) {
		unsigned int sender = 0;

		for (f = 1; f < flows; f++)
			if (ends[f].release_ns < ends[sender].release_ns)
				sender = f;
		if (first < last && answers[first % HEADERS_AND_ACKS].at_ns <= ends[sender].release_ns) {
			struct answer *a = &answers[first++ % HEADERS_AND_ACKS];
			cc_u64 heard_ns;

			now_ns = a->at_ns;
			heard_ns = meter_hear(&ends[a->flow].meter, now_ns, &a->ack);
			if (heard_ns && now_ns > 5 * CC_SECOND_NS) {
				double ms = (double)heard_ns / 1e6;

				sum += ms, squares += ms * ms, samples++;
				most = fmax(most, ms);
			}
			continue;
		}
		struct end *e = &ends[sender];
		struct meter_packet packet = { e->next, PAYLOAD, (cc_u32)(e->release_ns / 1000000), METER_HAS_TIMESTAMP };

		/* Before the first RTT there is a window of ten. */
		if (!e->meter.samples && e->meter.sent_bytes >= 10 * PACKET && first < last) {
			e->release_ns = answers[first % HEADERS_AND_ACKS].at_ns + 1;
			continue;
		}
		now_ns = e->release_ns;
		if (now_ns > end_ns)
			break;
		if (meter_is_limited(&e->meter, e->release_ns, now_ns))
			packet.flags |= METER_LIMITED;
		meter_depart(&e->meter, now_ns, &packet, PACKET);
		e->release_ns = meter_next_release(&e->meter, e->release_ns, now_ns, PACKET);
		e->next += PAYLOAD;
		free_ns = (free_ns > now_ns ? free_ns : now_ns) + PACKET * CC_SECOND_NS / rate;
		if (now_ns > 5 * CC_SECOND_NS)
			e->bytes += PACKET;
		if (!e->held++)
			e->held_tsval = packet.tsval;
		if (e->held == 2) {
			e->held = 0;
			answers[last++ % HEADERS_AND_ACKS] = (struct answer){
				.at_ns = free_ns + rtt_ns,
				.flow = sender,
				.ack = { .ack = e->next, .tsecr = e->held_tsval, .flags = METER_HAS_TIMESTAMP },
			};
		}
	}
	cc_u64 bytes = 0;

	for (f = 0; f < flows; f++) {
		bytes += ends[f].bytes;
		printf("flow_mbit %.3f\n", (double)ends[f].bytes / 125000 / ((double)end_ns / 1e9 - 5));
	}
	printf("utilisation %.4f\n", (double)bytes / ((double)end_ns / 1e9 - 5) / (double)rate);
	printf("rtt_mean_ms %.3f\nrtt_deviation_ms %.3f\nrtt_most_ms %.3f\nsamples %.0f\n", sum / samples,
	       sqrt(fmax(squares / samples - (sum / samples) * (sum / samples), 0)), most, samples);
	return 0;
}
