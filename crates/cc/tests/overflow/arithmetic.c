/* SPDX-License-Identifier: MIT OR GPL-2.0-only */
/*
 * The arithmetic of cc_math.h and of mpc.h against the same in 128 bits, with inputs at the corners of what each documents and
 * of any magnitude between. Prints the first that differs and fails.
 */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "algorithms/mpc.h"

typedef unsigned __int128 wide;

static cc_u64 random_state;

/* SplitMix64 (Steele, Lea and Flood 2014). */
static cc_u64 random_bits(void)
{
	cc_u64 z = random_state += 0x9e3779b97f4a7c15ull;

	z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9ull;
	z = (z ^ (z >> 27)) * 0x94d049bb133111ebull;
	return z ^ (z >> 31);
}

/* Up to `most`, of any magnitude; both ends, powers of two and their neighbours are likely. */
static cc_u64 upto(cc_u64 most)
{
	cc_u64 digits = 0, value = 0;

	while (digits < 64 && most >> digits)
		digits++;
	if (digits)
		value = random_bits() >> (64 - (random_bits() % digits + 1));
	switch (random_bits() % 8) {
	case 0:
		return 0;
	case 1:
		return most;
	case 2:
		return most - cc_min(most, random_bits() % 3);
	case 3:
		return cc_min(most, ((cc_u64)1 << random_bits() % 64) + random_bits() % 3 - 1);
	default:
		return cc_min(value, most);
	}
}

static void same(const char *what, cc_u64 got, wide expected, cc_u64 slack, cc_u64 a, cc_u64 b)
{
	wide distance = got > expected ? got - expected : expected - got;

	if (distance <= slack)
		return;
	fprintf(stderr, "%s(%llu, %llu) is %llu, not %llu, to %llu\n", what, a, b, got, (cc_u64)expected, slack);
	exit(1);
}

#define MAX_TIME ((cc_u64)1 << 62)

static void check(void)
{
	cc_u64 a, b, c;
	double log, power;

	a = upto(CC_NONE), b = upto(CC_NONE);
	c = cc_min(b, (cc_u64)1 << 34);
	/* The quotient is bounded, the remainder is not. */
	same("cc_rate", cc_rate(a, b), c ? cc_min(a / c, (cc_u64)1 << 33) * (wide)1000000000 + a % c * (wide)1000000000 / c : 0, 0, a, b);
	a = upto((cc_u64)1 << 33), b = upto((cc_u64)1 << 34);
	same("rate", cc_rate(a, b), b ? a * (wide)1000000000 / b : 0, 0, a, b);

	a = upto((cc_u64)1 << 56), b = upto(MPC_MAX_NS);
	/* Two quotients rounded down, and the bytes of rate / 10^9 are exact. */
	same("cc_bytes", cc_bytes(a, b), a * (wide)b / 1000000000, 1, a, b);

	a = upto(MPC_MAX_RATE), b = upto(MPC_MAX_RATE);
	if (b) {
		wide exact = a * (wide)1000000000 / b;

		if (exact < (wide)1 << 62)
			same("cc_time", cc_time(a, b), exact, (b >> 33 ? 127 * 1000000000ull / b + 1 : 0) + (cc_u64)(exact >> 26), a, b);
		else
			same("long cc_time", cc_time(a, b) >= MAX_TIME && cc_time(a, b) < CC_NEVER, 1, 0, a, b);
	} else {
		same("cc_time", cc_time(a, b), CC_NEVER, 0, a, b);
	}

	a = upto(CC_NONE);
	log = a ? log2((double)a) * 65536.0 : 0.0;
	if (fabs((double)cc_log2(a) - log) > 1.01)
		same("cc_log2", cc_log2(a), (wide)log, 0, a, 0);
	a = upto(64 << CC_LOG_BITS);
	power = fmin(exp2((double)a / 65536.0), 0x1p63);
	if (fabs((double)cc_exp2(a) - power) > power * 0x1p-15 + 1.0)
		same("cc_exp2", cc_exp2(a), (wide)power, 0, a, 0);

	/* Every product of a parameter is of a time, a rate or a fraction. */
	a = upto(MPC_MAX_RATE), b = upto((cc_u64)1 << 23);
	same("mpc_of", mpc_of(a, b), a * (wide)b >> 16, 0, a, b);
	a = upto(MPC_MAX_NS), b = upto(1000 << MPC_PARAM_BITS);
	same("mpc_of", mpc_of(a, b), a * (wide)b >> 16, 0, a, b);

	a = upto((cc_u64)1 << 43), b = upto(CC_NONE);
	{
		wide share = ((wide)a << 20) / cc_max(b, 1);

		same("mpc_share", mpc_share(a, b), share > (wide)1 << 40 ? (wide)1 << 40 : share, 0, a, b);
	}
	a = upto((cc_u64)1 << 43), b = upto((cc_u64)1 << 43), c = upto(2 * MPC_ONE);
	{
		cc_u64 weight = cc_min(c, MPC_ONE);
		wide mean = ((wide)a * (MPC_ONE - weight) + (wide)b * weight) >> 20;

		/* Never past the goal; one less than the exact mean where a move down is rounded. */
		same("mpc_toward", mpc_toward(a, b, c), mean, 1, a, b);
	}
}

int main(void)
{
	cc_u64 cases = 2000000;

	for (; cases; cases--)
		check();
	return 0;
}
