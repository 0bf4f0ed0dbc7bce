/* SPDX-License-Identifier: MIT OR GPL-2.0-only */
/*
 * Records what the algorithm is told and what it answers. cc_kernel.h includes this after its settings. Unless the loader asks for a
 * recording there is no buffer, and the verifier takes out every branch that would fill it.
 */
#ifndef PACELINE_RECORDER_H
#define PACELINE_RECORDER_H

#include "event_log.h"

/* The loader gives its size. */
struct {
	MAP_UINT(type, BPF_MAP_TYPE_RINGBUF);
	MAP_UINT(max_entries, 4096);
} paceline_events SEC(".maps");

/* How many records found the buffer full. */
struct {
	MAP_UINT(type, BPF_MAP_TYPE_ARRAY);
	MAP_UINT(max_entries, 1);
	MAP_TYPE(key, cc_u32);
	MAP_TYPE(value, cc_u64);
} paceline_lost SEC(".maps");

#define HOST_INLINE static inline __attribute__((always_inline))

/* Room for a record with `bytes`, a constant, after its head; 0 if there is none. The reader looks at its own pace: it is not woken. */
HOST_INLINE struct cc_record *host_reserve(struct cc_host *host, cc_u32 kind, cc_u64 bytes)
{
	cc_u32 sequence = host->recorded++;
	struct cc_record *record = bpf_ringbuf_reserve(&paceline_events, sizeof(*record) + bytes, 0);

	if (!record) {
		cc_u32 only = 0;
		cc_u64 *lost = bpf_map_lookup_elem(&paceline_lost, &only);

		if (lost)
			__sync_fetch_and_add(lost, 1);
		return 0;
	}
	record->flow = host->flow_id;
	record->sequence = sequence;
	record->kind = kind;
	return record;
}

HOST_INLINE void host_record(struct cc_host *host, cc_u32 kind, const void *what, cc_u64 bytes)
{
	struct cc_record *record;

	if (!cc_settings.record)
		return;
	record = host_reserve(host, kind, bytes);
	if (!record)
		return;
	__builtin_memcpy(record + 1, what, bytes);
	bpf_ringbuf_submit(record, BPF_RB_NO_WAKEUP);
}

HOST_INLINE void host_record_init(struct tcp_sock *tp, struct cc_host *host, const struct cc_path *path)
{
	struct sock_common *common = &tp->inet_conn.icsk_inet.sk.__sk_common;
	const cc_u64 params = sizeof(struct CC_JOIN(CC_ALGORITHM, _params)) / sizeof(cc_u64);
	const char *name = (const char *)cc_settings.algorithm;
	struct cc_record_init *init;
	struct cc_record *record;

	if (!cc_settings.record)
		return;
	host->flow_id = path->seed;
	record = host_reserve(host, CC_RECORD_INIT, sizeof(*init) + params * sizeof(cc_u64));
	if (!record)
		return;
	init = (struct cc_record_init *)(record + 1);
	init->path = *path;
	kernel_endpoints(common, &init->endpoints);
	/* As in host_params. */
	asm volatile("" : "+r"(name));
	__builtin_memcpy(init->algorithm, name, sizeof(init->algorithm));
	init->params = params;
	__builtin_memcpy(init + 1, host_params(), params * sizeof(cc_u64));
	bpf_ringbuf_submit(record, BPF_RB_NO_WAKEUP);
}

#endif
