/* SPDX-License-Identifier: MIT OR GPL-2.0-only */
/*
 * What the programs here use of the kernel: fields of its structs, its helpers, how an object names its maps. Only the names
 * count: the loader moves every access to where the running kernel has the field (CO-RE). Stands in for vmlinux.h, of 3 MB.
 */
#ifndef PACELINE_KERNEL_H
#define PACELINE_KERNEL_H

#include "flow.h"

typedef unsigned char cc_u8;
typedef unsigned short cc_u16;
typedef int cc_s32;

#define SEC(name) __attribute__((section(name), used))

/* Members of a map's definition, as libbpf reads them. */
#define MAP_UINT(name, value) int(*name)[value]
#define MAP_TYPE(name, type_name) type_name *name

#define BPF_MAP_TYPE_HASH 1
#define BPF_MAP_TYPE_ARRAY 2
#define BPF_MAP_TYPE_SK_STORAGE 24
#define BPF_MAP_TYPE_RINGBUF 27
#define BPF_F_NO_PREALLOC 1u
#define BPF_LOCAL_STORAGE_GET_F_CREATE 1ull
#define BPF_RB_NO_WAKEUP 1ull

#define AF_INET6 10
#define IFF_LOOPBACK 8u
#define SK_PACING_NONE 0u
#define SK_PACING_NEEDED 1u
#define SK_PACING_FQ 2u
#define TCP_INFINITE_SSTHRESH 0x7fffffffu
#define TCP_CA_Open 0u
#define TCP_CA_Recovery 3u
#define TCP_CA_Loss 4u
#define CA_EVENT_TX_START 0

#pragma clang attribute push(__attribute__((preserve_access_index)), apply_to = record)

struct in6_addr {
	union {
		cc_u32 u6_addr32[4];
	} in6_u;
};

struct sock_common {
	cc_u16 skc_family;
	cc_u16 skc_num;
	/* In network order. */
	cc_u16 skc_dport;
	cc_u32 skc_daddr;
	cc_u32 skc_rcv_saddr;
	struct in6_addr skc_v6_daddr;
	struct in6_addr skc_v6_rcv_saddr;
};

struct net_device {
	unsigned int flags;
};

struct dst_entry {
	struct net_device *dev;
};

struct sock {
	struct sock_common __sk_common;
	struct dst_entry *sk_dst_cache;
	cc_u32 sk_pacing_status;
	cc_u8 sk_pacing_shift;
	unsigned long sk_pacing_rate;
	unsigned long sk_max_pacing_rate;
};

struct inet_sock {
	struct sock sk;
};

struct inet_connection_sock {
	struct inet_sock icsk_inet;
	cc_u8 icsk_retransmits;
};

struct minmax_sample {
	cc_u32 t;
	cc_u32 v;
};

struct minmax {
	struct minmax_sample s[3];
};

struct tcp_sock {
	struct inet_connection_sock inet_conn;
	cc_u16 tcp_header_len;
	cc_u8 is_cwnd_limited : 1;
	cc_u32 mss_cache;
	cc_u32 snd_nxt;
	cc_u32 snd_una;
	cc_u32 snd_cwnd;
	cc_u32 snd_cwnd_clamp;
	cc_u32 snd_ssthresh;
	cc_u32 packets_out;
	cc_u32 sacked_out;
	cc_u32 lost_out;
	cc_u32 retrans_out;
	cc_u32 delivered;
	cc_u32 delivered_ce;
	cc_u32 lost;
	cc_u32 srtt_us;
	struct minmax rtt_min;
};

struct rate_sample {
	cc_u32 prior_delivered;
	int delivered;
	long interval_us;
	long rtt_us;
	cc_u32 acked_sacked;
	cc_u32 prior_in_flight;
	cc_u32 last_end_seq;
	_Bool is_app_limited;
	_Bool is_retrans;
};

struct seq_file;

struct bpf_iter_meta {
	struct seq_file *seq;
};

struct bpf_iter__bpf_sk_storage_map {
	struct bpf_iter_meta *meta;
	struct sock *sk;
	void *value;
};

#pragma clang attribute pop

/* How every callback is called: its arguments are in an array. */
typedef int kernel_callback(cc_u64 *arguments);

/* The members that are set here; the kernel's struct has more, in another order. */
struct tcp_congestion_ops {
	kernel_callback *ssthresh;
	kernel_callback *set_state;
	kernel_callback *cwnd_event;
	kernel_callback *min_tso_segs;
	kernel_callback *cong_control;
	kernel_callback *undo_cwnd;
	kernel_callback *init;
	kernel_callback *release;
	char name[16];
};

static void *(*const bpf_map_lookup_elem)(void *map, const void *key) = (void *)1;
static cc_u64 (*const bpf_ktime_get_ns)(void) = (void *)5;
static cc_u32 (*const bpf_get_prandom_u32)(void) = (void *)7;
static void *(*const bpf_sk_storage_get)(void *map, void *sk, void *value, cc_u64 flags) = (void *)107;
static long (*const bpf_sk_storage_delete)(void *map, void *sk) = (void *)108;
static long (*const bpf_seq_write)(struct seq_file *seq, const void *data, cc_u32 bytes) = (void *)127;
static void *(*const bpf_ringbuf_reserve)(void *map, cc_u64 bytes, cc_u64 flags) = (void *)131;
static void (*const bpf_ringbuf_submit)(void *record, cc_u64 flags) = (void *)132;

/* A field of a few bits: where its bytes are, and which bits of them, the loader fills in. */
#define kernel_field(object, field, what) __builtin_preserve_field_info((object)->field, what)
#define kernel_read_bits(object, field)                                                    \
	({                                                                                 \
		const void *at = (const void *)(object) + kernel_field(object, field, 0); \
		cc_u64 bits = 0;                                                           \
		switch (kernel_field(object, field, 1)) {                                  \
		case 1: bits = *(const volatile cc_u8 *)at; break;                         \
		case 2: bits = *(const volatile cc_u16 *)at; break;                        \
		case 4: bits = *(const volatile cc_u32 *)at; break;                        \
		case 8: bits = *(const volatile cc_u64 *)at; break;                        \
		}                                                                          \
		bits << kernel_field(object, field, 4) >> kernel_field(object, field, 5); \
	})

/* IPv4 mapped into IPv6 (RFC 4291), in network order. */
static inline void kernel_map_ipv4(cc_u32 ipv4, cc_u32 address[4])
{
	address[0] = 0;
	address[1] = 0;
#if __BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__
	address[2] = 0xffff0000;
#else
	address[2] = 0x0000ffff;
#endif
	address[3] = ipv4;
}

static inline void kernel_copy_ipv6(const struct in6_addr *from, cc_u32 address[4])
{
	address[0] = from->in6_u.u6_addr32[0];
	address[1] = from->in6_u.u6_addr32[1];
	address[2] = from->in6_u.u6_addr32[2];
	address[3] = from->in6_u.u6_addr32[3];
}

static inline void kernel_remote_address(const struct sock_common *common, cc_u32 address[4])
{
	if (common->skc_family == AF_INET6)
		kernel_copy_ipv6(&common->skc_v6_daddr, address);
	else
		kernel_map_ipv4(common->skc_daddr, address);
}

static inline void kernel_local_address(const struct sock_common *common, cc_u32 address[4])
{
	if (common->skc_family == AF_INET6)
		kernel_copy_ipv6(&common->skc_v6_rcv_saddr, address);
	else
		kernel_map_ipv4(common->skc_rcv_saddr, address);
}

static inline void kernel_endpoints(const struct sock_common *common, struct cc_endpoints *endpoints)
{
	kernel_local_address(common, endpoints->local);
	kernel_remote_address(common, endpoints->remote);
	endpoints->local_port = common->skc_num;
	endpoints->remote_port = common->skc_dport;
}

#endif
