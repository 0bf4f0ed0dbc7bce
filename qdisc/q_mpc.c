/* SPDX-License-Identifier: MIT OR GPL-2.0-only */
/*
 * tc's plugin for the queueing discipline `mpc`: reads its options, prints its options and statistics. tc loads q_mpc.so from its
 * folder for plugins and looks for mpc_qdisc_util in it; the functions it calls are tc's own. What is declared here is that
 * interface (iproute2 5.x and 6.x), which has no header to install.
 */
#include <arpa/inet.h>
#include <linux/netlink.h>
#include <linux/rtnetlink.h>
#include <math.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "mpc_netlink.h"

struct qdisc_util {
	struct qdisc_util *next;
	const char *id;
	int (*parse_qopt)(struct qdisc_util *self, int argc, char **argv, struct nlmsghdr *message, const char *device);
	int (*print_qopt)(struct qdisc_util *self, FILE *file, struct rtattr *options);
	int (*print_xstats)(struct qdisc_util *self, FILE *file, struct rtattr *xstats);
	int (*parse_copt)(struct qdisc_util *self, int argc, char **argv, struct nlmsghdr *message, const char *device);
	int (*print_copt)(struct qdisc_util *self, FILE *file, struct rtattr *options);
	int (*has_block)(struct qdisc_util *self, struct rtattr *options, __u32 block, bool *has);
};

enum output_type { PRINT_FP = 1, PRINT_JSON = 2, PRINT_ANY = 4 };
#define COLOR_NONE 6

int addattr_l(struct nlmsghdr *message, int most, int type, const void *data, int bytes);
struct rtattr *addattr_nest(struct nlmsghdr *message, int most, int type);
int addattr_nest_end(struct nlmsghdr *message, struct rtattr *nest);
int parse_rtattr_flags(struct rtattr *attributes[], int most, struct rtattr *from, int bytes, unsigned short flags);
int get_rate64(__u64 *rate, const char *text);
void tc_print_rate(enum output_type type, const char *key, const char *format, unsigned long long rate);
int print_color_u64(enum output_type type, int color, const char *key, const char *format, uint64_t value);
int print_color_float(enum output_type type, int color, const char *key, const char *format, double value);
int print_color_string(enum output_type type, int color, const char *key, const char *format, const char *value);
void open_json_object(const char *name);
void close_json_object(void);
void open_json_array(enum output_type type, const char *name);
void close_json_array(enum output_type type, const char *end);

/* What tc gives a message room for. */
#define MOST_BYTES 4096

static void explain(void)
{
	fprintf(stderr, "Usage: ... mpc [ limit PACKETS ] [ flow_limit PACKETS ] [ flows NUMBER ]\n"
			"               [ cap RATE ] [ mark MARK RATE ]...\n"
			"cap: of every flow; RATE 0 = none. mark: of the flows whose packets have this mark, instead.\n"
			"Marks given replace all there are; \"mark none\" takes them away.\n");
}

/* Whether it is in range, the kernel says. */
static int parse_count(const char *key, const char *text, __u32 *value)
{
	char *end;
	unsigned long number = text ? strtoul(text, &end, 0) : 0;

	if (!text || !*text || *text == '-' || *end || number > 0xffffffffUL) {
		fprintf(stderr, "mpc: %s %s: must be a whole number\n", key, text ? text : "");
		return -1;
	}
	*value = (__u32)number;
	return 0;
}

static int parse_cap(const char *key, const char *text, __u64 *cap)
{
	*cap = 0;
	if (!text || *text == '-' || (strcmp(text, "0") && get_rate64(cap, text))) {
		fprintf(stderr, "mpc: %s %s: must be 0 (none) or a rate as 300mbit\n", key, text ? text : "");
		return -1;
	}
	return 0;
}

static int parse_mark(const char *mark, const char *rate, struct tc_mpc_mark *entry)
{
	char *end;
	unsigned long number = mark ? strtoul(mark, &end, 0) : 0;

	if (!mark || !*mark || *mark == '-' || *end || number > 0xffffffffUL) {
		fprintf(stderr, "mpc: mark %s: must be \"none\" or a whole number, 0 to 0xffffffff, and a rate\n", mark ? mark : "");
		return -1;
	}
	memset(entry, 0, sizeof(*entry));
	entry->mark = (__u32)number;
	return parse_cap("mark: cap", rate, &entry->cap);
}

static int parse(struct qdisc_util *self, int argc, char **argv, struct nlmsghdr *message, const char *device)
{
	struct tc_mpc_mark marks[TC_MPC_MAX_MARKS];
	unsigned int count = 0;
	bool has_marks = false;
	struct rtattr *nest = addattr_nest(message, MOST_BYTES, TCA_OPTIONS | NLA_F_NESTED);

	for (; argc > 0; argc--, argv++) {
		static const struct {
			const char *key;
			int type;
		} counts[] = { { "limit", TCA_MPC_LIMIT }, { "flow_limit", TCA_MPC_FLOW_LIMIT }, { "flows", TCA_MPC_FLOWS } };
		const char *value = argc > 1 ? argv[1] : NULL;
		__u64 cap = 0;
		__u32 number;
		unsigned int i;

		for (i = 0; i < sizeof(counts) / sizeof(counts[0]); i++)
			if (!strcmp(*argv, counts[i].key))
				break;
		if (i < sizeof(counts) / sizeof(counts[0])) {
			if (parse_count(*argv, value, &number))
				return -1;
			addattr_l(message, MOST_BYTES, counts[i].type, &number, sizeof(number));
		} else if (!strcmp(*argv, "cap")) {
			if (parse_cap(*argv, value, &cap))
				return -1;
			addattr_l(message, MOST_BYTES, TCA_MPC_CAP, &cap, sizeof(cap));
		} else if (!strcmp(*argv, "mark")) {
			has_marks = true;
			if (!value || strcmp(value, "none")) {
				if (count == TC_MPC_MAX_MARKS) {
					fprintf(stderr, "mpc: mark: at most %d of them\n", TC_MPC_MAX_MARKS);
					return -1;
				}
				if (parse_mark(value, argc > 2 ? argv[2] : NULL, &marks[count]))
					return -1;
				count++;
				argc--, argv++;
			}
		} else {
			if (strcmp(*argv, "help"))
				fprintf(stderr, "mpc: unknown option \"%s\"\n", *argv);
			explain();
			return -1;
		}
		argc--, argv++;
	}
	if (has_marks)
		addattr_l(message, MOST_BYTES, TCA_MPC_MARKS, marks, (int)(count * sizeof(marks[0])));
	addattr_nest_end(message, nest);
	return 0;
}

/* --------------------------------------------------------------------------------------------------------------- printing */

static __u64 u64_of(const struct rtattr *attribute)
{
	__u64 value;

	memcpy(&value, RTA_DATA(attribute), sizeof(value));
	return value;
}

static void print_number(const char *key, const char *format, uint64_t value)
{
	print_color_u64(PRINT_ANY, COLOR_NONE, key, format, value);
}

/* Milliseconds for people, nanoseconds for JSON. */
static void print_time(const char *key, const char *format, double ns)
{
	print_color_u64(PRINT_JSON, COLOR_NONE, key, NULL, (uint64_t)ns);
	print_color_float(PRINT_FP, COLOR_NONE, NULL, format, ns / 1e6);
}

static int print_options(struct qdisc_util *self, FILE *file, struct rtattr *options)
{
	static const char *const keys[] = { [TCA_MPC_LIMIT] = "limit", [TCA_MPC_FLOW_LIMIT] = "flow_limit", [TCA_MPC_FLOWS] = "flows" };
	static const char *const formats[] = { [TCA_MPC_LIMIT] = "limit %llup ", [TCA_MPC_FLOW_LIMIT] = "flow_limit %llup ",
					       [TCA_MPC_FLOWS] = "flows %llu " };
	struct rtattr *attributes[TCA_MPC_MAX + 1];
	int type;

	if (!options)
		return 0;
	parse_rtattr_flags(attributes, TCA_MPC_MAX, RTA_DATA(options), RTA_PAYLOAD(options), NLA_F_NESTED);
	for (type = TCA_MPC_LIMIT; type <= TCA_MPC_FLOWS; type++)
		if (attributes[type] && RTA_PAYLOAD(attributes[type]) >= sizeof(__u32))
			print_number(keys[type], formats[type], *(__u32 *)RTA_DATA(attributes[type]));
	if (attributes[TCA_MPC_CAP] && RTA_PAYLOAD(attributes[TCA_MPC_CAP]) >= sizeof(__u64) && u64_of(attributes[TCA_MPC_CAP]))
		tc_print_rate(PRINT_ANY, "cap", "cap %s ", u64_of(attributes[TCA_MPC_CAP]));
	if (attributes[TCA_MPC_MARKS]) {
		const struct tc_mpc_mark *mark = RTA_DATA(attributes[TCA_MPC_MARKS]);
		unsigned int count = (unsigned int)(RTA_PAYLOAD(attributes[TCA_MPC_MARKS]) / sizeof(*mark));

		open_json_array(PRINT_JSON, "marks");
		for (; count; count--, mark++) {
			open_json_object(NULL);
			print_number("mark", "mark %llu ", mark->mark);
			tc_print_rate(PRINT_ANY, "cap", "%s ", mark->cap);
			close_json_object();
		}
		close_json_array(PRINT_JSON, NULL);
	}
	return 0;
}

static void print_qdisc(const struct tc_mpc_qdisc_stats *s)
{
	double mean_us = s->samples ? (double)s->rtt_sum_us / s->samples : 0;
	double variance = s->samples ? (double)s->rtt_squares_us2 / s->samples - mean_us * mean_us : 0;

	print_number("flows", "  flows %llu", s->flows);
	print_number("waiting_flows", " (waiting %llu", s->waiting_flows);
	print_number("created_flows", ", created %llu", s->created_flows);
	print_number("refused", ", packets refused %llu)\n", s->refused_flows);
	print_number("throttled", "  packets throttled %llu", s->throttled);
	print_number("direct", " direct %llu", s->direct);
	print_number("direct_waiting", " (waiting %llu)", s->direct_packets);
	print_number("split", " segments split %llu\n", s->split);
	print_number("limit_drops", "  dropped: limit %llu", s->limit_drops);
	print_number("flow_limit_drops", " flow_limit %llu\n", s->flow_limit_drops);
	print_number("rtt_samples", "  rtt samples %llu", s->samples);
	print_time("rtt_mean_ns", " mean %.3fms", mean_us * 1e3);
	print_time("rtt_deviation_ns", " std %.3fms", variance > 0 ? sqrt(variance) * 1e3 : 0);
	print_time("rtt_min_ns", " min %.3fms", (double)s->rtt_min_ns);
	print_time("rtt_max_ns", " max %.3fms\n", (double)s->rtt_max_ns);
	print_number("retransmissions", "  of these flows: retransmissions %llu", s->retransmissions);
	print_number("timeouts", " timeouts %llu", s->timeouts);
}

static void print_end(const char *key, const char *format, const __u8 *address, __u32 family, __be16 port)
{
	char text[INET6_ADDRSTRLEN + 8];

	if (!inet_ntop((int)family, address, text, INET6_ADDRSTRLEN))
		strcpy(text, "?");
	snprintf(text + strlen(text), 8, ":%u", ntohs(port));
	print_color_string(PRINT_ANY, COLOR_NONE, key, format, text);
}

static void print_flow(const struct tc_mpc_flow_stats *s)
{
	static const char *const states[] = { "start-up", "steady", "growth", "drain" };

	print_end("source", "  %s", s->source, s->family, s->source_port);
	print_end("destination", " > %s", s->destination, s->family, s->destination_port);
	print_number("mark", " mark %llu", s->mark);
	print_color_string(PRINT_ANY, COLOR_NONE, "state", " %s\n", s->state < 4 ? states[s->state] : "?");
	if (s->rate < TC_MPC_MAX_CAP)
		tc_print_rate(PRINT_ANY, "rate", "  rate %s", s->rate);
	else
		print_color_string(PRINT_FP, COLOR_NONE, NULL, "  rate %s", "unpaced");
	tc_print_rate(PRINT_ANY, "nominal_rate", " nominal %s", s->nominal_rate);
	if (s->cap < TC_MPC_MAX_CAP)
		tc_print_rate(PRINT_ANY, "cap", " cap %s", s->cap);
	print_number("waiting", " waiting %llup\n", s->packets);
	print_time("rtt_ns", "  rtt %.3fms", (double)s->rtt_ns);
	print_time("base_rtt_ns", " base %.3fms", (double)s->base_rtt_ns);
	print_time("queue_ns", " queue %.3fms", (double)s->queue_ns);
	print_time("target_ns", " target %.3fms", (double)s->target_ns);
	print_number("rtt_samples", " samples %llu\n", s->samples);
	print_number("sent_bytes", "  sent %llu bytes", s->sent_bytes);
	print_number("lost_bytes", " lost %llu bytes", s->lost_bytes);
	print_number("retransmissions", " retransmissions %llu", s->retransmissions);
	print_number("timeouts", " timeouts %llu", s->timeouts);
}

/* The kernel's may be newer, and longer. */
static int print_statistics(struct qdisc_util *self, FILE *file, struct rtattr *xstats)
{
	union {
		__u32 type;
		struct tc_mpc_qdisc_stats qdisc;
		struct tc_mpc_flow_stats flow;
	} stats;
	size_t bytes;

	if (!xstats)
		return 0;
	bytes = RTA_PAYLOAD(xstats);
	memset(&stats, 0, sizeof(stats));
	memcpy(&stats, RTA_DATA(xstats), bytes < sizeof(stats) ? bytes : sizeof(stats));
	if (stats.type == TC_MPC_XSTATS_QDISC)
		print_qdisc(&stats.qdisc);
	else if (stats.type == TC_MPC_XSTATS_FLOW)
		print_flow(&stats.flow);
	return 0;
}

__attribute__((visibility("default"))) struct qdisc_util mpc_qdisc_util = {
	.id = "mpc",
	.parse_qopt = parse,
	.print_qopt = print_options,
	.print_xstats = print_statistics,
	.print_copt = print_options,
};
