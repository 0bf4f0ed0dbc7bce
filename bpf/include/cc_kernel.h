/* SPDX-License-Identifier: MIT OR GPL-2.0-only */
/*
 * The host of a controller in the kernel: between struct tcp_congestion_ops and the contract of cc_abi.h. A program is
 *
 *   #include "algorithms/NAME.h"
 *   #define CC_ALGORITHM NAME
 *   #include "include/cc_kernel.h"
 *
 *
 * The kernel counts packets and paces payload, the algorithm sees bytes of whole packets (IP header included): both are
 * converted here. docs/kernel.md says what the kernel does not provide.
 */
#ifndef PACELINE_CC_KERNEL_H
#define PACELINE_CC_KERNEL_H

#include "flow.h"
#include "kernel.h"

#define CC_JOIN_(a, b) a##b
#define CC_JOIN(a, b) CC_JOIN_(a, b)
/* A function of the algorithm. */
#define algorithm(function) CC_JOIN(CC_ALGORITHM, function)

/* The operator's table is looked up this often. */
#define HOST_TABLE_NS 10000000ull
/*
 * RTTs below this count as this: what a shorter one varies by is the scheduler's, on loopback some tens of us, and no queue of a path.
 */
#define HOST_LEAST_RTT_NS 100000ull
/* Keeps products of rates with packet sizes within 64 bits. */
#define HOST_MAX_RATE ((cc_u64)1 << 42)
/* The kernel's largest segment, bytes of payload, but for devices that allow more. */
#define HOST_MAX_SEGMENT 65536u

struct cc_flow {
	struct cc_host host;
	struct CC_ALGORITHM state;
};

struct {
	MAP_UINT(type, BPF_MAP_TYPE_SK_STORAGE);
	MAP_UINT(map_flags, BPF_F_NO_PREALLOC);
	MAP_TYPE(key, int);
	MAP_TYPE(value, struct cc_flow);
} paceline_flows SEC(".maps");

struct {
	MAP_UINT(type, BPF_MAP_TYPE_HASH);
	MAP_UINT(map_flags, BPF_F_NO_PREALLOC);
	MAP_UINT(max_entries, 4096);
	MAP_TYPE(key, struct cc_cap_key);
	MAP_TYPE(value, cc_u64);
} paceline_caps SEC(".maps");

/* All read-only data. Filled in by the loader before the programs are verified. */
const volatile struct {
	/* Which argument of cong_control is the rate sample: 1 before Linux 6.10, since then 3. */
	cc_u64 sample_argument;
	/* 1: what the algorithm is told, and what it answers, is recorded. */
	cc_u64 record;
	/* For the recording: how the registry calls the algorithm. */
	char algorithm[16];
	struct CC_JOIN(CC_ALGORITHM, _params) params;
} cc_settings = { .sample_argument = 3 };

/* The address is hidden from the compiler: it would take the zeros above for the values. */
static inline const struct CC_JOIN(CC_ALGORITHM, _params) *host_params(void)
{
	const struct CC_JOIN(CC_ALGORITHM, _params) *params = (const void *)&cc_settings.params;

	asm volatile("" : "+r"(params));
	return params;
}

#include "recorder.h"

/* -------------------------------------------------------------------------------------------------------------- outputs */

static inline struct cc_flow *host_flow(struct tcp_sock *tp)
{
	return bpf_sk_storage_get(&paceline_flows, tp, 0, 0);
}

static inline struct sock *host_sock(struct tcp_sock *tp)
{
	return &tp->inet_conn.icsk_inet.sk;
}

/* Bytes/s of whole packets as the kernel paces: whole packets too if the queueing discipline does it, else payload. */
static inline cc_u64 host_to_kernel_rate(struct tcp_sock *tp, const struct cc_host *host, cc_u64 rate)
{
	if (rate == CC_UNPACED || host_sock(tp)->sk_pacing_status == SK_PACING_FQ)
		return rate;
	return cc_min(rate, HOST_MAX_RATE) * host->payload_bytes / cc_max(host->packet_bytes, 1);
}

static inline cc_u64 host_from_kernel_rate(struct tcp_sock *tp, const struct cc_host *host, cc_u64 rate)
{
	if (rate == CC_UNPACED || host_sock(tp)->sk_pacing_status == SK_PACING_FQ)
		return rate;
	return cc_min(rate, HOST_MAX_RATE) * host->packet_bytes / cc_max(host->payload_bytes, 1);
}

static inline void host_apply(struct tcp_sock *tp, struct cc_flow *flow)
{
	struct cc_host *host = &flow->host;
	cc_u64 packets, rate;
	struct cc_control control;

	algorithm(_control)(&flow->state, &control);
	host->control = control;
	host_record(host, CC_RECORD_CONTROL, &control, sizeof(control));
	packets = control.cwnd_bytes / cc_max(host->packet_bytes, 1);
	tp->snd_cwnd = (cc_u32)cc_max(cc_min(packets, tp->snd_cwnd_clamp), 1);
	if (control.pacing_bytes_per_s == CC_UNPACED && host->cap_bytes_per_s == CC_UNPACED) {
		/*
		 * The window alone. The rate still tells the kernel how much to send as one segment: as for its own algorithms, twice
		 * a window per RTT.
		 */
		if (host->srtt_ns)
			host_sock(tp)->sk_pacing_rate = cc_rate(2 * packets * host->payload_bytes, host->srtt_ns);
		return;
	}
	rate = cc_min(host_to_kernel_rate(tp, host, control.pacing_bytes_per_s), host->cap_bytes_per_s);
	/* Over loopback there is no link, RTTs are shorter than a segment's time, and a timer for every segment costs half of the rate. */
	if (host->is_loopback && host->cap_bytes_per_s == CC_UNPACED)
		rate = CC_UNPACED;
	host_sock(tp)->sk_pacing_rate = cc_max(rate, 1);
	if (host_sock(tp)->sk_pacing_status == SK_PACING_NONE)
		host_sock(tp)->sk_pacing_status = SK_PACING_NEEDED;
}

/* ----------------------------------------------------------------------------------------------------------------- caps */

/* The operator's cap for this destination: the one with its port, else the one for every port. */
static inline cc_u64 host_table_cap(struct tcp_sock *tp)
{
	struct sock_common *common = &host_sock(tp)->__sk_common;
	struct cc_cap_key key = {};
	cc_u64 *cap;

	kernel_remote_address(common, key.address);
	key.port = common->skc_dport;
	cap = bpf_map_lookup_elem(&paceline_caps, &key);
	if (!cap) {
		key.port = 0;
		cap = bpf_map_lookup_elem(&paceline_caps, &key);
	}
	return cap ? *cap : CC_UNPACED;
}

static inline cc_u32 host_is_loopback(struct tcp_sock *tp)
{
	struct dst_entry *route = host_sock(tp)->sk_dst_cache;

	return route && route->dev && route->dev->flags & IFF_LOOPBACK;
}

static inline void host_read_cap(struct tcp_sock *tp, struct cc_flow *flow, cc_u64 now_ns)
{
	struct cc_host *host = &flow->host;
	cc_u64 cap = host_sock(tp)->sk_max_pacing_rate;

	if (now_ns >= host->table_due_ns) {
		host->table_due_ns = now_ns + HOST_TABLE_NS;
		host->is_loopback = host_is_loopback(tp);
		host->table_cap_bytes_per_s = host_table_cap(tp);
	}
	cap = cc_min(cap, host->table_cap_bytes_per_s);
	if (cap == host->cap_bytes_per_s)
		return;
	host->cap_bytes_per_s = cap;
#ifdef CC_SET_CAP
	cap = host_from_kernel_rate(tp, host, cap);
	host_record(host, CC_RECORD_CAP, &cap, sizeof(cap));
	CC_SET_CAP(&flow->state, host_params(), cap);
#endif
}

/* ---------------------------------------------------------------------------------------------------------- what it tells */

static inline cc_u32 host_in_flight(struct tcp_sock *tp)
{
	return tp->packets_out - tp->sacked_out - tp->lost_out + tp->retrans_out;
}

static inline cc_u64 host_bytes(const struct cc_host *host, cc_u32 packets)
{
	return (cc_u64)packets * host->packet_bytes;
}

static inline int host_read_packet_size(struct tcp_sock *tp, struct cc_host *host)
{
	cc_u32 ip_bytes = host_sock(tp)->__sk_common.skc_family == AF_INET6 ? 40 : 20;

	if (host->payload_bytes == tp->mss_cache)
		return 0;
	host->payload_bytes = tp->mss_cache;
	host->packet_bytes = tp->mss_cache + tp->tcp_header_len + ip_bytes;
	return 1;
}

static inline void host_fill_path(struct tcp_sock *tp, const struct cc_host *host, struct cc_path *path, cc_u64 now_ns)
{
	path->now_ns = now_ns;
	path->packet_bytes = host->packet_bytes;
	path->initial_window_packets = tp->snd_cwnd;
	path->seed = (cc_u64)bpf_get_prandom_u32() << 32 | bpf_get_prandom_u32();
}

/* The gap that was when `delivered` packets had been delivered: the newest that is not younger. */
static inline const struct cc_gap *host_gap_at(const struct cc_host *host, cc_u32 delivered)
{
	const struct cc_gap *gap = &host->gaps[(host->gaps_kept - 1) & (CC_GAPS - 1)];
	cc_u32 back;

	for (back = 2; back <= CC_GAPS && (cc_s32)(delivered - gap->delivered) < 0; back++)
		gap = &host->gaps[(host->gaps_kept - back) & (CC_GAPS - 1)];
	return gap;
}

static inline void host_keep_gap(struct tcp_sock *tp, struct cc_host *host)
{
	const struct cc_gap *last = &host->gaps[(host->gaps_kept - 1) & (CC_GAPS - 1)];
	cc_u32 missing = tp->lost_out - tp->retrans_out;
	struct cc_gap *gap;

	if (last->lost == tp->lost && last->missing == missing)
		return;
	gap = &host->gaps[host->gaps_kept++ & (CC_GAPS - 1)];
	gap->delivered = tp->delivered;
	gap->lost = tp->lost;
	gap->missing = missing;
}

/* Packets newly found lost since the last ACK. A timeout's are not told: the timeout tells. */
static inline cc_u32 host_tell_loss(struct tcp_sock *tp, struct cc_flow *flow, const struct rate_sample *sample, cc_u64 now_ns)
{
	struct cc_host *host = &flow->host;
	cc_u32 lost = tp->lost - host->lost;
	struct cc_loss loss = {};

	host->lost = tp->lost;
	if (host->ca_state < TCP_CA_Recovery)
		host->in_episode = 0;
	if (!lost)
		return 0;
	host->lost_packets += lost;
	loss.now_ns = now_ns;
	loss.lost_bytes = host_bytes(host, lost);
	loss.lost_packets = lost;
	/* Which packets were lost, the kernel does not say: those of a round trip ago, about. */
	loss.newest_lost_sent_ns = now_ns - cc_min(host->srtt_ns, now_ns);
	loss.in_flight_bytes = host_bytes(host, host_in_flight(tp));
	loss.prior_in_flight_bytes = host_bytes(host, sample->prior_in_flight);
	loss.tx_in_flight_bytes = loss.prior_in_flight_bytes;
	loss.lost_since_sent_bytes = loss.lost_bytes;
	if (!host->in_episode) {
		loss.flags = CC_LOSS_EPISODE_START;
		host->in_episode = 1;
		host->episode_ns = now_ns;
	}
	host_record(host, CC_RECORD_LOSS, &loss, sizeof(loss));
	algorithm(_on_loss)(&flow->state, &loss);
	return lost;
}

/*
 * What the newest packet acknowledged has ahead of it in its segment, bytes: of a segment that the network cuts, the kernel knows one
 * time. Segments follow each other; where one that was acknowledged as a whole began, tells about its size: what the pacing rate makes
 * in 2^-sk_pacing_shift s.
 */
static inline cc_u32 host_burst_bytes(struct tcp_sock *tp, struct cc_host *host, const struct rate_sample *sample)
{
	cc_u64 rate = cc_min(host_sock(tp)->sk_pacing_rate, HOST_MAX_RATE);
	cc_u64 segment = cc_min(rate >> (host_sock(tp)->sk_pacing_shift & 63), HOST_MAX_SEGMENT);
	cc_u64 ahead;

	if (sample->last_end_seq != host->segment_end) {
		host->segment_start = host->segment_end;
		host->segment_end = sample->last_end_seq;
	}
	/* Out of order nobody knows. */
	if (tp->sacked_out || (cc_s32)(tp->snd_una - host->segment_start) <= 0)
		return 0;
	ahead = cc_min(tp->snd_una - host->segment_start, segment) / cc_max(host->payload_bytes, 1);
	return (cc_u32)host_bytes(host, (cc_u32)cc_max(ahead, 1) - 1);
}

/* The newest packet acknowledged: what was delivered, in flight and lost since it was sent. */
static inline void host_fill_sample(struct tcp_sock *tp, const struct cc_host *host, const struct rate_sample *sample,
				    cc_u32 newly_lost, struct cc_ack *ack)
{
	const struct cc_gap *gap = host_gap_at(host, sample->prior_delivered);
	cc_u32 since = tp->delivered - sample->prior_delivered;
	cc_u32 lost_since = tp->lost - gap->lost;
	/* Where it ends. Of a segment of many packets the sample has the end, even if only its first packets are acknowledged. */
	cc_u32 end = tp->sacked_out || (cc_s32)(tp->snd_una - sample->last_end_seq) > 0 ? sample->last_end_seq : tp->snd_una;
	/* Packets sent until now, and after this one. */
	cc_u32 sent = tp->delivered + tp->packets_out - tp->sacked_out;
	cc_u32 after = (tp->snd_nxt - end + host->payload_bytes - 1) / cc_max(host->payload_bytes, 1);
	cc_s32 tx_in_flight = (cc_s32)(sent - after - sample->prior_delivered - gap->missing);

	if (sample->is_retrans || tx_in_flight < 1)
		tx_in_flight = (cc_s32)cc_max(sample->prior_in_flight, 1);
	ack->prior_delivered_total_bytes = host->delivered_bytes - cc_min(host_bytes(host, since), host->delivered_bytes);
	ack->tx_in_flight_bytes = host_bytes(host, (cc_u32)tx_in_flight);
	ack->lost_since_sent_bytes = host_bytes(host, lost_since - (cc_u32)cc_min(newly_lost, lost_since));
	if (sample->delivered > 0 && sample->interval_us > 0) {
		ack->delivered_bytes = host_bytes(host, (cc_u32)sample->delivered);
		ack->interval_ns = (cc_u64)sample->interval_us * 1000;
	}
	ack->sent_ns = ack->now_ns;
	if (sample->rtt_us > 0 && !sample->is_retrans)
		ack->rtt_ns = cc_max((cc_u64)sample->rtt_us * 1000, HOST_LEAST_RTT_NS);
	ack->sent_ns = ack->now_ns - cc_min(ack->rtt_ns ? ack->rtt_ns : host->srtt_ns, ack->now_ns);
	if (sample->is_app_limited)
		ack->flags |= CC_ACK_APP_LIMITED;
	if (sample->is_retrans)
		ack->flags |= CC_ACK_RETRANSMIT;
}

static inline void host_tell_ack(struct tcp_sock *tp, struct cc_flow *flow, const struct rate_sample *sample, cc_u32 newly_lost,
				 cc_u64 now_ns)
{
	struct cc_host *host = &flow->host;
	cc_u32 acked = tp->delivered - host->delivered;
	struct cc_ack ack = {};

	host->delivered = tp->delivered;
	host->delivered_bytes += host_bytes(host, acked);
	host->in_flight_bytes = host_bytes(host, host_in_flight(tp));
	host->acked_ns = now_ns;
	ack.now_ns = now_ns;
	ack.acked_packets = acked;
	ack.acked_bytes = host_bytes(host, acked);
	ack.ce_packets = tp->delivered_ce - host->delivered_ce;
	host->delivered_ce = tp->delivered_ce;
	ack.in_flight_bytes = host->in_flight_bytes;
	ack.prior_in_flight_bytes = host_bytes(host, sample->prior_in_flight);
	ack.srtt_ns = host->srtt_ns;
	ack.min_rtt_ns = host->min_rtt_ns;
	ack.delivered_total_bytes = host->delivered_bytes;
	ack.burst_bytes = host_burst_bytes(tp, host, sample);
	host_fill_sample(tp, host, sample, newly_lost, &ack);
	if (kernel_read_bits(tp, is_cwnd_limited))
		ack.flags |= CC_ACK_CWND_LIMITED;
	if (tp->snd_una != host->snd_una)
		ack.flags |= CC_ACK_CUMULATIVE;
	host->snd_una = tp->snd_una;
	if (host->ca_state >= TCP_CA_Recovery)
		ack.flags |= CC_ACK_IN_RECOVERY;
	if (!acked)
		return;
	host_record(host, CC_RECORD_ACK, &ack, sizeof(ack));
	algorithm(_on_ack)(&flow->state, &ack);
}

/* ------------------------------------------------------------------------------------------------- the kernel's callbacks */

SEC("struct_ops/init")
int cc_init(cc_u64 *arguments)
{
	struct tcp_sock *tp = (struct tcp_sock *)arguments[0];
	struct cc_flow *flow;
	struct cc_path path;
	cc_u64 now_ns;

	flow = bpf_sk_storage_get(&paceline_flows, tp, 0, BPF_LOCAL_STORAGE_GET_F_CREATE);
	/* Out of memory: the flow keeps the window it has. */
	if (!flow)
		return 0;
	now_ns = bpf_ktime_get_ns();
	flow->host.started_ns = now_ns;
	flow->host.acked_ns = now_ns;
	flow->host.delivered = tp->delivered;
	flow->host.delivered_ce = tp->delivered_ce;
	flow->host.lost = tp->lost;
	flow->host.snd_una = tp->snd_una;
	flow->host.segment_end = tp->snd_una;
	flow->host.cap_bytes_per_s = CC_UNPACED;
	flow->host.gaps[CC_GAPS - 1].delivered = tp->delivered;
	flow->host.gaps[CC_GAPS - 1].lost = tp->lost;
	host_read_packet_size(tp, &flow->host);
	host_fill_path(tp, &flow->host, &path, now_ns);
	host_record_init(tp, &flow->host, &path);
	algorithm(_init)(&flow->state, &path, host_params());
	/* The algorithm has its own idea of it; the kernel's must not interfere. */
	tp->snd_ssthresh = TCP_INFINITE_SSTHRESH;
	host_read_cap(tp, flow, now_ns);
	host_apply(tp, flow);
	return 0;
}

SEC("struct_ops/release")
int cc_release(cc_u64 *arguments)
{
	if (cc_settings.record) {
		struct cc_flow *flow = host_flow((struct tcp_sock *)arguments[0]);

		if (flow)
			host_record(&flow->host, CC_RECORD_RELEASE, 0, 0);
	}
	/* The socket may go on with another algorithm. */
	bpf_sk_storage_delete(&paceline_flows, (void *)arguments[0]);
	return 0;
}

SEC("struct_ops/cong_control")
int cc_cong_control(cc_u64 *arguments)
{
	struct tcp_sock *tp = (struct tcp_sock *)arguments[0];
	const struct rate_sample *sample;
	struct cc_flow *flow = host_flow(tp);
	cc_u64 now_ns = bpf_ktime_get_ns();
	cc_u32 newly_lost;

	/* In assembly, for the verifier wants constant offsets, which the compiler would merge. */
	if (cc_settings.sample_argument == 1)
		asm volatile("%0 = *(u64 *)(%1 + 8)" : "=r"(sample) : "r"(arguments));
	else
		asm volatile("%0 = *(u64 *)(%1 + 24)" : "=r"(sample) : "r"(arguments));
	if (!flow)
		return 0;
	flow->host.srtt_ns = (cc_u64)(tp->srtt_us >> 3) * 1000;
	flow->host.min_rtt_ns = tp->srtt_us ? (cc_u64)tp->rtt_min.s[0].v * 1000 : 0;
	if (host_read_packet_size(tp, &flow->host)) {
		struct cc_path path;

		host_fill_path(tp, &flow->host, &path, now_ns);
		host_record(&flow->host, CC_RECORD_PATH_CHANGE, &path, sizeof(path));
		algorithm(_on_path_change)(&flow->state, &path);
	}
	host_read_cap(tp, flow, now_ns);
	newly_lost = host_tell_loss(tp, flow, sample, now_ns);
	host_tell_ack(tp, flow, sample, newly_lost, now_ns);
	host_keep_gap(tp, &flow->host);
	if (now_ns >= flow->host.control.next_timer_ns) {
		host_record(&flow->host, CC_RECORD_TIMER, &now_ns, sizeof(now_ns));
		algorithm(_on_timer)(&flow->state, now_ns);
	}
	host_apply(tp, flow);
	return 0;
}

SEC("struct_ops/set_state")
int cc_set_state(cc_u64 *arguments)
{
	struct tcp_sock *tp = (struct tcp_sock *)arguments[0];
	struct cc_flow *flow = host_flow(tp);
	struct cc_timeout timeout = {};

	if (!flow)
		return 0;
	flow->host.ca_state = (cc_u8)arguments[1];
	if (flow->host.ca_state != TCP_CA_Loss)
		return 0;
	timeout.now_ns = bpf_ktime_get_ns();
	timeout.in_flight_bytes = host_bytes(&flow->host, tp->packets_out - tp->sacked_out);
	timeout.consecutive = tp->inet_conn.icsk_retransmits + 1u;
	flow->host.lost = tp->lost;
	flow->host.in_episode = 1;
	flow->host.episode_ns = timeout.now_ns;
	flow->host.timeouts++;
	host_record(&flow->host, CC_RECORD_RTO, &timeout, sizeof(timeout));
	algorithm(_on_rto)(&flow->state, &timeout);
	host_keep_gap(tp, &flow->host);
	host_apply(tp, flow);
	return 0;
}

SEC("struct_ops/cwnd_event")
int cc_cwnd_event(cc_u64 *arguments)
{
	struct tcp_sock *tp = (struct tcp_sock *)arguments[0];
	struct cc_resume resume = {};
	struct cc_flow *flow;

	if ((int)arguments[1] != CA_EVENT_TX_START)
		return 0;
	flow = host_flow(tp);
	if (!flow)
		return 0;
	resume.now_ns = bpf_ktime_get_ns();
	resume.idle_ns = resume.now_ns - cc_min(flow->host.acked_ns, resume.now_ns);
	host_record(&flow->host, CC_RECORD_RESUME, &resume, sizeof(resume));
	algorithm(_on_resume)(&flow->state, &resume);
	host_apply(tp, flow);
	return 0;
}

/* Called only when the kernel finds that an episode was none. */
SEC("struct_ops/undo_cwnd")
int cc_undo_cwnd(cc_u64 *arguments)
{
	struct tcp_sock *tp = (struct tcp_sock *)arguments[0];
	struct cc_flow *flow = host_flow(tp);
	struct cc_undo undo = {};

	if (!flow)
		return (int)tp->snd_cwnd;
	undo.now_ns = bpf_ktime_get_ns();
	undo.started_ns = flow->host.episode_ns;
	host_record(&flow->host, CC_RECORD_SPURIOUS, &undo, sizeof(undo));
	algorithm(_on_spurious_loss)(&flow->state, &undo);
	host_apply(tp, flow);
	return (int)tp->snd_cwnd;
}

SEC("struct_ops/ssthresh")
int cc_ssthresh(cc_u64 *arguments)
{
	return (int)((struct tcp_sock *)arguments[0])->snd_ssthresh;
}

/* The kernel sends about a millisecond's worth as one segment; a slow flow need not send more than the algorithm's quantum. */
SEC("struct_ops/min_tso_segs")
int cc_min_tso_segs(cc_u64 *arguments)
{
	struct cc_flow *flow = host_flow((struct tcp_sock *)arguments[0]);

	if (!flow)
		return 1;
	return (int)cc_max(flow->host.control.send_quantum_bytes / cc_max(flow->host.packet_bytes, 1), 1);
}

/* The map's name tells the loader what is loaded, `name` the kernel's users: the loader writes it. */
SEC(".struct_ops")
struct tcp_congestion_ops CC_JOIN(pl_, CC_ALGORITHM) = {
	.ssthresh = cc_ssthresh,
	.set_state = cc_set_state,
	.cwnd_event = cc_cwnd_event,
	.min_tso_segs = cc_min_tso_segs,
	.cong_control = cc_cong_control,
	.undo_cwnd = cc_undo_cwnd,
	.init = cc_init,
	.release = cc_release,
};

char cc_license[] SEC("license") = "Dual MIT/GPL";

#endif
