/* SPDX-License-Identifier: MIT OR GPL-2.0-only */
/*
 * What a recording of a controller's events is made of: records, each a head and what its kind says. The host in the kernel puts
 * them into a ring buffer, the file is the same after a head of its own. crates/cc/src/event_log.rs mirrors this and reads it;
 * docs/kernel.md has the table.
 */
#ifndef PACELINE_EVENT_LOG_H
#define PACELINE_EVENT_LOG_H

#include "flow.h"

/* Kinds, and what follows the head. */
#define CC_RECORD_INIT 1u        /* struct cc_record_init, then its parameters */
#define CC_RECORD_ACK 2u         /* struct cc_ack */
#define CC_RECORD_LOSS 3u        /* struct cc_loss */
#define CC_RECORD_RTO 4u         /* struct cc_timeout */
#define CC_RECORD_SPURIOUS 5u    /* struct cc_undo */
#define CC_RECORD_RESUME 6u      /* struct cc_resume */
#define CC_RECORD_PATH_CHANGE 7u /* struct cc_path */
#define CC_RECORD_TIMER 8u       /* cc_u64 now_ns */
#define CC_RECORD_CAP 9u         /* cc_u64 bytes_per_s, CC_UNPACED = none */
#define CC_RECORD_CONTROL 10u    /* struct cc_control: what the host has read after the events before it */
#define CC_RECORD_RELEASE 11u    /* nothing: the flow has ended, or another controller took over */

struct cc_record {
	/* Of one flow, and its records from 0, also those that found the buffer full. */
	cc_u64 flow;
	cc_u32 sequence;
	cc_u32 kind;
};

struct cc_record_init {
	struct cc_path path;
	struct cc_endpoints endpoints;
	/* Ends in zeros. */
	char algorithm[16];
	/* How many: struct NAME_params, as integers (crates/cc/src/native.rs). */
	cc_u64 params;
};

CC_SIZE(cc_record, 16);
CC_OFFSET(cc_record, sequence, 8);
CC_OFFSET(cc_record, kind, 12);
CC_SIZE(cc_record_init, 88);
CC_OFFSET(cc_record_init, endpoints, 24);
CC_OFFSET(cc_record_init, algorithm, 64);
CC_OFFSET(cc_record_init, params, 80);

#endif
