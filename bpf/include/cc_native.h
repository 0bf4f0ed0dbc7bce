/* SPDX-License-Identifier: MIT OR GPL-2.0-only */
/*
 * Native shim: CC_NATIVE(NAME) makes a table of NAME's callbacks that crates/cc/src/native.rs turns into a Controller.
 * The build script writes one source file per header of bpf/algorithms with this macro in it.
 */
#ifndef PACELINE_CC_NATIVE_H
#define PACELINE_CC_NATIVE_H

#include "cc_abi.h"

struct cc_native {
	cc_u64 state_bytes;
	cc_u64 params;
	cc_u64 fields;
	void (*init)(void *state, const struct cc_path *path, const void *params);
	void (*on_ack)(void *state, const struct cc_ack *ack);
	/* on_ack, and then control. */
	struct cc_control (*answer)(void *state, const struct cc_ack *ack);
	void (*on_loss)(void *state, const struct cc_loss *loss);
	void (*on_rto)(void *state, const struct cc_timeout *timeout);
	void (*on_spurious_loss)(void *state, const struct cc_undo *undo);
	void (*on_resume)(void *state, const struct cc_resume *resume);
	void (*on_path_change)(void *state, const struct cc_path *path);
	void (*on_timer)(void *state, cc_u64 now_ns);
	struct cc_control (*control)(const void *state);
	void (*observe)(const void *state, cc_u64 *out);
	/* 0 if the algorithm knows of no caps. */
	void (*set_cap)(void *state, const void *params, cc_u64 bytes_per_s);
};

#ifdef CC_SET_CAP
static void cc_native_set_cap(void *state, const void *params, cc_u64 bytes_per_s)
{
	CC_SET_CAP(state, params, bytes_per_s);
}
#define CC_NATIVE_SET_CAP cc_native_set_cap
#else
#define CC_NATIVE_SET_CAP 0
#endif

#define CC_NATIVE_EVENT(name, event, type)                            \
	static void name##_native_##event(void *state, const struct type *e) \
	{                                                             \
		name##_##event(state, e);                             \
	}

#define CC_NATIVE(name, field_count)                                                            \
	static void name##_native_init(void *state, const struct cc_path *path, const void *params) \
	{                                                                                       \
		name##_init(state, path, params);                                               \
	}                                                                                       \
	CC_NATIVE_EVENT(name, on_ack, cc_ack)                                                   \
	CC_NATIVE_EVENT(name, on_loss, cc_loss)                                                 \
	CC_NATIVE_EVENT(name, on_rto, cc_timeout)                                               \
	CC_NATIVE_EVENT(name, on_spurious_loss, cc_undo)                                        \
	CC_NATIVE_EVENT(name, on_resume, cc_resume)                                             \
	CC_NATIVE_EVENT(name, on_path_change, cc_path)                                          \
	static void name##_native_on_timer(void *state, cc_u64 now_ns)                          \
	{                                                                                       \
		name##_on_timer(state, now_ns);                                                 \
	}                                                                                       \
	static struct cc_control name##_native_control(const void *state)                       \
	{                                                                                       \
		struct cc_control control;                                                      \
                                                                                                \
		name##_control(state, &control);                                                \
		return control;                                                                 \
	}                                                                                       \
	static struct cc_control name##_native_answer(void *state, const struct cc_ack *ack)    \
	{                                                                                       \
		struct cc_control control;                                                      \
                                                                                                \
		name##_on_ack(state, ack);                                                      \
		name##_control(state, &control);                                                \
		return control;                                                                 \
	}                                                                                       \
	static void name##_native_observe(const void *state, cc_u64 *out)                       \
	{                                                                                       \
		name##_observe(state, out);                                                     \
	}                                                                                       \
	extern const struct cc_native paceline_cc_##name;                                       \
	const struct cc_native paceline_cc_##name = {                                           \
		.state_bytes = sizeof(struct name),                                             \
		.params = sizeof(struct name##_params) / sizeof(cc_u64),                        \
		.fields = (field_count),                                                        \
		.init = name##_native_init,                                                     \
		.on_ack = name##_native_on_ack,                                                 \
		.answer = name##_native_answer,                                                 \
		.on_loss = name##_native_on_loss,                                               \
		.on_rto = name##_native_on_rto,                                                 \
		.on_spurious_loss = name##_native_on_spurious_loss,                             \
		.on_resume = name##_native_on_resume,                                           \
		.on_path_change = name##_native_on_path_change,                                 \
		.on_timer = name##_native_on_timer,                                             \
		.control = name##_native_control,                                               \
		.observe = name##_native_observe,                                               \
		.set_cap = CC_NATIVE_SET_CAP,                                                   \
	};                                                                                      \
	_Static_assert(_Alignof(struct name) <= 8, "state of " #name " needs more than 8-byte alignment")

#endif
