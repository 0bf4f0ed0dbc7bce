/* SPDX-License-Identifier: MIT OR GPL-2.0-only */
/*
 * The controller contract in C: mirrors the repr(C) structs of crates/cc/src/event.rs and controller.rs, which describe
 * every field. Both sides assert the same sizes and offsets. No header is included, so that the file compiles natively
 * and for BPF; in the kernel it is included after vmlinux.h.
 *
 * An algorithm NAME is one header bpf/algorithms/NAME.h with
 *
 *   struct NAME_params   only cc_u64 fields, in the order of the registry's table (see crates/cc/src/native.rs for units)
 *   struct NAME          its state
 *   #define NAME_FIELDS  how many values NAME_observe writes
 *   NAME_init(struct NAME *, const struct cc_path *, const struct NAME_params *)
 *   NAME_on_ack, _on_loss, _on_rto, _on_spurious_loss, _on_resume, _on_path_change   (struct NAME *, const struct cc_… *)
 *   NAME_on_timer(struct NAME *, cc_u64 now_ns)
 *   NAME_control(const struct NAME *, struct cc_control *)
 *   NAME_observe(const struct NAME *, cc_u64 *out)        CC_NONE where there is no value yet
 *
 * and, if the algorithm itself knows of caps (CC_UNPACED = none), which a host may set at any time,
 *
 *   #define CC_SET_CAP NAME_set_cap
 *   NAME_set_cap(struct NAME *, const struct NAME_params *, cc_u64 bytes_per_s)
 *
 * all static inline, or CC_SELDOM. The state is zeroed before NAME_init. Rules of the BPF target: 64-bit integers only, no
 * floats, no 128-bit products, no signed division, bounded loops, at most five arguments, 512 bytes of stack. A function with a
 * loop is marked CC_APART (cc_math.h), or the verifier may not come to an end.
 */
#ifndef PACELINE_CC_ABI_H
#define PACELINE_CC_ABI_H

typedef unsigned long long cc_u64;
typedef long long cc_s64;
typedef unsigned int cc_u32;

/* What a few events in a thousand call: apart, so that the others do not pay for the registers it takes. The verifier wants it inline. */
#ifdef __bpf__
#define CC_SELDOM static inline
#else
/* With underscores: the kernel has macros of the plain names. */
#define CC_SELDOM static __attribute__((__noinline__, __unused__))
#endif

#define CC_NONE (~(cc_u64)0)
#define CC_UNPACED (~(cc_u64)0)
#define CC_NEVER (~(cc_u64)0)

struct cc_path {
	cc_u64 now_ns;
	cc_u32 packet_bytes;
	cc_u32 initial_window_packets;
	cc_u64 seed;
};

#define CC_ACK_APP_LIMITED 1u
#define CC_ACK_CWND_LIMITED 2u
#define CC_ACK_RETRANSMIT 4u
#define CC_ACK_CUMULATIVE 8u
#define CC_ACK_IN_RECOVERY 16u

struct cc_ack {
	cc_u64 now_ns;
	cc_u64 acked_bytes;
	cc_u32 acked_packets;
	cc_u32 ce_packets;
	cc_u64 in_flight_bytes;
	cc_u64 prior_in_flight_bytes;
	cc_u64 rtt_ns;
	cc_u64 srtt_ns;
	cc_u64 min_rtt_ns;
	cc_u64 ack_delay_ns;
	cc_u64 one_way_delay_ns;
	cc_u64 sent_ns;
	cc_u64 delivered_bytes;
	cc_u64 interval_ns;
	cc_u64 delivered_total_bytes;
	cc_u64 prior_delivered_total_bytes;
	cc_u64 tx_in_flight_bytes;
	cc_u64 lost_since_sent_bytes;
	cc_u32 flags;
	cc_u32 burst_bytes;
};

#define CC_LOSS_EPISODE_START 1u

struct cc_loss {
	cc_u64 now_ns;
	cc_u64 lost_bytes;
	cc_u64 newest_lost_sent_ns;
	cc_u64 in_flight_bytes;
	cc_u64 prior_in_flight_bytes;
	cc_u32 lost_packets;
	cc_u32 flags;
	cc_u64 tx_in_flight_bytes;
	cc_u64 lost_since_sent_bytes;
};

struct cc_timeout {
	cc_u64 now_ns;
	cc_u64 in_flight_bytes;
	cc_u32 consecutive;
	cc_u32 reserved;
};

struct cc_undo {
	cc_u64 now_ns;
	cc_u64 started_ns;
};

struct cc_resume {
	cc_u64 now_ns;
	cc_u64 idle_ns;
};

struct cc_control {
	cc_u64 cwnd_bytes;
	cc_u64 pacing_bytes_per_s;
	cc_u64 send_quantum_bytes;
	cc_u64 next_timer_ns;
	cc_u64 timeout_ns;
};

#define CC_SIZE(type, bytes) \
	_Static_assert(sizeof(struct type) == (bytes), "size of " #type)
#define CC_OFFSET(type, field, bytes) \
	_Static_assert(__builtin_offsetof(struct type, field) == (bytes), "offset of " #type "." #field)

CC_SIZE(cc_path, 24);
CC_OFFSET(cc_path, packet_bytes, 8);
CC_OFFSET(cc_path, initial_window_packets, 12);
CC_OFFSET(cc_path, seed, 16);
CC_SIZE(cc_ack, 144);
CC_OFFSET(cc_ack, acked_bytes, 8);
CC_OFFSET(cc_ack, acked_packets, 16);
CC_OFFSET(cc_ack, ce_packets, 20);
CC_OFFSET(cc_ack, in_flight_bytes, 24);
CC_OFFSET(cc_ack, prior_in_flight_bytes, 32);
CC_OFFSET(cc_ack, rtt_ns, 40);
CC_OFFSET(cc_ack, srtt_ns, 48);
CC_OFFSET(cc_ack, min_rtt_ns, 56);
CC_OFFSET(cc_ack, ack_delay_ns, 64);
CC_OFFSET(cc_ack, one_way_delay_ns, 72);
CC_OFFSET(cc_ack, sent_ns, 80);
CC_OFFSET(cc_ack, delivered_bytes, 88);
CC_OFFSET(cc_ack, interval_ns, 96);
CC_OFFSET(cc_ack, delivered_total_bytes, 104);
CC_OFFSET(cc_ack, prior_delivered_total_bytes, 112);
CC_OFFSET(cc_ack, tx_in_flight_bytes, 120);
CC_OFFSET(cc_ack, lost_since_sent_bytes, 128);
CC_OFFSET(cc_ack, flags, 136);
CC_OFFSET(cc_ack, burst_bytes, 140);
CC_SIZE(cc_loss, 64);
CC_OFFSET(cc_loss, lost_bytes, 8);
CC_OFFSET(cc_loss, newest_lost_sent_ns, 16);
CC_OFFSET(cc_loss, in_flight_bytes, 24);
CC_OFFSET(cc_loss, prior_in_flight_bytes, 32);
CC_OFFSET(cc_loss, lost_packets, 40);
CC_OFFSET(cc_loss, flags, 44);
CC_OFFSET(cc_loss, tx_in_flight_bytes, 48);
CC_OFFSET(cc_loss, lost_since_sent_bytes, 56);
CC_SIZE(cc_timeout, 24);
CC_OFFSET(cc_timeout, in_flight_bytes, 8);
CC_OFFSET(cc_timeout, consecutive, 16);
CC_SIZE(cc_undo, 16);
CC_OFFSET(cc_undo, started_ns, 8);
CC_SIZE(cc_resume, 16);
CC_OFFSET(cc_resume, idle_ns, 8);
CC_SIZE(cc_control, 40);
CC_OFFSET(cc_control, pacing_bytes_per_s, 8);
CC_OFFSET(cc_control, send_quantum_bytes, 16);
CC_OFFSET(cc_control, next_timer_ns, 24);
CC_OFFSET(cc_control, timeout_ns, 32);

#endif
