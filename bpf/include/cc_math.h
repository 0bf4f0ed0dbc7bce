/* SPDX-License-Identifier: MIT OR GPL-2.0-only */
/*
 * 64-bit arithmetic for algorithms that also run as BPF.
 */
#ifndef PACELINE_CC_MATH_H
#define PACELINE_CC_MATH_H

#include "cc_abi.h"

/*
 * CC_APART marks a function of numbers, or of structs and numbers, that the BPF verifier checks once, by itself, and not along every
 * path of every caller: what has a loop. There it must return a number and look at its pointers first, with CC_PRESENT.
 */
#ifdef __bpf__
#define CC_APART __attribute__((noinline))
#define CC_PRESENT(pointer) \
	do {                \
		if (!(pointer)) \
			return 0; \
	} while (0)
#else
#define CC_APART static inline
#define CC_PRESENT(pointer)
#endif

static inline cc_u64 cc_min(cc_u64 a, cc_u64 b)
{
	return a < b ? a : b;
}

static inline cc_u64 cc_max(cc_u64 a, cc_u64 b)
{
	return a > b ? a : b;
}

#ifdef __bpf__
#define CC_OPAQUE(value) __asm__ volatile("" : "+r"(value))
#else
#define CC_OPAQUE(value) (void)(value)
#endif

/*
 * All bits if a < b, else none; both below 2^63. Where the compiler cannot see what it is, a choice made with it is no branch: the
 * verifier need not follow both ways of each step of a search.
 */
static inline cc_u64 cc_below(cc_u64 a, cc_u64 b)
{
	cc_s64 difference = (cc_s64)a - (cc_s64)b;

	CC_OPAQUE(difference);
	difference >>= 63;
	CC_OPAQUE(difference);
	return (cc_u64)difference;
}

#define CC_SECOND_NS 1000000000ull

/* bytes/s of `bytes` in `ns`; 0 when there is no time. Up to 16 s, more counting as that, and about 2^63 bytes/s. */
static inline cc_u64 cc_rate(cc_u64 bytes, cc_u64 ns)
{
	ns = cc_min(ns, (cc_u64)1 << 34);
	if (!ns)
		return 0;
	return cc_min(bytes / ns, (cc_u64)1 << 33) * CC_SECOND_NS + bytes % ns * CC_SECOND_NS / ns;
}

/* Bytes that `rate` bytes/s, at most 2^56, makes in `ns`, at most 2^34: without a product of more than 64 bits. */
static inline cc_u64 cc_bytes(cc_u64 rate, cc_u64 ns)
{
	cc_u64 rate_giga = rate / CC_SECOND_NS, rate_rest = rate % CC_SECOND_NS;
	cc_u64 seconds = ns / CC_SECOND_NS, ns_rest = ns % CC_SECOND_NS;

	return rate * seconds + rate_giga * ns_rest + rate_rest * ns_rest / CC_SECOND_NS;
}

/* ns that `bytes` take at `rate` bytes/s, both at most 2^40, to 2^-26 of them, at most 2^63; CC_NEVER when there is no rate. */
static inline cc_u64 cc_time(cc_u64 bytes, cc_u64 rate)
{
	if (rate >> 33) {
		bytes >>= 7;
		rate >>= 7;
	}
	if (!rate)
		return CC_NEVER;
	return cc_min(bytes / rate, (cc_u64)1 << 33) * CC_SECOND_NS + bytes % rate * CC_SECOND_NS / rate;
}

/* Logarithms are to the base of 2 and have 16 bits of fraction. */
#define CC_LOG_BITS 16

/* log2 of `value`, to the last bit; 0 for 0. */
CC_APART cc_u64 cc_log2(cc_u64 value)
{
	cc_u64 exponent = 63, fraction = 0;
	int step;

	if (!value)
		return 0;
	for (step = 32; step; step /= 2) {
		if (!(value >> (64 - step))) {
			value <<= step;
			exponent -= (cc_u64)step;
		}
	}
	/* A mantissa in [1, 2) with 31 bits of fraction. Each squaring tells one bit of its logarithm. */
	value >>= 32;
	for (step = 0; step < CC_LOG_BITS; step++) {
		value = value * value >> 31;
		fraction <<= 1;
		if (value >> 32) {
			fraction |= 1;
			value >>= 1;
		}
	}
	return exponent << CC_LOG_BITS | fraction;
}

/* 2 to the power of `log`, to 2^-15 of it and the whole number below; at most 2^63. */
CC_APART cc_u64 cc_exp2(cc_u64 log)
{
	cc_u64 exponent = log >> CC_LOG_BITS;
	cc_u64 f = log & (((cc_u64)1 << CC_LOG_BITS) - 1);
	/* (ln 2)^k / k! with 30 bits of fraction; the last is what makes 2^1 a 2. */
	cc_u64 power = 1614988;

	power = 10327387 + (power * f >> CC_LOG_BITS);
	power = 59597083 + (power * f >> CC_LOG_BITS);
	power = 257941248 + (power * f >> CC_LOG_BITS);
	power = 744261118 + (power * f >> CC_LOG_BITS);
	power = ((cc_u64)1 << 30) + (power * f >> CC_LOG_BITS);
	if (exponent >= 63)
		return (cc_u64)1 << 63;
	return exponent >= 30 ? power << (exponent - 30) : power >> (30 - exponent);
}

#endif
