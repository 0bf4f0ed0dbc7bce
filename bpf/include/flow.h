/* SPDX-License-Identifier: MIT OR GPL-2.0-only */
/*
 * What the kernel's host keeps per flow, and what is read from outside: crates/kernel/src/flow.rs mirrors it.
 */
#ifndef PACELINE_FLOW_H
#define PACELINE_FLOW_H

#include "cc_abi.h"

/*
 * How many packets had been lost, and not sent again, when `delivered` packets had been delivered. Kept when it changes, so that an
 * ACK can tell what was in flight when its packet was sent. Numbers of packets, modulo 2^32.
 */
struct cc_gap {
	cc_u32 delivered;
	cc_u32 lost;
	cc_u32 missing;
};

/* A power of two. */
#define CC_GAPS 32u

struct cc_host {
	/* What the algorithm asked for last. */
	struct cc_control control;
	cc_u64 started_ns;
	cc_u64 acked_ns;
	cc_u64 episode_ns;
	/* Bytes of whole packets, as everything the algorithm sees. */
	cc_u64 delivered_bytes;
	cc_u64 in_flight_bytes;
	cc_u64 lost_packets;
	cc_u64 timeouts;
	cc_u64 srtt_ns;
	cc_u64 min_rtt_ns;
	/* The flow's cap: bytes/s of payload while TCP paces, CC_UNPACED = none; the operator's part of it, and when to look again. */
	cc_u64 cap_bytes_per_s;
	cc_u64 table_cap_bytes_per_s;
	cc_u64 table_due_ns;
	cc_u32 packet_bytes;
	cc_u32 payload_bytes;
	/* The kernel's counters at the last ACK. */
	cc_u32 delivered;
	cc_u32 delivered_ce;
	cc_u32 lost;
	cc_u32 snd_una;
	/* Of enum tcp_ca_state; whether the episode's first loss has been told. */
	cc_u32 ca_state;
	cc_u32 in_episode;
	cc_u32 gaps_kept;
	struct cc_gap gaps[CC_GAPS];
	/* Where the segment of the newest packet acknowledged begins, at the earliest, and ends: sequence numbers. */
	cc_u32 segment_start;
	cc_u32 segment_end;
	/* Packets do not leave this machine. */
	cc_u32 is_loopback;
	/* Of a recording: how many records there were, and whose they are. */
	cc_u32 recorded;
	cc_u64 flow_id;
};

CC_SIZE(cc_host, 584);

/* Whom the operator's table caps. IPv4 addresses are mapped into IPv6 (RFC 4291); port 0 = every port. Network order. */
struct cc_cap_key {
	cc_u32 address[4];
	cc_u32 port;
};

CC_SIZE(cc_cap_key, 20);

/* Between whom a flow is: before its state in what flows.bpf.c writes, and in a recording. */
struct cc_endpoints {
	cc_u32 local[4];
	cc_u32 remote[4];
	/* In host order; in network order. */
	cc_u32 local_port;
	cc_u32 remote_port;
};

CC_SIZE(cc_endpoints, 40);

#endif
