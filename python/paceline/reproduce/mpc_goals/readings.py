"""How the goals are read and what was shortened: the sentences that each entry says under its title."""

STANDARD = (
    "Unless a row says otherwise: one bottleneck, a base RTT of 25 ms, a buffer of 1 BDP, ACKs delayed by exponential "
    "noise of 1 % of the RTT in the mean, 10 % at most, as in the papers, and rate-paced datagram endpoints that are told "
    "of losses by ACKs. A value is the median over the seeds."
)
SCALED = "With --quick links above 1 Gbit/s have a tenth of the rate that a row names."

#: By the entry's name.
READINGS: dict[str, tuple[str, ...]] = {
    "buffers": (
        "Utilisation, RTT, rates and queue are those after the start-up: from 3 s to 8 s at 4 Gbit/s, from 3 s to 5 s at "
        "40 Gbit/s. Lost packets are counted apart, after the start-up and in all.",
        "The median RTT over the base RTT is the mean among the flows; 0.7 % of it is the median of the noise.",
        "The 2020 paper's losses at 1/16 BDP are a goal for a run of its length, 30 s or 100 million packets at 40 "
        "Gbit/s: losses of the start-up count once, those after it at their rate. Its rate deviations are those of table "
        "I, so there is a goal for four flows and 1 BDP alone: the mean among its flows.",
    ),
    "late": (
        "Fair is a Jain index of the throughputs of at least 0.9 in every window of two RTTs from then on. A run ends 160 "
        "RTTs after the second flow's start and 1 s at least, or 4 to 6 s after it where the goal is 2 s; one that has "
        "not become fair counts as long as it is. Above 83 ms the second flow starts after 120 RTTs.",
    ),
    "rtts": (
        "Fairness is from 10 s to 20 s. The constants are the controller's numbers and durations that are not 0, each by "
        "itself 20 % up and down as far as its range allows, at 1 Gbit/s.",
    ),
    "caps": ("Rates are throughputs from 5 s to 10 s; their deviation is that of windows of two RTTs.",),
    "steps": (
        "Settled is what all flows send within 5 % of the new capacity in every window of two RTTs from then on, for 2 s. "
        "Buffers are in BDP of the first rate. Below 1/2 BDP a halving loses packets whatever a sender does: more than "
        "the buffer is on its way before anybody can know.",
    ),
    "noise": (
        "From 3 s to 8 s. The noise is at most ten times its mean; its median is 3.5 % of the RTT, so the goal of 5 % for "
        "the RTT does not apply.",
    ),
    "range": (
        "Stable and fair is the utilisation and the RTT of mpc-goals-buffers, a Jain index of 0.95 and no loss after "
        "start-up. By RTT a run lasts 200 RTTs and at least 6 s, half of it start-up. By rate it lasts what its packets "
        "allow: 5 s at 40 Gbit/s, 3 s of it start-up; at 400 Gbit/s 1.5 s with an RTT of 5 ms and 0.6 s with 1 ms, two "
        "thirds of it start-up.",
        "At 1 Mbit/s a packet takes 12 ms, at 10 Mbit/s 1.2 ms: a packet that waits for another is more than 5 % of the "
        "RTT late. Buffers there are 32 and 4 BDP, and 4 at 1 Mbit/s and 300 ms.",
    ),
    "hosts": (
        "Four flows, from 6 s to 12 s. Bursts: a host's link opens once a millisecond, each host's a quarter of a "
        "millisecond after the one before; the rate of the bottleneck makes it 16 or 64 packets each at an equal share, "
        "also with --quick. Timer slack: a host's packets leave late by an exponential time of 50 us in the mean and do "
        "not overtake each other, which bunches them. ACKs in bunches: the way back opens once a millisecond.",
    ),
    "rivals": (
        "A link of 400 Mbit/s and 25 ms, where CUBIC's cycle is shorter than a run, with ACK noise of 1 % of the RTT; "
        "from 10 s to 30 s. Nothing is judged.",
    ),
    "cellular": (
        "Recorded traces with --traces DIR; otherwise a generated one per seed, synth:lte. The link is that of "
        "scenarios/demo.toml: 20 ms each way, 1000 packets, 60 s with a warm-up of 5 s, no noise. mpc-2020 is told the "
        "mean of the trace.",
    ),
    "contest": (
        "Both flows start together; a fair share is a half. Links are those of mpc-goals-rivals and, but for --quick, of "
        "mpc-goals-cellular.",
    ),
}

#: What came out, with the reason where a goal is missed. By the entry's name; docs/mpc.md has the law that the words are of.
VERDICTS: dict[str, str] = {
    "buffers": (
        "Utilisation, RTT, the queue's deviation and losses after the start-up hold in every cell, and nothing at all is lost "
        "from 1/8 BDP on. Eight flows that start together at 1/16 BDP lose more than the paper prints, with four seeds of five "
        "all of it in start-up: each grows by up to 12 % per RTT, and none knows of the others before the buffer is full. "
        "The deviation of the pacing rate is that of the drains, a quarter and seven quarters of the nominal rate for "
        "about a millisecond each, four times a second; the paper's figures cannot contain its own probes of eight RTTs."
    ),
    "late": (
        "Held up to 100 ms. At 4 Gbit/s and 200 to 300 ms the price is a thousandth of the RTT: a newcomer's smallest error "
        "empties the queue, and in growth nothing moves the shares. A price in proportion to the RTT would mend that, and give "
        "long paths more than short ones."
    ),
    "rtts": "All held; no constant is on the edge. What inequality there is comes from the price's growth with the RTT.",
    "caps": "All held.",
    "steps": (
        "Settled in time everywhere. A halving at 1/2 BDP is not without loss and cannot be: before the first packet that "
        "waited can be seen, half a BDP too much has been sent, and the buffer has to hold the standing queue beside it."
    ),
    "noise": "All held: the least RTT of a block filters the noise, and losses are no signal.",
    "range": (
        "Stable, fair and without loss everywhere. The RTT goal is missed where the price is more than 5 % of the RTT: at 1 and "
        "5 ms with four flows, and below some 100 Mbit/s, where packets take long. It must stay above what noise and "
        "packets blur, or shares could not be read from it."
    ),
    "hosts": "All held.",
    "rivals": (
        "Beside the others mpc has the shortest queues at a full link and loses nothing over datagrams; over TCP it loses some "
        "packets at 1/4 BDP, of which the cause has not been looked for. bbr3's median RTT is shorter with one flow in a deep "
        "buffer, at a lower utilisation."
    ),
    "cellular": (
        "mpc was not made for such links. It takes every change of the rate for one that lasts, and after an outage it has to "
        "find its rate again: much capacity is left unused. Of those with short queues pid is the neighbour."
    ),
    "contest": (
        "Flows of mpc share evenly whatever carries them. Beside a flow that fills the buffer mpc is left with little, as any "
        "controller is that keeps its queue short: such flows need a queue of their own."
    ),
}
