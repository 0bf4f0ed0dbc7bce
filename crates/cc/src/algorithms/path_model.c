/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* Latte's model of the path (bpf/algorithms/latte/path.h) for the algorithms in Rust that share it: path_model.rs. */
/* No kernel bounds their memory. */
#define CC_KEPT 256u
#include "algorithms/latte/path.h"

extern const cc_u64 paceline_cc_path_model_bytes;
void paceline_cc_path_model_init(void *state, cc_u64 now_ns, const struct latte_path_settings *settings);
cc_u64 paceline_cc_path_model_on_ack(void *state, const struct cc_ack *ack, cc_u64 *out);

const cc_u64 paceline_cc_path_model_bytes = sizeof(struct latte_path);

void paceline_cc_path_model_init(void *state, cc_u64 now_ns, const struct latte_path_settings *settings)
{
	latte_path_init(state, now_ns, settings);
}

/* Writes minimum RTT, bandwidth and gradient; returns the RTT, or 0. */
cc_u64 paceline_cc_path_model_on_ack(void *state, const struct cc_ack *ack, cc_u64 *out)
{
	struct latte_path *path = state;
	cc_u64 rtt_ns = latte_path_on_ack(path, ack);

	out[0] = path->min_rtt_ns;
	out[1] = path->bandwidth;
	out[2] = (cc_u64)path->gradient;
	return rtt_ns;
}
