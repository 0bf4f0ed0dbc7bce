// SPDX-License-Identifier: MIT OR GPL-2.0-only
/*
 * The queueing discipline `mpc`: paces every TCP flow with the law of bpf/algorithms/mpc.h, whatever congestion control it has.
 * docs/qdisc.md says what it does and how far it goes.
 *
 * Packets of TCP with data wait in a queue per flow until the law lets them depart; the flows wait in a tree, by that time.
 * All else passes unpaced, in turns with what is due. ACKs are heard where packets enter the network namespace of the device.
 *
 * Locks: the queueing discipline's own guards queues, tree and table; a flow's lock guards its meter, which both departures and
 * ACKs change. Whoever hears an ACK holds RCU and the flow's lock only; so a flow is freed after a grace period.
 */
#define pr_fmt(fmt) KBUILD_MODNAME ": " fmt

#include <linux/mm.h>
#include <linux/module.h>
#include <linux/netfilter.h>
#include <linux/netfilter_ipv4.h>
#include <linux/netfilter_ipv6.h>
#include <linux/stringify.h>
#include <linux/version.h>
#include <net/net_namespace.h>
#include <net/netns/generic.h>
#if LINUX_VERSION_CODE >= KERNEL_VERSION(6, 5, 0)
#include <net/gso.h>
#endif

#include "mpc_flows.h"

#define DEFAULT_LIMIT 10000
#define DEFAULT_FLOW_LIMIT 100
#define DEFAULT_FLOWS 1024
/* A segment that takes longer than this at the flow's rate is cut into packets: a burst would be noise to the law. */
#define SPLIT_NS 1000000ull

/* Per network namespace: who wants to hear ACKs. Changed under RTNL, read under RCU. */
struct mpc_net {
	struct list_head scheds;
	unsigned int users;
};

static unsigned int mpc_net_id __read_mostly;

/* ---------------------------------------------------------------------------------------------------------------- enqueue */

static void append(struct sk_buff **head, struct sk_buff **tail, struct sk_buff *skb)
{
	skb->next = NULL;
	if (*head)
		(*tail)->next = skb;
	else
		*head = skb;
	*tail = skb;
}

static struct sk_buff *take_first(struct sk_buff **head)
{
	struct sk_buff *skb = *head;

	*head = skb->next;
	skb_mark_not_on_list(skb);
	return skb;
}

static int enqueue_direct(struct sk_buff *skb, struct Qdisc *sch)
{
	struct mpc_sched *q = qdisc_priv(sch);

	append(&q->direct_head, &q->direct_tail, skb);
	q->direct_packets++;
	q->stats.direct++;
	qdisc_qstats_backlog_inc(sch, skb);
	sch->q.qlen++;
	return NET_XMIT_SUCCESS;
}

/* The flow of a packet that is to be paced, with its note written; NULL for one that is not. */
static struct flow *classify(struct sk_buff *skb, struct mpc_sched *q, u64 now_ns)
{
	struct tcp_header header;
	struct flow_key key;
	struct flow *flow;
	unsigned int offset = skb_network_offset(skb), tcp, payload, segments, wire;

	tcp = read_ip(skb, vlan_get_protocol(skb), offset, &key);
	if (!tcp || !read_tcp(skb, tcp, &key, &header) || skb->len < tcp + header.header_bytes)
		return NULL;
	payload = skb->len - tcp - header.header_bytes;
	flow = find_flow(q, &key);
	if (header.bits & (TCP_SYN | TCP_RST))
		return NULL;
	/* Without data it is not paced; but it keeps its place behind data. */
	if (!payload && !(flow && flow->packets))
		return NULL;
	segments = skb_is_gso(skb) ? max_t(u32, skb_shinfo(skb)->gso_segs, 1) : 1;
	wire = DIV_ROUND_UP(qdisc_pkt_len(skb), segments);
	if (!flow) {
		flow = create_flow(q, &key, now_ns, max(wire, q->frame_bytes));
		if (!flow) {
			q->stats.refused_flows++;
			return NULL;
		}
	}
	note_of(skb)->tcp = (struct meter_packet){
		.seq = header.seq,
		.payload_bytes = payload,
		.tsval = header.tsval,
		.flags = header.has_timestamp ? METER_HAS_TIMESTAMP : 0,
	};
	spin_lock(&flow->lock);
	meter_set_packet(&flow->meter, now_ns, wire);
	meter_set_cap(&flow->meter, cap_of(q, skb));
	spin_unlock(&flow->lock);
	flow->mark = skb->mark;
	flow->touched_ns = now_ns;
	list_move_tail(&flow->in_ages, &q->ages);
	return flow;
}

static int enqueue_one(struct sk_buff *skb, struct Qdisc *sch, struct sk_buff **to_free, u64 now_ns, bool may_split);

/* Cuts a segment into packets and takes them in one by one. */
static int enqueue_split(struct sk_buff *skb, struct Qdisc *sch, struct sk_buff **to_free, u64 now_ns)
{
	struct mpc_sched *q = qdisc_priv(sch);
	netdev_features_t features = netif_skb_features(skb);
	unsigned int bytes = qdisc_pkt_len(skb), taken = 0, taken_bytes = 0;
	struct sk_buff *segments, *segment, *next;

	segments = skb_gso_segment(skb, features & ~NETIF_F_GSO_MASK);
	if (IS_ERR_OR_NULL(segments))
		return qdisc_drop(skb, sch, to_free);
	q->stats.split++;
	skb_list_walk_safe(segments, segment, next) {
		unsigned int length = segment->len;

		skb_mark_not_on_list(segment);
		qdisc_skb_cb(segment)->pkt_len = length;
		if (enqueue_one(segment, sch, to_free, now_ns, false) == NET_XMIT_SUCCESS) {
			taken++;
			taken_bytes += length;
		}
	}
	/* Above, one segment was announced. */
	qdisc_tree_reduce_backlog(sch, 1 - (int)taken, (int)bytes - (int)taken_bytes);
	consume_skb(skb);
	return taken ? NET_XMIT_SUCCESS : NET_XMIT_DROP;
}

static int enqueue_one(struct sk_buff *skb, struct Qdisc *sch, struct sk_buff **to_free, u64 now_ns, bool may_split)
{
	struct mpc_sched *q = qdisc_priv(sch);
	struct flow *flow;

	if (unlikely(sch->q.qlen >= q->limit)) {
		q->stats.limit_drops++;
		return qdisc_drop(skb, sch, to_free);
	}
	flow = classify(skb, q, now_ns);
	if (!flow)
		return enqueue_direct(skb, sch);
	if (may_split && skb_is_gso(skb) && cc_time(qdisc_pkt_len(skb), meter_rate(&flow->meter)) > SPLIT_NS)
		return enqueue_split(skb, sch, to_free, now_ns);
	if (unlikely(flow->packets >= q->flow_limit)) {
		q->stats.flow_limit_drops++;
		return qdisc_drop(skb, sch, to_free);
	}
	if (flow->packets || flow->release_ns > now_ns)
		q->stats.throttled++;
	append(&flow->head, &flow->tail, skb);
	if (!flow->packets++)
		schedule_flow(q, flow);
	qdisc_qstats_backlog_inc(sch, skb);
	sch->q.qlen++;
	return NET_XMIT_SUCCESS;
}

static int mpc_enqueue(struct sk_buff *skb, struct Qdisc *sch, struct sk_buff **to_free)
{
	return enqueue_one(skb, sch, to_free, ktime_get_ns(), true);
}

/* ---------------------------------------------------------------------------------------------------------------- dequeue */

static struct sk_buff *leave(struct Qdisc *sch, struct sk_buff *skb)
{
	sch->q.qlen--;
	qdisc_qstats_backlog_dec(sch, skb);
	return skb;
}

static struct sk_buff *take_direct(struct Qdisc *sch)
{
	struct mpc_sched *q = qdisc_priv(sch);

	q->direct_packets--;
	return leave(sch, take_first(&q->direct_head));
}

static struct sk_buff *take_from(struct Qdisc *sch, struct flow *flow)
{
	flow->packets--;
	return leave(sch, take_first(&flow->head));
}

static struct sk_buff *depart(struct Qdisc *sch, struct flow *flow, u64 now_ns)
{
	struct mpc_sched *q = qdisc_priv(sch);
	struct sk_buff *skb = take_from(sch, flow);
	struct meter_packet packet = note_of(skb)->tcp;
	unsigned int bytes = qdisc_pkt_len(skb);

	unschedule_flow(q, flow);
	spin_lock(&flow->lock);
	if (meter_is_limited(&flow->meter, flow->release_ns, now_ns))
		packet.flags |= METER_LIMITED;
	meter_depart(&flow->meter, now_ns, &packet, bytes);
	flow->release_ns = meter_next_release(&flow->meter, flow->release_ns, now_ns, bytes);
	spin_unlock(&flow->lock);
	if (flow->packets)
		schedule_flow(q, flow);
	return skb;
}

static struct sk_buff *mpc_dequeue(struct Qdisc *sch)
{
	struct mpc_sched *q = qdisc_priv(sch);
	u64 now_ns = ktime_get_ns();
	struct rb_node *first = rb_first_cached(&q->tree);
	struct flow *flow = first ? rb_entry(first, struct flow, in_tree) : NULL;
	bool due = flow && flow->release_ns <= now_ns;
	struct sk_buff *skb;

	if (q->direct_packets && (q->direct_turn || !due)) {
		q->direct_turn = false;
		skb = take_direct(sch);
	} else if (due) {
		q->direct_turn = true;
		skb = depart(sch, flow, now_ns);
	} else {
		if (flow) {
			qdisc_watchdog_schedule_ns(&q->watchdog, flow->release_ns);
			qdisc_qstats_overlimit(sch);
		}
		return NULL;
	}
	qdisc_bstats_update(sch, skb);
	return skb;
}

/* ------------------------------------------------------------------------------------------------------------------- ACKs */

static void count_rtt(struct mpc_sched *q, u64 rtt_ns)
{
	u64 us = rtt_ns / 1000;

	spin_lock(&q->heard_lock);
	q->samples++;
	q->rtt_sum_us += us;
	q->rtt_squares_us2 += us * us;
	q->rtt_min_ns = min(q->rtt_min_ns, rtt_ns);
	q->rtt_max_ns = max(q->rtt_max_ns, rtt_ns);
	spin_unlock(&q->heard_lock);
}

static unsigned int hear(void *priv, struct sk_buff *skb, const struct nf_hook_state *state)
{
	struct mpc_net *mine = net_generic(state->net, mpc_net_id);
	struct flow_key key, back = {};
	struct tcp_header header;
	struct mpc_sched *q;
	unsigned int tcp;
	__be16 protocol = state->pf == NFPROTO_IPV4 ? htons(ETH_P_IP) : htons(ETH_P_IPV6);

	tcp = read_ip(skb, protocol, skb_network_offset(skb), &key);
	if (!tcp || !read_tcp(skb, tcp, &key, &header) || !(header.bits & TCP_ACK) || header.bits & (TCP_SYN | TCP_RST))
		return NF_ACCEPT;
	/* The flow that it answers goes the other way. */
	memcpy(back.source, key.destination, sizeof(back.source));
	memcpy(back.destination, key.source, sizeof(back.destination));
	back.source_port = key.destination_port;
	back.destination_port = key.source_port;
	back.family = key.family;
	list_for_each_entry_rcu(q, &mine->scheds, in_net) {
		struct meter_ack ack = {
			.ack = header.ack,
			.tsecr = header.tsecr,
			.sack_begin = header.sack_begin,
			.sack_end = header.sack_end,
			.flags = header.has_timestamp ? METER_HAS_TIMESTAMP : 0,
		};
		struct flow *flow = find_flow(q, &back);
		u64 rtt_ns;

		if (!flow)
			continue;
		spin_lock_bh(&flow->lock);
		rtt_ns = meter_hear(&flow->meter, ktime_get_ns(), &ack);
		if (rtt_ns)
			count_rtt(q, rtt_ns);
		spin_unlock_bh(&flow->lock);
	}
	return NF_ACCEPT;
}

static const struct nf_hook_ops hooks[] = {
	{ .hook = hear, .pf = NFPROTO_IPV4, .hooknum = NF_INET_PRE_ROUTING, .priority = NF_IP_PRI_FIRST },
	{ .hook = hear, .pf = NFPROTO_IPV6, .hooknum = NF_INET_PRE_ROUTING, .priority = NF_IP6_PRI_FIRST },
};

/* Under RTNL. */
static int begin_to_listen(struct mpc_sched *q)
{
	struct mpc_net *mine = net_generic(q->net, mpc_net_id);
	int error;

	if (!mine->users) {
		error = nf_register_net_hooks(q->net, hooks, ARRAY_SIZE(hooks));
		if (error)
			return error;
	}
	mine->users++;
	list_add_tail_rcu(&q->in_net, &mine->scheds);
	q->listens = true;
	return 0;
}

static void end_listening(struct mpc_sched *q)
{
	struct mpc_net *mine = net_generic(q->net, mpc_net_id);

	list_del_rcu(&q->in_net);
	if (!--mine->users)
		nf_unregister_net_hooks(q->net, hooks, ARRAY_SIZE(hooks));
	/* Nobody hears for this queueing discipline any more. */
	synchronize_net();
	q->listens = false;
}

/* ---------------------------------------------------------------------------------------------------------------- control */

static void mpc_reset(struct Qdisc *sch)
{
	struct mpc_sched *q = qdisc_priv(sch);
	struct flow *flow, *next;

	rtnl_kfree_skbs(q->direct_head, q->direct_tail);
	q->direct_head = NULL;
	q->direct_packets = 0;
	q->waiting_flows = 0;
	q->tree = RB_ROOT_CACHED;
	if (q->table)
		list_for_each_entry_safe(flow, next, &q->ages, in_ages) {
			rtnl_kfree_skbs(flow->head, flow->tail);
			forget_flow(q, flow);
		}
	qdisc_watchdog_cancel(&q->watchdog);
}

static const struct nla_policy policy[TCA_MPC_MAX + 1] = {
	[TCA_MPC_LIMIT] = { .type = NLA_U32 },
	[TCA_MPC_FLOW_LIMIT] = { .type = NLA_U32 },
	[TCA_MPC_FLOWS] = { .type = NLA_U32 },
	[TCA_MPC_CAP] = { .type = NLA_U64 },
	[TCA_MPC_MARKS] = { .type = NLA_BINARY, .len = TC_MPC_MAX_MARKS * sizeof(struct tc_mpc_mark) },
};

#define COUNT_ERROR(name, most) KBUILD_MODNAME ": " name " must be 1 to " __stringify(most)
#define CAP_ERROR(name) \
	KBUILD_MODNAME ": " name " must be 0 (none) or " __stringify(TC_MPC_MIN_CAP) " to " __stringify(TC_MPC_MAX_CAP) " bytes/s"

static bool is_cap(u64 cap)
{
	return !cap || (cap >= TC_MPC_MIN_CAP && cap <= TC_MPC_MAX_CAP);
}

static int check_marks(const struct nlattr *attribute, struct netlink_ext_ack *extack)
{
	const struct tc_mpc_mark *marks = nla_data(attribute);
	unsigned int count = nla_len(attribute) / sizeof(*marks), i, j;

	if (nla_len(attribute) % sizeof(*marks)) {
		NL_SET_ERR_MSG_ATTR(extack, attribute, KBUILD_MODNAME ": marks must be whole entries of mark and cap");
		return -EINVAL;
	}
	for (i = 0; i < count; i++) {
		if (!is_cap(marks[i].cap)) {
			NL_SET_ERR_MSG_ATTR(extack, attribute, CAP_ERROR("the cap of a mark"));
			return -ERANGE;
		}
		for (j = 0; j < i; j++)
			if (marks[i].mark == marks[j].mark) {
				NL_SET_ERR_MSG_ATTR(extack, attribute, KBUILD_MODNAME ": a mark must be given once");
				return -EINVAL;
			}
	}
	return 0;
}

static int check_count(const struct nlattr *attribute, u32 most, const char *error, struct netlink_ext_ack *extack)
{
	if (!attribute || (nla_get_u32(attribute) >= 1 && nla_get_u32(attribute) <= most))
		return 0;
	NL_SET_BAD_ATTR(extack, attribute);
	if (extack)
		extack->_msg = error;
	return -ERANGE;
}

static int check(struct nlattr **attributes, struct netlink_ext_ack *extack)
{
	static const char limit_error[] = COUNT_ERROR("limit", TC_MPC_MAX_LIMIT) " packets";
	static const char flow_limit_error[] = COUNT_ERROR("flow_limit", TC_MPC_MAX_LIMIT) " packets";
	static const char flows_error[] = COUNT_ERROR("flows", TC_MPC_MAX_FLOWS);
	int error;

	error = check_count(attributes[TCA_MPC_LIMIT], TC_MPC_MAX_LIMIT, limit_error, extack);
	if (!error)
		error = check_count(attributes[TCA_MPC_FLOW_LIMIT], TC_MPC_MAX_LIMIT, flow_limit_error, extack);
	if (!error)
		error = check_count(attributes[TCA_MPC_FLOWS], TC_MPC_MAX_FLOWS, flows_error, extack);
	if (error)
		return error;
	if (attributes[TCA_MPC_CAP] && !is_cap(nla_get_u64(attributes[TCA_MPC_CAP]))) {
		NL_SET_ERR_MSG_ATTR(extack, attributes[TCA_MPC_CAP], CAP_ERROR("cap"));
		return -ERANGE;
	}
	return attributes[TCA_MPC_MARKS] ? check_marks(attributes[TCA_MPC_MARKS], extack) : 0;
}

/* Checked before anything is changed. */
static int mpc_change(struct Qdisc *sch, struct nlattr *options, struct netlink_ext_ack *extack)
{
	struct mpc_sched *q = qdisc_priv(sch);
	struct nlattr *attributes[TCA_MPC_MAX + 1];
	unsigned int dropped = 0, dropped_bytes = 0;
	int error;

	error = nla_parse_nested(attributes, TCA_MPC_MAX, options, policy, extack);
	if (!error)
		error = check(attributes, extack);
	if (error)
		return error;
	sch_tree_lock(sch);
	if (attributes[TCA_MPC_LIMIT])
		q->limit = nla_get_u32(attributes[TCA_MPC_LIMIT]);
	if (attributes[TCA_MPC_FLOW_LIMIT])
		q->flow_limit = nla_get_u32(attributes[TCA_MPC_FLOW_LIMIT]);
	if (attributes[TCA_MPC_FLOWS])
		q->max_flows = nla_get_u32(attributes[TCA_MPC_FLOWS]);
	if (attributes[TCA_MPC_CAP])
		q->cap = nla_get_u64(attributes[TCA_MPC_CAP]);
	if (attributes[TCA_MPC_MARKS]) {
		q->marks = nla_len(attributes[TCA_MPC_MARKS]) / sizeof(q->mark[0]);
		memcpy(q->mark, nla_data(attributes[TCA_MPC_MARKS]), nla_len(attributes[TCA_MPC_MARKS]));
	}
	/* What is too much now: those first that have waited longest for their turn. */
	while (sch->q.qlen > q->limit) {
		struct sk_buff *skb;

		if (q->direct_packets) {
			skb = take_direct(sch);
		} else {
			struct rb_node *first = rb_first_cached(&q->tree);
			struct flow *flow;

			if (!first)
				break;
			flow = rb_entry(first, struct flow, in_tree);
			skb = take_from(sch, flow);
			if (!flow->packets)
				unschedule_flow(q, flow);
		}
		dropped++;
		dropped_bytes += qdisc_pkt_len(skb);
		q->stats.limit_drops++;
		qdisc_qstats_drop(sch);
		rtnl_kfree_skbs(skb, skb);
	}
	qdisc_tree_reduce_backlog(sch, dropped, dropped_bytes);
	sch_tree_unlock(sch);
	return 0;
}

static int mpc_init_sched(struct Qdisc *sch, struct nlattr *options, struct netlink_ext_ack *extack)
{
	struct mpc_sched *q = qdisc_priv(sch);
	unsigned int buckets;
	int error;

	q->sch = sch;
	q->net = dev_net(qdisc_dev(sch));
	q->limit = DEFAULT_LIMIT;
	q->flow_limit = DEFAULT_FLOW_LIMIT;
	q->max_flows = DEFAULT_FLOWS;
	q->tree = RB_ROOT_CACHED;
	q->seed = get_random_u32();
	q->frame_bytes = psched_mtu(qdisc_dev(sch));
	q->rtt_min_ns = CC_NONE;
	INIT_LIST_HEAD(&q->ages);
	spin_lock_init(&q->heard_lock);
	qdisc_watchdog_init(&q->watchdog, sch);
	if (options) {
		error = mpc_change(sch, options, extack);
		if (error)
			return error;
	}
	/* The number of flows may be raised later: chains grow then. */
	buckets = roundup_pow_of_two(q->max_flows);
	q->table_mask = buckets - 1;
	q->table = kvcalloc(buckets, sizeof(*q->table), GFP_KERNEL);
	if (!q->table)
		return -ENOMEM;
	error = begin_to_listen(q);
	if (error)
		NL_SET_ERR_MSG_MOD(extack, "no hook for incoming ACKs");
	return error;
}

/* Also after a failed init. The core has reset it before, or no packet has come. */
static void mpc_destroy(struct Qdisc *sch)
{
	struct mpc_sched *q = qdisc_priv(sch);

	if (q->sch)
		qdisc_watchdog_cancel(&q->watchdog);
	if (q->listens)
		end_listening(q);
	if (q->table)
		mpc_reset(sch);
	kvfree(q->table);
	q->table = NULL;
}

static int mpc_dump(struct Qdisc *sch, struct sk_buff *skb)
{
	struct mpc_sched *q = qdisc_priv(sch);
	struct nlattr *options = nla_nest_start_noflag(skb, TCA_OPTIONS);

	if (!options || nla_put_u32(skb, TCA_MPC_LIMIT, q->limit) || nla_put_u32(skb, TCA_MPC_FLOW_LIMIT, q->flow_limit) ||
	    nla_put_u32(skb, TCA_MPC_FLOWS, q->max_flows) || nla_put_u64_64bit(skb, TCA_MPC_CAP, q->cap, TCA_MPC_PAD) ||
	    (q->marks && nla_put(skb, TCA_MPC_MARKS, q->marks * sizeof(q->mark[0]), q->mark)))
		return -EMSGSIZE;
	return nla_nest_end(skb, options);
}

static int mpc_dump_stats(struct Qdisc *sch, struct gnet_dump *dump)
{
	struct mpc_sched *q = qdisc_priv(sch);
	struct tc_mpc_qdisc_stats stats;
	struct flow *flow;

	sch_tree_lock(sch);
	stats = q->stats;
	stats.type = TC_MPC_XSTATS_QDISC;
	stats.flows = q->flows;
	stats.waiting_flows = q->waiting_flows;
	stats.direct_packets = q->direct_packets;
	list_for_each_entry(flow, &q->ages, in_ages) {
		stats.retransmissions += flow->meter.retransmissions;
		stats.timeouts += flow->meter.timeouts;
	}
	sch_tree_unlock(sch);
	spin_lock_bh(&q->heard_lock);
	stats.samples = q->samples;
	stats.rtt_sum_us = q->rtt_sum_us;
	stats.rtt_squares_us2 = q->rtt_squares_us2;
	stats.rtt_min_ns = q->samples ? q->rtt_min_ns : 0;
	stats.rtt_max_ns = q->rtt_max_ns;
	spin_unlock_bh(&q->heard_lock);
	return gnet_stats_copy_app(dump, &stats, sizeof(stats));
}

/* --------------------------------------------------------------------------------- flows, as classes that tc -s class lists */

static struct Qdisc *class_leaf(struct Qdisc *sch, unsigned long id)
{
	return NULL;
}

static unsigned long class_find(struct Qdisc *sch, u32 class)
{
	return 0;
}

static int class_dump(struct Qdisc *sch, unsigned long id, struct sk_buff *skb, struct tcmsg *message)
{
	message->tcm_handle |= TC_H_MIN(id);
	return 0;
}

static void read_flow(struct flow *flow, struct tc_mpc_flow_stats *stats)
{
	const struct meter *meter = &flow->meter;

	stats->type = TC_MPC_XSTATS_FLOW;
	stats->family = flow->key.family;
	stats->mark = flow->mark;
	memcpy(stats->source, flow->key.source, sizeof(stats->source));
	memcpy(stats->destination, flow->key.destination, sizeof(stats->destination));
	stats->source_port = flow->key.source_port;
	stats->destination_port = flow->key.destination_port;
	stats->packets = flow->packets;
	spin_lock(&flow->lock);
	stats->state = meter->law.state;
	stats->rate = meter_rate(meter);
	stats->nominal_rate = meter->law.rho;
	stats->cap = meter->cap;
	stats->rtt_ns = meter->rtt_ns;
	stats->base_rtt_ns = meter->law.base_ns;
	stats->target_ns = meter->law.target_ns;
	stats->queue_ns = meter->law.queue_ns;
	stats->sent_bytes = meter->sent_bytes;
	stats->lost_bytes = meter->lost_bytes;
	stats->samples = meter->samples;
	stats->retransmissions = meter->retransmissions;
	stats->timeouts = meter->timeouts;
	spin_unlock(&flow->lock);
}

static int class_dump_stats(struct Qdisc *sch, unsigned long id, struct gnet_dump *dump)
{
	struct mpc_sched *q = qdisc_priv(sch);
	struct gnet_stats_queue queue = {};
	struct tc_mpc_flow_stats stats = {};
	struct flow *flow;

	sch_tree_lock(sch);
	list_for_each_entry(flow, &q->ages, in_ages)
		if (flow->id == id) {
			read_flow(flow, &stats);
			break;
		}
	sch_tree_unlock(sch);
	/* Forgotten meanwhile. */
	if (!stats.type)
		return 0;
	if (gnet_stats_copy_queue(dump, NULL, &queue, stats.packets) < 0)
		return -1;
	return gnet_stats_copy_app(dump, &stats, sizeof(stats));
}

/* The first flow made after `id`; 0 if there is none. */
static u32 next_flow(struct Qdisc *sch, u32 id)
{
	struct mpc_sched *q = qdisc_priv(sch);
	struct flow *flow;
	u32 next = U32_MAX;

	sch_tree_lock(sch);
	list_for_each_entry(flow, &q->ages, in_ages)
		if (flow->id > id)
			next = min(next, flow->id);
	sch_tree_unlock(sch);
	return next == U32_MAX ? 0 : next;
}

static void class_walk(struct Qdisc *sch, struct qdisc_walker *walker)
{
	u32 id = 0;

	while (!walker->stop && (id = next_flow(sch, id))) {
		if (walker->count >= walker->skip && walker->fn(sch, id, walker) < 0) {
			walker->stop = 1;
			return;
		}
		walker->count++;
	}
}

static const struct Qdisc_class_ops class_ops = {
	.leaf = class_leaf,
	.find = class_find,
	.walk = class_walk,
	.dump = class_dump,
	.dump_stats = class_dump_stats,
};

static struct Qdisc_ops mpc_ops __read_mostly = {
	.id = "mpc",
	.cl_ops = &class_ops,
	.priv_size = sizeof(struct mpc_sched),
	.enqueue = mpc_enqueue,
	.dequeue = mpc_dequeue,
	.peek = qdisc_peek_dequeued,
	.init = mpc_init_sched,
	.reset = mpc_reset,
	.destroy = mpc_destroy,
	.change = mpc_change,
	.dump = mpc_dump,
	.dump_stats = mpc_dump_stats,
	.owner = THIS_MODULE,
};

static int __net_init mpc_net_init(struct net *net)
{
	struct mpc_net *mine = net_generic(net, mpc_net_id);

	INIT_LIST_HEAD(&mine->scheds);
	return 0;
}

static struct pernet_operations mpc_net_ops = {
	.init = mpc_net_init,
	.id = &mpc_net_id,
	.size = sizeof(struct mpc_net),
};

static int __init mpc_module_init(void)
{
	int error;

	BUILD_BUG_ON(sizeof(struct packet_note) > QDISC_CB_PRIV_LEN);
	BUILD_BUG_ON(sizeof(struct flow_key) % sizeof(u32));
	flow_cache = kmem_cache_create("mpc_flow", sizeof(struct flow), 0, 0, NULL);
	if (!flow_cache)
		return -ENOMEM;
	error = register_pernet_subsys(&mpc_net_ops);
	if (error)
		goto no_net;
	error = register_qdisc(&mpc_ops);
	if (error)
		goto no_qdisc;
	return 0;
no_qdisc:
	unregister_pernet_subsys(&mpc_net_ops);
no_net:
	kmem_cache_destroy(flow_cache);
	return error;
}

static void __exit mpc_module_exit(void)
{
	unregister_qdisc(&mpc_ops);
	unregister_pernet_subsys(&mpc_net_ops);
	/* Flows that wait for their grace period. */
	rcu_barrier();
	kmem_cache_destroy(flow_cache);
}

module_init(mpc_module_init);
module_exit(mpc_module_exit);
MODULE_DESCRIPTION("Model-predictive pacing of TCP flows");
MODULE_AUTHOR("Paceline developers");
MODULE_LICENSE("Dual MIT/GPL");
