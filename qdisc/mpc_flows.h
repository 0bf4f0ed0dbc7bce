/* SPDX-License-Identifier: MIT OR GPL-2.0-only */
/*
 * The flows of the queueing discipline `mpc`: what it reads from packets, the table of flows, the tree of those that wait, their caps.
 */
#ifndef PACELINE_MPC_FLOWS_H
#define PACELINE_MPC_FLOWS_H

#include <linux/ip.h>
#include <linux/ipv6.h>
#include <linux/jhash.h>
#include <linux/random.h>
#include <linux/rbtree.h>
#include <net/ip.h>
#include <net/ipv6.h>
#include <net/pkt_sched.h>
#include <net/sock.h>

#include "mpc_netlink.h"
#include "mpc_tcp.h"

#ifndef CONFIG_64BIT
#error "sch_mpc divides 64-bit integers and needs a 64-bit kernel"
#endif

/* A flow without packets for so long is forgotten; for so long, if another one needs its place. */
#define FORGET_NS (10 * CC_SECOND_NS)
#define GIVE_WAY_NS CC_SECOND_NS
/* Flows that are looked at for being forgotten whenever one comes. */
#define FORGET_AT_ONCE 4

struct flow_key {
	__be32 source[4];
	__be32 destination[4];
	__be16 source_port;
	__be16 destination_port;
	u32 family;
};

/* Of a packet in the queue: what its TCP header says. */
struct packet_note {
	struct meter_packet tcp;
};

struct flow {
	struct hlist_node in_table;
	struct list_head in_ages;
	struct rb_node in_tree;
	struct rcu_head rcu;
	struct flow_key key;
	/* Counted up, never 0: what the flow is called where flows are listed. */
	u32 id;
	u32 mark;
	struct sk_buff *head;
	struct sk_buff *tail;
	u32 packets;
	/* When the next packet may depart; when the last came. */
	u64 release_ns;
	u64 touched_ns;
	spinlock_t lock;
	struct meter meter;
};

struct mpc_sched {
	struct list_head in_net;
	struct net *net;
	struct Qdisc *sch;
	bool listens;
	u32 limit;
	u32 flow_limit;
	u32 max_flows;
	u32 marks;
	/* The longest frame of the device: what a flow's rate begins with, whose first packet may be short. */
	u32 frame_bytes;
	u64 cap;
	struct tc_mpc_mark mark[TC_MPC_MAX_MARKS];

	struct hlist_head *table;
	u32 table_mask;
	u32 seed;
	struct rb_root_cached tree;
	/* The least lately used first. */
	struct list_head ages;
	struct sk_buff *direct_head;
	struct sk_buff *direct_tail;
	u32 direct_packets;
	bool direct_turn;
	u32 flows;
	u32 waiting_flows;
	u32 last_id;
	struct qdisc_watchdog watchdog;

	struct tc_mpc_qdisc_stats stats;
	spinlock_t heard_lock;
	u64 samples;
	u64 rtt_sum_us;
	u64 rtt_squares_us2;
	u64 rtt_min_ns;
	u64 rtt_max_ns;
};

static struct kmem_cache *flow_cache __read_mostly;

static struct packet_note *note_of(struct sk_buff *skb)
{
	qdisc_cb_private_validate(skb, sizeof(struct packet_note));
	return (struct packet_note *)qdisc_skb_cb(skb)->data;
}

/* ---------------------------------------------------------------------------------------------------------------- headers */

/* Where TCP begins in a packet whose IP header is at `offset`; 0 if it is not TCP, or no more than a fragment. */
static unsigned int read_ip(const struct sk_buff *skb, __be16 protocol, unsigned int offset, struct flow_key *key)
{
	memset(key, 0, sizeof(*key));
	if (protocol == htons(ETH_P_IP)) {
		struct iphdr space;
		const struct iphdr *ip = skb_header_pointer(skb, offset, sizeof(space), &space);

		if (!ip || ip->version != 4 || ip->ihl < 5 || ip->protocol != IPPROTO_TCP || ip_is_fragment(ip))
			return 0;
		key->family = AF_INET;
		key->source[0] = ip->saddr;
		key->destination[0] = ip->daddr;
		return offset + ip->ihl * 4;
	}
	if (protocol == htons(ETH_P_IPV6)) {
		struct ipv6hdr space;
		const struct ipv6hdr *ip = skb_header_pointer(skb, offset, sizeof(space), &space);
		__be16 fragment = 0;
		u8 next;
		int tcp;

		if (!ip || ip->version != 6)
			return 0;
		next = ip->nexthdr;
		key->family = AF_INET6;
		memcpy(key->source, &ip->saddr, sizeof(key->source));
		memcpy(key->destination, &ip->daddr, sizeof(key->destination));
		tcp = ipv6_skip_exthdr(skb, offset + sizeof(space), &next, &fragment);
		return tcp < 0 || next != IPPROTO_TCP || fragment ? 0 : tcp;
	}
	return 0;
}

static bool read_tcp(const struct sk_buff *skb, unsigned int offset, struct flow_key *key, struct tcp_header *header)
{
	u8 space[TCP_MOST_HEADER];
	const u8 *at = skb_header_pointer(skb, offset, TCP_LEAST_HEADER, space);
	unsigned int bytes;

	if (!at)
		return false;
	bytes = tcp_header_bytes(at);
	if (!bytes)
		return false;
	at = skb_header_pointer(skb, offset, bytes, space);
	if (!at || !tcp_read(header, at, bytes))
		return false;
	memcpy(&key->source_port, at, 2);
	memcpy(&key->destination_port, at + 2, 2);
	return true;
}

/* ------------------------------------------------------------------------------------------------------------------ flows */

static u32 key_hash(const struct mpc_sched *q, const struct flow_key *key)
{
	return jhash2((const u32 *)key, sizeof(*key) / sizeof(u32), q->seed) & q->table_mask;
}

/* Under RCU, or the lock of the queueing discipline. */
static struct flow *find_flow(const struct mpc_sched *q, const struct flow_key *key)
{
	struct flow *flow;

	hlist_for_each_entry_rcu(flow, &q->table[key_hash(q, key)], in_table, true)
		if (!memcmp(&flow->key, key, sizeof(*key)))
			return flow;
	return NULL;
}

static void free_flow(struct rcu_head *rcu)
{
	kmem_cache_free(flow_cache, container_of(rcu, struct flow, rcu));
}

/* A flow without packets is forgotten. */
static void forget_flow(struct mpc_sched *q, struct flow *flow)
{
	hlist_del_rcu(&flow->in_table);
	list_del(&flow->in_ages);
	q->flows--;
	call_rcu(&flow->rcu, free_flow);
}

/* Forgets flows that are idle; one at least, if there is no room. */
static void forget_idle(struct mpc_sched *q, u64 now_ns)
{
	struct flow *flow, *next;
	unsigned int looked = 0;

	list_for_each_entry_safe(flow, next, &q->ages, in_ages) {
		u64 idle_ns = now_ns - min(flow->touched_ns, now_ns);

		if (looked++ == FORGET_AT_ONCE || idle_ns < GIVE_WAY_NS)
			return;
		if (!flow->packets && (idle_ns > FORGET_NS || q->flows >= q->max_flows))
			forget_flow(q, flow);
	}
}

static struct flow *create_flow(struct mpc_sched *q, const struct flow_key *key, u64 now_ns, u32 packet_bytes)
{
	struct flow *flow;

	forget_idle(q, now_ns);
	if (q->flows >= q->max_flows)
		return NULL;
	flow = kmem_cache_zalloc(flow_cache, GFP_ATOMIC | __GFP_NOWARN);
	if (!flow)
		return NULL;
	flow->key = *key;
	spin_lock_init(&flow->lock);
	RB_CLEAR_NODE(&flow->in_tree);
	meter_init(&flow->meter, now_ns, packet_bytes, (u64)get_random_u32() << 32 | get_random_u32());
	list_add_tail(&flow->in_ages, &q->ages);
	hlist_add_head_rcu(&flow->in_table, &q->table[key_hash(q, key)]);
	q->flows++;
	q->last_id += q->last_id == U32_MAX ? 2 : 1;
	flow->id = q->last_id;
	q->stats.created_flows++;
	return flow;
}

static void schedule_flow(struct mpc_sched *q, struct flow *flow)
{
	struct rb_node **link = &q->tree.rb_root.rb_node, *parent = NULL;
	bool leftmost = true;

	while (*link) {
		parent = *link;
		if (flow->release_ns < rb_entry(parent, struct flow, in_tree)->release_ns) {
			link = &parent->rb_left;
		} else {
			link = &parent->rb_right;
			leftmost = false;
		}
	}
	rb_link_node(&flow->in_tree, parent, link);
	rb_insert_color_cached(&flow->in_tree, &q->tree, leftmost);
	q->waiting_flows++;
}

static void unschedule_flow(struct mpc_sched *q, struct flow *flow)
{
	rb_erase_cached(&flow->in_tree, &q->tree);
	RB_CLEAR_NODE(&flow->in_tree);
	q->waiting_flows--;
}

/* The least of what the mark or the default says and what the socket wants, if it is one of this machine. */
static u64 cap_of(const struct mpc_sched *q, const struct sk_buff *skb)
{
	u64 cap = q->cap ?: CC_UNPACED;
	u32 i;

	for (i = 0; i < q->marks; i++)
		if (q->mark[i].mark == skb->mark) {
			cap = q->mark[i].cap ?: CC_UNPACED;
			break;
		}
	if (skb->sk && sk_fullsock(skb->sk)) {
		unsigned long wanted = READ_ONCE(skb->sk->sk_max_pacing_rate);

		if (wanted != ~0UL)
			cap = min_t(u64, cap, max_t(u64, wanted, 1));
	}
	return cap;
}

#endif
