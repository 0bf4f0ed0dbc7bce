/* SPDX-License-Identifier: MIT OR GPL-2.0-only */
/*
 * What travels between tc and the kernel: attributes of TCA_OPTIONS, and statistics. Rates are bytes/s of whole frames.
 */
#ifndef PACELINE_MPC_NETLINK_H
#define PACELINE_MPC_NETLINK_H

#include <linux/types.h>

enum {
	TCA_MPC_UNSPEC,
	TCA_MPC_LIMIT,      /* u32: packets in the queue */
	TCA_MPC_FLOW_LIMIT, /* u32: packets of a flow in the queue */
	TCA_MPC_FLOWS,      /* u32: flows that are paced at a time */
	TCA_MPC_CAP,        /* u64: of every flow; 0 = none */
	TCA_MPC_MARKS,      /* array of struct tc_mpc_mark; replaces those there are */
	TCA_MPC_PAD,
	__TCA_MPC_MAX,
};

#define TCA_MPC_MAX (__TCA_MPC_MAX - 1)

/* Ranges. Numbers without parentheses, for they are printed. */
#define TC_MPC_MAX_LIMIT 10000000
#define TC_MPC_MAX_FLOWS 65536
#define TC_MPC_MIN_CAP 1000
#define TC_MPC_MAX_CAP 1099511627776
#define TC_MPC_MAX_MARKS 32

/* Flows whose packets have this mark (SO_MARK, iptables, skbedit) have this cap; 0 = none. */
struct tc_mpc_mark {
	__u32 mark;
	__u32 reserved;
	__u64 cap;
};

#define TC_MPC_XSTATS_QDISC 1
#define TC_MPC_XSTATS_FLOW 2

struct tc_mpc_qdisc_stats {
	__u32 type;
	__u32 flows;           /* now */
	__u32 waiting_flows;   /* with packets in the queue */
	__u32 direct_packets;  /* in the queue, of no flow */
	__u64 created_flows;
	__u64 refused_flows;   /* packets of flows beyond the bound: sent unpaced */
	__u64 throttled;       /* packets that had to wait for their turn */
	__u64 direct;          /* packets of no flow: not TCP, or without data */
	__u64 split;           /* segments too long for their rate, cut into packets */
	__u64 limit_drops;
	__u64 flow_limit_drops;
	__u64 samples;         /* RTTs */
	__u64 rtt_sum_us;
	__u64 rtt_squares_us2;
	__u64 rtt_min_ns;
	__u64 rtt_max_ns;
	__u64 retransmissions;
	__u64 timeouts;
};

struct tc_mpc_flow_stats {
	__u32 type;
	__u32 family;
	__u32 mark;
	__u32 state;           /* of the law: 0 start-up, 1 steady, 2 growth, 3 drain */
	__u8 source[16];
	__u8 destination[16];
	__be16 source_port;
	__be16 destination_port;
	__u32 packets;         /* in the queue */
	__u64 rate;            /* now */
	__u64 nominal_rate;    /* rho */
	__u64 cap;             /* ~0 = none */
	__u64 rtt_ns;
	__u64 base_rtt_ns;
	__u64 target_ns;
	__u64 queue_ns;        /* of the path */
	__u64 sent_bytes;
	__u64 lost_bytes;
	__u64 samples;
	__u64 retransmissions;
	__u64 timeouts;
};

#endif
