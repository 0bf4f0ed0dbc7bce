/* SPDX-License-Identifier: MIT OR GPL-2.0-only */
/*
 * One algorithm without a host: each test run (BPF_PROG_TEST_RUN) tells it one event of a recording and lets see what it answers.
 * The build script compiles this once per algorithm, with
 *
 *   CC_HEADER      its header, quoted
 *   CC_ALGORITHM   NAME
 *   CC_FIELDS      NAME_FIELDS
 */
#include CC_HEADER
#include "include/event_log.h"
#include "include/kernel.h"

#define CC_JOIN_(a, b) a##b
#define CC_JOIN(a, b) CC_JOIN_(a, b)
#define algorithm(function) CC_JOIN(CC_ALGORITHM, function)

struct cc_replay_state {
	struct CC_ALGORITHM state;
	struct CC_JOIN(CC_ALGORITHM, _params) params;
};

/* The flow that is being replayed. Who runs this zeroes it before an init. */
struct {
	MAP_UINT(type, BPF_MAP_TYPE_ARRAY);
	MAP_UINT(max_entries, 1);
	MAP_TYPE(key, cc_u32);
	MAP_TYPE(value, struct cc_replay_state);
} paceline_replay SEC(".maps");

/* In: the event and its kind, of event_log.h. Out: the rest. crates/kernel/src/replay.rs mirrors it. */
struct cc_replay {
	union {
		struct cc_path path;
		struct cc_ack ack;
		struct cc_loss loss;
		struct cc_timeout timeout;
		struct cc_undo undo;
		struct cc_resume resume;
		cc_u64 word;
	} event;
	cc_u64 kind;
	struct cc_control control;
	cc_u64 observed[CC_FIELDS];
	struct CC_JOIN(CC_ALGORITHM, _params) params;
};

/* Events are copied: a function that the verifier checks by itself takes no pointer into the context. */
SEC("syscall")
int cc_replay_event(struct cc_replay *context)
{
	struct cc_control control;
	cc_u64 observed[CC_FIELDS];
	struct cc_replay_state *flow;
	cc_u32 only = 0;

	flow = bpf_map_lookup_elem(&paceline_replay, &only);
	if (!flow)
		return -1;
	switch (context->kind) {
	case CC_RECORD_INIT: {
		struct cc_path path = context->event.path;

		flow->params = context->params;
		algorithm(_init)(&flow->state, &path, &flow->params);
		break;
	}
	case CC_RECORD_ACK: {
		struct cc_ack ack = context->event.ack;

		algorithm(_on_ack)(&flow->state, &ack);
		break;
	}
	case CC_RECORD_LOSS: {
		struct cc_loss loss = context->event.loss;

		algorithm(_on_loss)(&flow->state, &loss);
		break;
	}
	case CC_RECORD_RTO: {
		struct cc_timeout timeout = context->event.timeout;

		algorithm(_on_rto)(&flow->state, &timeout);
		break;
	}
	case CC_RECORD_SPURIOUS: {
		struct cc_undo undo = context->event.undo;

		algorithm(_on_spurious_loss)(&flow->state, &undo);
		break;
	}
	case CC_RECORD_RESUME: {
		struct cc_resume resume = context->event.resume;

		algorithm(_on_resume)(&flow->state, &resume);
		break;
	}
	case CC_RECORD_PATH_CHANGE: {
		struct cc_path path = context->event.path;

		algorithm(_on_path_change)(&flow->state, &path);
		break;
	}
	case CC_RECORD_TIMER:
		algorithm(_on_timer)(&flow->state, context->event.word);
		break;
#ifdef CC_SET_CAP
	case CC_RECORD_CAP:
		CC_SET_CAP(&flow->state, &flow->params, context->event.word);
		break;
#endif
	default:
		return -2;
	}
	algorithm(_control)(&flow->state, &control);
	algorithm(_observe)(&flow->state, observed);
	context->control = control;
	__builtin_memcpy(context->observed, observed, sizeof(observed));
	return 0;
}

char cc_license[] SEC("license") = "Dual MIT/GPL";
