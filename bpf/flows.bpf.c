/* SPDX-License-Identifier: MIT OR GPL-2.0-only */
/*
 * Writes every flow of a map paceline_flows: its endpoints and the map's value. Flows pay nothing for being looked at.
 */
#include "include/flow.h"
#include "include/kernel.h"

/* sizeof(struct cc_flow) of the algorithm, filled in by the loader. */
const volatile cc_u32 cc_flow_bytes = 1;

SEC("iter/bpf_sk_storage_map")
int cc_write_flow(struct bpf_iter__bpf_sk_storage_map *context)
{
	struct seq_file *seq = context->meta->seq;
	struct sock *sk = context->sk;
	void *flow = context->value;
	struct cc_endpoints endpoints;

	if (!sk || !flow)
		return 0;
	kernel_endpoints(&sk->__sk_common, &endpoints);
	bpf_seq_write(seq, &endpoints, sizeof(endpoints));
	bpf_seq_write(seq, flow, cc_flow_bytes);
	return 0;
}

char cc_license[] SEC("license") = "Dual MIT/GPL";
