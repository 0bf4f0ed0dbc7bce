/* SPDX-License-Identifier: MIT OR GPL-2.0-only */
/*
 * The host of the law bpf/algorithms/mpc.h in a queueing discipline: it sees a TCP flow's packets depart and the ACKs that come
 * back, and no socket. Out comes the rate at which the flow may depart. Plain C without kernel headers, so that tests run it
 * natively. All times are ns of one clock, sequence numbers those of TCP in host order.
 *
 * RTT: a departure is remembered with its time, its last sequence number and its timestamp (RFC 7323 TSval). An ACK is matched to
 * the newest departure that it covers; its TSecr says whether that was the transmission it answers. A timestamp alone would be too
 * coarse: all packets of a millisecond carry the same.
 */
#ifndef PACELINE_MPC_METER_H
#define PACELINE_MPC_METER_H

#include "../bpf/algorithms/mpc.h"

/* Departures that are remembered per flow. A power of two. */
#define METER_RECORDS 256u
/* About so many of them per RTT; a queue lets it grow by half before they must be thinned out. */
#define METER_RECORDS_PER_RTT 160u
/* Linux's least retransmission timeout beyond the RTT: a retransmission after so long without an ACK is a timeout's. */
#define METER_TIMEOUT_NS 200000000ull
#define METER_INITIAL_PACKETS 10

#define METER_HAS_TIMESTAMP 1u
/* The packet did not have to wait for its turn: the flow had nothing to send before. */
#define METER_LIMITED 2u
#define METER_RETRANSMISSION 4u

/* What TCP says in a packet of the flow. */
struct meter_packet {
	cc_u32 seq;
	cc_u32 payload_bytes;
	cc_u32 tsval;
	cc_u32 flags;
};

/* What TCP says in a packet of the way back. sack_end = sack_begin where no block is. */
struct meter_ack {
	cc_u32 ack;
	cc_u32 tsecr;
	cc_u32 sack_begin;
	cc_u32 sack_end;
	cc_u32 flags;
};

struct meter_record {
	cc_u64 sent_ns;
	/* All bytes that had departed, with this packet. */
	cc_u64 sent_bytes;
	cc_u32 end;
	cc_u32 tsval;
	cc_u32 flags;
};

struct meter {
	struct mpc law;
	/* May depart at this rate, bytes/s of whole frames; CC_UNPACED before the first RTT. */
	cc_u64 rate;
	cc_u64 cap;
	cc_u64 packet_bytes;
	/* Totals of whole frames. Lost is what had to be sent again. */
	cc_u64 sent_bytes;
	cc_u64 lost_bytes;
	cc_u64 delivered_bytes;
	/* Told as loss since the law heard an ACK. */
	cc_u64 step_lost_bytes;
	cc_u64 acked_ns;
	cc_u64 recorded_ns;
	cc_u64 spacing_ns;
	/* The last RTT and the least. */
	cc_u64 rtt_ns;
	cc_u64 min_rtt_ns;
	/* How many: RTTs, packets sent again, timeouts. */
	cc_u64 samples;
	cc_u64 retransmissions;
	cc_u64 timeouts;
	cc_u32 una;
	cc_u32 high;
	cc_u32 high_sacked;
	/* Without timestamps what was sent up to here tells nothing (Karn). */
	cc_u32 karn;
	/* Sent before the last timeout. */
	cc_u32 timeout_high;
	cc_u32 begun;
	cc_u32 first;
	cc_u32 records;
	struct meter_record ring[METER_RECORDS];
};

/* Sequence numbers go round. */
static inline int meter_after(cc_u32 a, cc_u32 b)
{
	return (int)(b - a) < 0;
}

static inline int meter_before(cc_u32 a, cc_u32 b)
{
	return (int)(a - b) < 0;
}

/* The law's parameters: the defaults of the registry of crates/cc, which a test compares. */
static inline void meter_params(struct mpc_params *params)
{
	params->cap = 0;
	params->queue_ns = 370000;
	params->rate_exponent = MPC_PARAM_ONE / 2;
	params->rtt_exponent = 13107;
	params->knee_ns = 2000000;
	params->horizon = MPC_PARAM_ONE / 2;
	params->fairness = MPC_PARAM_ONE / 16;
	params->restraint = MPC_PARAM_ONE * 3 / 2;
	params->memory = MPC_PARAM_ONE / 2;
	params->settle = 8 * MPC_PARAM_ONE;
	params->drain_interval = 10 * MPC_PARAM_ONE;
	params->drain_margin = MPC_PARAM_ONE / 4;
	params->growth = MPC_PARAM_ONE / 2;
	params->growth_max = 7864;
	params->hold = 85197;
	params->least_packets = 40;
	params->start_growth = 38339;
	params->start_queue = 786;
}

static inline struct meter_record *meter_record_at(struct meter *m, cc_u32 index)
{
	return &m->ring[(m->first + index) & (METER_RECORDS - 1)];
}

/* `m` is zeroed. */
static inline void meter_init(struct meter *m, cc_u64 now_ns, cc_u64 packet_bytes, cc_u64 seed)
{
	struct mpc_params params;
	struct cc_path path = { .now_ns = now_ns, .initial_window_packets = METER_INITIAL_PACKETS, .seed = seed };

	m->packet_bytes = cc_min(cc_max(packet_bytes, 64), 1 << 16);
	path.packet_bytes = (cc_u32)m->packet_bytes;
	meter_params(&params);
	mpc_init(&m->law, &path, &params);
	m->rate = CC_UNPACED;
	m->cap = CC_UNPACED;
	m->acked_ns = now_ns;
	m->min_rtt_ns = CC_NONE;
}

static inline void meter_set_packet(struct meter *m, cc_u64 now_ns, cc_u64 packet_bytes)
{
	struct cc_path path = { .now_ns = now_ns, .packet_bytes = (cc_u32)packet_bytes };

	if (packet_bytes <= m->packet_bytes || packet_bytes > 1 << 16)
		return;
	m->packet_bytes = packet_bytes;
	mpc_on_path_change(&m->law, &path);
}

/* The flow's cap, bytes/s; CC_UNPACED = none. The law knows it, and does not take it for the path's. */
static inline void meter_set_cap(struct meter *m, cc_u64 cap)
{
	struct mpc_params none = { .cap = 0 };

	if (cap == m->cap)
		return;
	m->cap = cap;
	mpc_set_cap(&m->law, &none, cc_max(cc_min(cap, MPC_MAX_RATE), 1));
}

/* The rate at which the flow may depart now. */
static inline cc_u64 meter_rate(const struct meter *m)
{
	return cc_max(cc_min(m->rate, m->cap), 1);
}

/* ------------------------------------------------------------------------------------------------------------- departures */

/* Every second record goes, and from now on half as many come: the resolution halves, the reach doubles. */
static inline void meter_thin_out(struct meter *m)
{
	cc_u32 i;

	for (i = 0; i < METER_RECORDS / 2; i++)
		*meter_record_at(m, i) = *meter_record_at(m, 2 * i + 1);
	m->records = METER_RECORDS / 2;
	m->spacing_ns = cc_min(cc_max(2 * m->spacing_ns, 1000), CC_SECOND_NS);
}

static inline void meter_record(struct meter *m, cc_u64 now_ns, const struct meter_packet *packet, cc_u32 flags)
{
	struct meter_record *record;

	if (m->records && now_ns - m->recorded_ns < m->spacing_ns)
		return;
	if (m->records == METER_RECORDS)
		meter_thin_out(m);
	record = meter_record_at(m, m->records++);
	record->sent_ns = now_ns;
	record->sent_bytes = m->sent_bytes;
	record->end = packet->seq + packet->payload_bytes;
	record->tsval = packet->tsval;
	record->flags = flags;
	m->recorded_ns = now_ns;
}

/* Sent before: the copy was lost, or everything was. */
static inline void meter_send_again(struct meter *m, cc_u64 now_ns, cc_u32 end, cc_u64 bytes)
{
	cc_u64 sent_bytes = m->sent_bytes - m->lost_bytes;
	cc_u64 in_flight = mpc_less(sent_bytes, m->delivered_bytes);

	m->retransmissions++;
	m->karn = m->high;
	if (now_ns - m->acked_ns > m->rtt_ns + METER_TIMEOUT_NS) {
		struct cc_timeout timeout = { .now_ns = now_ns, .in_flight_bytes = in_flight, .consecutive = 1 };

		/* Until the next ACK or timeout. */
		m->acked_ns = now_ns;
		m->timeouts++;
		m->timeout_high = m->high;
		m->records = 0;
		mpc_on_rto(&m->law, &timeout);
		m->rate = m->law.base_ns ? m->law.rate : CC_UNPACED;
	}
	m->lost_bytes += cc_min(bytes, sent_bytes);
	/* What a timeout declares lost is not told as loss. */
	if (meter_after(end, m->timeout_high) || !m->timeouts) {
		struct cc_loss loss = {
			.now_ns = now_ns,
			.lost_bytes = bytes,
			.lost_packets = 1,
			.newest_lost_sent_ns = now_ns - cc_min(now_ns, m->rtt_ns),
			.in_flight_bytes = mpc_less(in_flight, bytes),
			.prior_in_flight_bytes = in_flight,
			.tx_in_flight_bytes = in_flight,
			.lost_since_sent_bytes = bytes,
		};

		m->step_lost_bytes += bytes;
		mpc_on_loss(&m->law, &loss);
	}
}

/* A packet of `bytes` on the wire departs. */
static inline void meter_depart(struct meter *m, cc_u64 now_ns, const struct meter_packet *packet, cc_u64 bytes)
{
	cc_u32 end = packet->seq + packet->payload_bytes, flags = packet->flags;

	if (!packet->payload_bytes) {
		m->sent_bytes += bytes;
		return;
	}
	/* A jump that no window allows: another connection of the same ports. */
	if (!m->begun || packet->seq - m->una + (1u << 30) > 1u << 31) {
		m->begun = 1;
		m->una = m->high = m->high_sacked = m->karn = m->timeout_high = packet->seq;
		m->records = 0;
		m->acked_ns = now_ns;
	} else if (meter_before(packet->seq, m->high)) {
		flags |= METER_RETRANSMISSION;
		meter_send_again(m, now_ns, end, bytes);
	} else if (m->una == m->high) {
		struct cc_resume resume = { .now_ns = now_ns, .idle_ns = mpc_less(now_ns, m->acked_ns) };

		mpc_on_resume(&m->law, &resume);
		m->acked_ns = now_ns;
	}
	m->sent_bytes += bytes;
	meter_record(m, now_ns, packet, flags);
	if (meter_after(end, m->high))
		m->high = end;
}

/* ------------------------------------------------------------------------------------------------------------------- ACKs */

/* Whether the ACK answers this transmission, as far as timestamps can say. */
static inline int meter_answers(const struct meter *m, const struct meter_ack *ack, const struct meter_record *record)
{
	if (!(ack->flags & METER_HAS_TIMESTAMP) || !(record->flags & METER_HAS_TIMESTAMP))
		return !(record->flags & METER_RETRANSMISSION) && meter_after(record->end, m->karn);
	if (record->flags & METER_RETRANSMISSION)
		return record->tsval == ack->tsecr;
	/* One ACK for several packets echoes the first of them (RFC 7323, 4.3); the one that fills a gap echoes that one. */
	return !meter_before(record->tsval, ack->tsecr);
}

/* Takes all departures out that are acknowledged. The newest that the ACK answers, in `found`; whether there is one. */
static inline int meter_take(struct meter *m, const struct meter_ack *ack, struct meter_record *found)
{
	int any = 0;

	while (m->records && !meter_after(meter_record_at(m, 0)->end, ack->ack)) {
		if (meter_answers(m, ack, meter_record_at(m, 0))) {
			*found = *meter_record_at(m, 0);
			any = 1;
		}
		m->first++;
		m->records--;
	}
	return any;
}

/* Behind a gap the first block of a selective ACK has the packet that made it (RFC 2018, 4). Sent once, it is not ambiguous. */
static inline int meter_find_sacked(struct meter *m, const struct meter_ack *ack, struct meter_record *found)
{
	cc_u32 i;
	int any = 0;

	for (i = 0; i < m->records; i++) {
		const struct meter_record *record = meter_record_at(m, i);

		if (meter_after(record->end, ack->sack_begin) && !meter_after(record->end, ack->sack_end) &&
		    meter_after(record->end, m->high_sacked) && !(record->flags & METER_RETRANSMISSION)) {
			*found = *record;
			any = 1;
		}
	}
	return any;
}

static inline void meter_tell(struct meter *m, cc_u64 now_ns, const struct meter_record *record)
{
	cc_u64 left_bytes = m->sent_bytes - m->lost_bytes, prior = m->delivered_bytes;
	cc_u64 rtt_ns = cc_max(mpc_less(now_ns, record->sent_ns), 1);
	struct cc_ack ack = { .now_ns = now_ns, .rtt_ns = rtt_ns, .srtt_ns = rtt_ns, .sent_ns = record->sent_ns };

	m->delivered_bytes = cc_min(cc_max(prior, mpc_less(record->sent_bytes, m->lost_bytes)), left_bytes);
	m->rtt_ns = rtt_ns;
	m->min_rtt_ns = cc_min(m->min_rtt_ns, rtt_ns);
	m->samples++;
	m->spacing_ns = rtt_ns / METER_RECORDS_PER_RTT;
	ack.acked_bytes = m->delivered_bytes - prior;
	ack.acked_packets = (cc_u32)(ack.acked_bytes / m->packet_bytes);
	ack.in_flight_bytes = left_bytes - m->delivered_bytes;
	ack.prior_in_flight_bytes = mpc_less(left_bytes, prior);
	ack.min_rtt_ns = m->min_rtt_ns;
	ack.delivered_total_bytes = m->delivered_bytes;
	/* The law adds the two: what had been sent. */
	ack.prior_delivered_total_bytes = record->sent_bytes;
	ack.lost_since_sent_bytes = m->lost_bytes - m->step_lost_bytes;
	ack.flags = CC_ACK_CUMULATIVE;
	if (record->flags & METER_LIMITED)
		ack.flags |= CC_ACK_APP_LIMITED;
	if (record->flags & METER_RETRANSMISSION)
		ack.flags |= CC_ACK_RETRANSMIT;
	m->step_lost_bytes = 0;
	mpc_on_ack(&m->law, &ack);
	m->rate = m->law.base_ns ? m->law.rate : CC_UNPACED;
}

/* The RTT that the ACK tells, or 0. */
static inline cc_u64 meter_hear(struct meter *m, cc_u64 now_ns, const struct meter_ack *ack)
{
	struct meter_record record;
	int found = 0;

	if (!m->begun || meter_after(ack->ack, m->high) || meter_before(ack->ack, m->una))
		return 0;
	m->acked_ns = now_ns;
	if (ack->ack != m->una) {
		found = meter_take(m, ack, &record);
		m->una = ack->ack;
	} else if (ack->sack_begin != ack->sack_end && meter_after(ack->sack_end, m->una) &&
		   !meter_after(ack->sack_end, m->high)) {
		found = meter_find_sacked(m, ack, &record);
	}
	if (meter_before(m->high_sacked, m->una))
		m->high_sacked = m->una;
	if (ack->sack_begin != ack->sack_end && meter_after(ack->sack_end, m->high_sacked) && !meter_after(ack->sack_end, m->high))
		m->high_sacked = ack->sack_end;
	if (!found)
		return 0;
	meter_tell(m, now_ns, &record);
	return m->rtt_ns;
}

/* ----------------------------------------------------------------------------------------------------------------- pacing */

/* Timers are late; what a flow missed by that it may make up for. */
static inline cc_u64 meter_credit_ns(const struct meter *m)
{
	return cc_min(cc_max(m->law.tau_ns / 64, 50000), 1000000);
}

/* Whether a packet that departs now, and was due at `release_ns`, has kept the flow waiting: it had none before. */
static inline int meter_is_limited(const struct meter *m, cc_u64 release_ns, cc_u64 now_ns)
{
	return now_ns > release_ns + meter_credit_ns(m);
}

/* When the next packet may depart, after one of `bytes` that was due at `release_ns` departs now. */
static inline cc_u64 meter_next_release(const struct meter *m, cc_u64 release_ns, cc_u64 now_ns, cc_u64 bytes)
{
	cc_u64 rate = meter_rate(m), credit_ns = meter_credit_ns(m);

	release_ns = cc_max(release_ns, mpc_less(now_ns, credit_ns));
	if (rate >= MPC_MAX_RATE)
		return now_ns;
	/* No rate of the law keeps a packet for so long, and a cap changes before. */
	return release_ns + cc_min(cc_time(bytes, rate), 10 * CC_SECOND_NS);
}

#endif
