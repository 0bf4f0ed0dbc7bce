/* SPDX-License-Identifier: MIT OR GPL-2.0-only */
/*
 * PID control of the RTT (Mareev et al., ICAIIT 2018, for the transport RMDT): Gain finds the bottleneck's rate, Manage empties its
 * queue and takes the smallest RTT, Control keeps the RTT at a setpoint above that by pacing. The paper gives no gains; these
 * follow from the queue's own equation, dl/dt = (r - mu)/mu.
 */
#ifndef PACELINE_PID_H
#define PACELINE_PID_H

#include "../include/cc_abi.h"
#include "../include/cc_math.h"

#define PID_FIELDS 4

#define PID_GAIN 0u
#define PID_MANAGE 1u
#define PID_CONTROL 2u
/* Of prior_state: nothing to restore. */
#define PID_NONE 3u

/* Fractions have 20 bits, the integral 40, parameters 16. */
#define PID_ONE ((cc_u64)1 << 20)
#define PID_PARAM_BITS 16
/* Bounds of the output, as shares of the delivery rate mu. */
#define PID_MIN_OUTPUT (PID_ONE / 8)
#define PID_MAX_OUTPUT (2 * PID_ONE)
/* A term of more than this is as good as this: the output is at a bound. */
#define PID_MAX_TERM (8 * PID_ONE)
/* Limits that keep products within 64 bits. */
#define PID_MAX_RATE ((cc_u64)1 << 40)
#define PID_MAX_RTT_NS ((cc_u64)1 << 34)
#define PID_MAX_BYTES ((cc_u64)1 << 33)
/* The control law is applied this often per setpoint; half a period adds to the loop's delay. */
#define PID_SAMPLES_PER_SETPOINT 16
#define PID_MIN_WINDOW_PACKETS 4

struct pid_params {
	cc_u64 alpha_ns;            /* least distance of the setpoint from the smallest RTT */
	cc_u64 setpoint_factor;     /* setpoint over smallest RTT */
	cc_u64 manage_ns;           /* least length of Manage */
	cc_u64 manage_share;        /* of the rate, during Manage */
	cc_u64 gain;                /* pacing gain of Gain */
	cc_u64 growth;              /* of the delivery rate per report that counts as significant */
	cc_u64 flat_reports;        /* without significant growth that end Gain */
	cc_u64 drop;                /* of the delivery rate that leads to Manage */
	cc_u64 loss;                /* share lost or marked in a report that leads to Manage */
	cc_u64 unreachable_samples; /* off the setpoint with the output at a bound that lead to Manage */
	cc_u64 tau_setpoints;       /* time constant tau over the setpoint */
	cc_u64 kp;                  /* proportional gain, in units of mu/tau */
	cc_u64 ki;                  /* integral gain, in units of mu/tau^2 */
	cc_u64 kd;                  /* derivative gain, in units of mu */
};

struct pid {
	struct pid_params params;
	cc_u64 packet_bytes;
	cc_u64 initial_window_bytes;
	/* Delivery rate (DDR), bytes/s; 0 before the first RTT. */
	cc_u64 mu;
	cc_u64 rate;
	cc_u64 min_rtt_ns;
	cc_u64 last_rtt_ns;
	/* A report is one round trip: it ends when data sent after its start is acknowledged. */
	cc_u64 report_ends_at_delivered;
	cc_u64 report_start_delivered;
	cc_u64 report_bad_bytes;
	/* Packets sent before this say nothing of the rate: they, or those before them, left during Manage. */
	cc_u64 reports_from_ns;
	/* Gain: rate of the last significant growth, and reports since. */
	cc_u64 full_mu;
	cc_u64 flat_reports;
	/* Manage. */
	cc_u64 manage_until_ns;
	cc_u64 manage_min_ns;
	/* Whether what Manage sees replaces the smallest RTT, or only lowers it. */
	cc_u32 forgets_min;
	cc_u32 state;
	/* Control. */
	cc_u64 setpoint_ns;
	cc_u64 tau_ns;
	cc_u64 sampled_ns;
	/* 1 + Ki I / mu, 40 bits of fraction: starts at 1, the rate mu. */
	cc_u64 level;
	/* RTT averaged over a setpoint; the distance from it is the filtered derivative. */
	cc_u64 slow_rtt_ns;
	cc_u64 unreachable_samples;
	/* What the last loss or timeout changed. */
	cc_u64 prior_mu;
	cc_u64 prior_rate;
	cc_u32 prior_state;
};

static inline cc_u64 pid_scaled(cc_u64 value, cc_u64 param)
{
	return (value * param) >> PID_PARAM_BITS;
}

static inline void pid_set_rate(struct pid *pid, cc_u64 bytes_per_s)
{
	pid->rate = cc_max(cc_min(bytes_per_s, PID_MAX_RATE), 1);
}

static inline void pid_on_path_change(struct pid *pid, const struct cc_path *path)
{
	pid->packet_bytes = cc_min(cc_max(path->packet_bytes, 1), 1 << 16);
}

static inline void pid_init(struct pid *pid, const struct cc_path *path, const struct pid_params *params)
{
	pid->params = *params;
	pid_on_path_change(pid, path);
	pid->initial_window_bytes = cc_min(cc_max(path->initial_window_packets, 1), 1 << 16) * pid->packet_bytes;
	pid->prior_state = PID_NONE;
}

/* Paper §3.1; begins anew after a timeout. */
static inline void pid_enter_gain(struct pid *pid, cc_u64 mu)
{
	pid->state = PID_GAIN;
	pid->mu = cc_max(cc_min(mu, PID_MAX_RATE), 1);
	pid->full_mu = 0;
	pid->flat_reports = 0;
	pid_set_rate(pid, pid_scaled(pid->mu, pid->params.gain));
}

/* Paper §3.2: half the rate for 50 ms, to see the RTT of an empty queue. */
static inline void pid_enter_manage(struct pid *pid, cc_u64 now_ns, cc_u32 forgets_min)
{
	cc_u64 queue_ns = pid->last_rtt_ns - cc_min(pid->min_rtt_ns, pid->last_rtt_ns);
	cc_u64 spare = cc_max(((cc_u64)1 << PID_PARAM_BITS) - cc_min(pid->params.manage_share, 1 << PID_PARAM_BITS), 1);
	/*
	 * Deviation: 50 ms at half the rate drain 25 ms of queue, and an empty queue is seen a round trip later; so at least the
	 * time to drain what there is, and a round trip.
	 */
	cc_u64 needed_ns = pid->last_rtt_ns + (queue_ns << PID_PARAM_BITS) / spare;

	pid->state = PID_MANAGE;
	pid->manage_until_ns = now_ns + cc_max(pid->params.manage_ns, cc_min(needed_ns, PID_MAX_RTT_NS));
	pid->manage_min_ns = CC_NONE;
	pid->forgets_min = forgets_min;
	pid_set_rate(pid, pid_scaled(pid->mu, pid->params.manage_share));
}

/* Paper (1). */
static inline void pid_set_setpoint(struct pid *pid)
{
	pid->setpoint_ns = cc_max(pid->min_rtt_ns + pid->params.alpha_ns, pid_scaled(pid->min_rtt_ns, pid->params.setpoint_factor));
	pid->tau_ns = cc_max(pid_scaled(pid->setpoint_ns, pid->params.tau_setpoints), 1);
}

/* Paper §3.3. */
static inline void pid_enter_control(struct pid *pid, cc_u64 now_ns)
{
	if (pid->forgets_min && pid->manage_min_ns != CC_NONE)
		pid->min_rtt_ns = pid->manage_min_ns;
	pid_set_setpoint(pid);
	pid->state = PID_CONTROL;
	pid->level = PID_ONE * PID_ONE;
	pid->slow_rtt_ns = pid->last_rtt_ns;
	pid->sampled_ns = now_ns;
	pid->unreachable_samples = 0;
	pid->reports_from_ns = now_ns + pid->setpoint_ns;
	pid_set_rate(pid, pid->mu);
}

/* For reordering: a loss or a timeout is about to change the state. */
static inline void pid_remember(struct pid *pid)
{
	pid->prior_state = pid->state;
	pid->prior_mu = pid->mu;
	pid->prior_rate = pid->rate;
}

/*
 * The control law: r = mu (1 + kp e/tau + ki I/tau^2 - kd dl/dt) with e = SP - RTT. With kp = 2, ki = 1 and the queue's equation
 * both poles of the loop are at -1/tau; with its delay of an RTT = tau/4 the phase margin is 47 degrees.
 */
static inline void pid_sample(struct pid *pid, cc_u64 now_ns, cc_u64 rtt_ns, int limited)
{
	cc_u64 elapsed_ns = now_ns - cc_min(pid->sampled_ns, now_ns);
	/* After a pause one period counts, and some lateness. */
	cc_u64 step_ns = cc_min(elapsed_ns, pid->setpoint_ns / (PID_SAMPLES_PER_SETPOINT / 2));
	int below = rtt_ns < pid->setpoint_ns;
	cc_u64 error_ns = below ? pid->setpoint_ns - rtt_ns : rtt_ns - pid->setpoint_ns;
	cc_u64 error = cc_min(error_ns * PID_ONE / pid->tau_ns, PID_MAX_TERM);
	cc_u64 proportional = cc_min(pid_scaled(error, pid->params.kp), PID_MAX_TERM);
	cc_u64 integral = (error * cc_min(step_ns * PID_ONE / pid->tau_ns, PID_ONE)) >> 8;
	int rising = rtt_ns > pid->slow_rtt_ns;
	cc_u64 slope_ns = rising ? rtt_ns - pid->slow_rtt_ns : pid->slow_rtt_ns - rtt_ns;
	cc_u64 derivative = cc_min(slope_ns * PID_ONE / pid->setpoint_ns, PID_MAX_TERM);
	cc_u64 level = pid->level;
	cc_u64 up, down, output, slow_step_ns;

	integral = (integral * pid->params.ki) >> (PID_PARAM_BITS - 8);
	level = below ? cc_min(level + integral, PID_MAX_TERM * PID_ONE) : level - cc_min(integral, level);
	derivative = cc_min(pid_scaled(derivative, pid->params.kd), PID_MAX_TERM);
	up = level / PID_ONE + (below ? proportional : 0) + (rising ? 0 : derivative);
	down = (below ? 0 : proportional) + (rising ? derivative : 0);
	output = up - cc_min(down, up);
	/* Conditional anti-windup: no further out than the bounds; nor while what is sent is not what is asked for. */
	if (!limited && !(below && output > PID_MAX_OUTPUT) && !(!below && output < PID_MIN_OUTPUT))
		pid->level = level;
	if (2 * error_ns > pid->setpoint_ns - pid->min_rtt_ns && (output >= PID_MAX_OUTPUT || output <= PID_MIN_OUTPUT))
		pid->unreachable_samples++;
	else
		pid->unreachable_samples = 0;
	output = cc_max(cc_min(output, PID_MAX_OUTPUT), PID_MIN_OUTPUT);
	pid_set_rate(pid, (pid->mu * output) / PID_ONE);
	/* At most 4 s of it: keeps the product within 64 bits. */
	slow_step_ns = cc_min(slope_ns, (cc_u64)1 << 32) * cc_min(step_ns, pid->setpoint_ns) / pid->setpoint_ns;
	pid->slow_rtt_ns = rising ? pid->slow_rtt_ns + slow_step_ns : pid->slow_rtt_ns - slow_step_ns;
	pid->sampled_ns = now_ns;
}

/* A report of the delivery rate `ddr`, once per round trip. */
static inline void pid_report(struct pid *pid, cc_u64 now_ns, cc_u64 ddr, int lossy)
{
	cc_u64 one = (cc_u64)1 << PID_PARAM_BITS;

	if (pid->state == PID_GAIN) {
		/* Paper §3.1: three reports without significant growth. Deviation: or a lossy one. */
		if (pid->mu >= pid_scaled(pid->full_mu, one + pid->params.growth)) {
			pid->full_mu = pid->mu;
			pid->flat_reports = 0;
		} else {
			pid->flat_reports++;
		}
		if (lossy)
			pid_remember(pid);
		if (lossy || pid->flat_reports >= pid->params.flat_reports)
			pid_enter_manage(pid, now_ns, 1);
		return;
	}
	/*
	 * Paper §3.3: a sudden drop of the delivery rate. Deviation: losses make the setpoint unreachable, too; and of the two
	 * smallest RTTs the smaller stays. Others have come, and keep the queue filled while this flow makes room: what it then
	 * sees is no distance, and two flows would take turns in raising their setpoints.
	 */
	if (ddr < pid_scaled(pid->mu, one - cc_min(pid->params.drop, one))) {
		pid->mu = cc_max(ddr, 1);
		pid_enter_manage(pid, now_ns, 0);
	} else if (lossy) {
		pid_remember(pid);
		pid_enter_manage(pid, now_ns, 0);
	} else {
		pid->mu = cc_max((3 * pid->mu + ddr) / 4, 1);
	}
}

/* Ends a report where a round trip ends; one of packets sent before Control says nothing. */
static inline void pid_count(struct pid *pid, const struct cc_ack *ack, cc_u64 ddr)
{
	cc_u64 bad, all;

	pid->report_bad_bytes += cc_min(ack->ce_packets, 1 << 16) * pid->packet_bytes;
	pid->report_bad_bytes = cc_min(pid->report_bad_bytes, PID_MAX_BYTES);
	if (ack->prior_delivered_total_bytes < pid->report_ends_at_delivered)
		return;
	bad = pid->report_bad_bytes;
	all = ack->delivered_total_bytes - cc_min(pid->report_start_delivered, ack->delivered_total_bytes);
	all = cc_min(all, PID_MAX_BYTES) + bad;
	pid->report_ends_at_delivered = ack->delivered_total_bytes;
	pid->report_start_delivered = ack->delivered_total_bytes;
	pid->report_bad_bytes = 0;
	if (pid->state == PID_MANAGE || ack->sent_ns < pid->reports_from_ns || !ddr)
		return;
	/* Less data than there is room for says nothing of the path. */
	if (ack->flags & CC_ACK_APP_LIMITED)
		return;
	pid_report(pid, ack->now_ns, ddr, bad > pid_scaled(all, pid->params.loss));
}

static inline void pid_on_ack(struct pid *pid, const struct cc_ack *ack)
{
	cc_u64 rtt_ns = cc_min(ack->rtt_ns, PID_MAX_RTT_NS);
	cc_u64 ddr = cc_min(cc_rate(ack->delivered_bytes, ack->interval_ns), PID_MAX_RATE);

	if (rtt_ns) {
		pid->last_rtt_ns = rtt_ns;
		if (!pid->min_rtt_ns || rtt_ns < pid->min_rtt_ns) {
			pid->min_rtt_ns = rtt_ns;
			/* A shorter path: no need to make room to see it. */
			if (pid->state == PID_CONTROL)
				pid_set_setpoint(pid);
		}
		/* The first RTT: what the initial window was, is the first estimate. */
		if (!pid->mu)
			pid_enter_gain(pid, cc_rate(pid->initial_window_bytes, rtt_ns));
	}
	if (!pid->mu)
		return;
	if (pid->state == PID_GAIN && ddr > pid->mu) {
		pid->mu = ddr;
		pid_set_rate(pid, pid_scaled(ddr, pid->params.gain));
	}
	pid_count(pid, ack, ddr);
	if (pid->state == PID_MANAGE) {
		if (rtt_ns)
			pid->manage_min_ns = cc_min(pid->manage_min_ns, rtt_ns);
		if (ack->now_ns >= pid->manage_until_ns)
			pid_enter_control(pid, ack->now_ns);
	} else if (pid->state == PID_CONTROL && rtt_ns) {
		if (ack->now_ns - cc_min(pid->sampled_ns, ack->now_ns) < pid->setpoint_ns / PID_SAMPLES_PER_SETPOINT)
			return;
		pid_sample(pid, ack->now_ns, rtt_ns, ack->flags & CC_ACK_APP_LIMITED);
		/* Rerouted, or among flows that fill any buffer: the setpoint is measured anew. */
		if (pid->unreachable_samples >= pid->params.unreachable_samples)
			pid_enter_manage(pid, ack->now_ns, 1);
	}
}

static inline void pid_on_loss(struct pid *pid, const struct cc_loss *loss)
{
	pid->report_bad_bytes = cc_min(pid->report_bad_bytes + cc_min(loss->lost_bytes, PID_MAX_BYTES), PID_MAX_BYTES);
}

static inline void pid_on_rto(struct pid *pid, const struct cc_timeout *timeout)
{
	if (!pid->mu)
		return;
	/* The paper has no timeouts. Gain from the least rate, two packets per round trip. */
	if (timeout->consecutive <= 1)
		pid_remember(pid);
	pid_enter_gain(pid, cc_rate(2 * pid->packet_bytes, pid->last_rtt_ns));
	pid->reports_from_ns = timeout->now_ns;
}

static inline void pid_on_spurious_loss(struct pid *pid, const struct cc_undo *undo)
{
	(void)undo;
	pid->report_bad_bytes = 0;
	if (pid->prior_state == PID_NONE)
		return;
	pid->state = pid->prior_state;
	pid->mu = pid->prior_mu;
	pid_set_rate(pid, pid->prior_rate);
	pid->prior_state = PID_NONE;
}

static inline void pid_on_resume(struct pid *pid, const struct cc_resume *resume)
{
	/* Idleness is no time of control: the next sample counts as one period. */
	pid->sampled_ns = resume->now_ns;
}

static inline void pid_on_timer(struct pid *pid, cc_u64 now_ns)
{
	(void)pid;
	(void)now_ns;
}

static inline void pid_control(const struct pid *pid, struct cc_control *control)
{
	cc_u64 floor = PID_MIN_WINDOW_PACKETS * pid->packet_bytes;
	cc_u64 window = pid->initial_window_bytes;

	control->pacing_bytes_per_s = CC_UNPACED;
	if (pid->mu) {
		/* The rate controls; the window is there for when ACKs stop: twice the setpoint, or what Gain needs. */
		if (pid->state == PID_CONTROL)
			window = 2 * cc_bytes(pid->mu, pid->setpoint_ns);
		else
			window = cc_bytes(cc_min(pid_scaled(pid->mu, pid->params.gain), PID_MAX_RATE), pid->min_rtt_ns);
		control->pacing_bytes_per_s = pid->rate;
	}
	control->cwnd_bytes = cc_max(window, floor);
	control->send_quantum_bytes = 0;
	control->next_timer_ns = CC_NEVER;
	control->timeout_ns = 0;
}

static inline void pid_observe(const struct pid *pid, cc_u64 *out)
{
	out[0] = pid->state;
	out[1] = pid->setpoint_ns ? pid->setpoint_ns / 1000 : CC_NONE;
	out[2] = pid->min_rtt_ns ? pid->min_rtt_ns / 1000 : CC_NONE;
	out[3] = pid->mu ? pid->mu : CC_NONE;
}

#endif
