"""How the report is read, and what came out: by the entry's name."""

#: Read by every entry.
_CONTEST = (
    "140 s of the recording Verizon-LTE-short: data over `.down`, ACKs over `.up`, 20 ms each way between, queues without end. "
    "Packets are of 1504 bytes with the tunnel's header, ACKs of 80, one per packet. The hosts are the contest's: clocks of 1 "
    "ms, a sender that sleeps its pacing gaps and looks at one ACK per turn, no loss detection, a probe per timeout."
)
_HOST = (
    "A host takes 0.1 ms per packet received and per pacing sleep. That is fitted to the utilisation of Latte, which depends "
    "on it: from 0 to 0.2 ms final Latte goes from 4.06 to 3.90 Mbit/s and its score stays between 42 and 43. Senders that do "
    "not pace give the same numbers from 0 to 0.4 ms."
)
_LIVE = (
    "In world `live` the same scenario is carried out over real sockets through the link emulator, by the same sender code on "
    "the same recording (`--on live --realtime`, three runs at a time: 16 minutes on two cores; with `--sweeps`, one run a "
    "value, 75 minutes). Its hosts take the time that they take, not 0.1 ms."
)
_SCORE = "The score is the throughput in Mbit/s over the 95th percentile of the signal delay in s; propagation is in neither."
_DRAWN = (
    "The text prints few of the figure's numbers. The others are those from which the author drew it: results of one run each in "
    "the repository of his code (github.com/prvnkumar/latte-cc, commit 57f1336). Values are the labels of the figure."
)
_NEAR = "A number of the report is held within 5 %."

_STALL = (
    "The sender is the report's rule to the letter, in Python: its window may fall below a packet, and then nothing is sent "
    "until the timeout of 1 s. The built-in `delay-threshold` stops at one packet."
)

READINGS: dict[str, tuple[str, ...]] = {
    "bounds": (
        _CONTEST,
        _HOST,
        _LIVE,
        _STALL,
        "The bounds were set before: ±1.5 of the score for Latte, 3 % for the window, 5 % for RTT + AIMD and AIMD, 5 % of the "
        "throughput of the threshold and of one of its two delays, 300 and 415 ms: reruns of the report's code gave both. "
        "Throughputs and delays of Latte are there to compare worlds.",
    ),
    "figure2": (_CONTEST, _HOST, _LIVE, _DRAWN, _NEAR),
    "figure3": (_CONTEST, _HOST, _LIVE, _SCORE, _DRAWN, _NEAR),
    "figure4": (_CONTEST, _HOST, _LIVE, _SCORE, _DRAWN, "The natural logarithm. A score of the report is held within 5 %."),
    "repeat": (
        _CONTEST,
        _HOST,
        _LIVE,
        "Means are held within 3 %, deviations (divided by n) where they are less than 2 % of the mean.",
    ),
    "figure5": (_CONTEST, _HOST, _LIVE, _DRAWN, _NEAR),
    "figure6": (_CONTEST, _HOST, _LIVE, _SCORE, _DRAWN, _NEAR),
    "figure7": (_CONTEST, _HOST, _LIVE, _STALL, _DRAWN, _NEAR),
    "figure8": (_CONTEST, _HOST, _LIVE, _SCORE, _STALL, _DRAWN, _NEAR),
    "figure9": (_CONTEST, _HOST, _LIVE, _DRAWN, _NEAR),
    "figure10": (_CONTEST, _HOST, _LIVE, _SCORE, _DRAWN, _NEAR),
    "designs": (_CONTEST, _HOST, _SCORE),
    "constants": (_CONTEST, _HOST, _SCORE),
    "results": (_CONTEST, _HOST, _LIVE, _NEAR),
    "figure12": (_CONTEST, _HOST, _LIVE, _NEAR),
    "figure13": (
        _CONTEST,
        _HOST,
        _LIVE,
        _NEAR,
        "Curves are drawn from means over 5 ms, which makes signal delays look some percent longer; the numbers are exact.",
    ),
}

VERDICTS: dict[str, str] = {
    "bounds": (
        "All bounds are held in both worlds, and the worlds agree: within 0.5 % for senders that do not pace, within 3 % for "
        "Latte, whose hosts have another speed in each. They share link model and sender, not clock, scheduler and sockets. "
        "Throughputs of senders that do not pace are 1 to 4 % above the report's, whose emulator has a round trip that is "
        "longer by about a millisecond: with 20.6 ms each way in `sim` window 12 has 2.28 Mbit/s, RTT + AIMD 3.16 Mbit/s at 142 "
        "ms, and the threshold its other delay, 416 ms."
    ),
    "figure2": (
        "It comes out. Every point lies within 2 % in throughput and 3 % in delay of the figure's, windows from 30 on within 1 %."
    ),
    "figure3": "It comes out, the best window included; 11 to 14 lie within 1 % of it.",
    "figure4": "As figure 3.",
    "repeat": (
        "The mean delay is the report's, the throughput 1.6 % more, as a round trip that is a millisecond shorter gives. "
        "Nothing is random in the simulator: its deviations are 0. In `live` that of the throughput is a quarter of the "
        "report's, and the delay is the same to the millisecond."
    ),
    "figure5": (
        "The figure has seven labels: all six with a start of 12, and (50, 1, 2, 1000). Here is every combination of the values "
        "that section 2.2 names, which makes twelve. What the text says of increase and start holds. Six of the seven points "
        "lie within 4 % of the figure's; at (12, 5, 2, 100), where its throughput of 4.74 Mbit/s is below that of (12, 5, 2, "
        "1000) by 5 %, ours is 5 % faster at 11 % less delay. The author's public results have five runs of (50, 1, 2, 1000), "
        "of which one is 6 % slower than the others."
    ),
    "figure6": (
        "It comes out, and that a larger increase has less score. A timeout of 100 ms nearly doubles the score at every "
        "increase: the text does not say so, the figure does."
    ),
    "figure7": (
        "From 70 ms on delays lie within 3 % of the figure's and throughputs within 6 %. At 50 and 60 ms the sender stalls, as "
        "the text says: 34 and 8 timeouts in 140 s, 2 of which the link's outages give any sender. Delays are 917 ms for about "
        "970 and 418 for about 550, throughputs 2.3 Mbit/s for 1.6 and 4.1 for 3.9: a millisecond of round trip decides which "
        "ACK is the last below the threshold. The built-in sender, which never stalls, has 118 and 201 ms there. In `live` 250 "
        "and 300 ms lost 2 % in the same ten seconds of one round of runs, hence the step down."
    ),
    "figure8": (
        "The best threshold is 70 ms, not 75. So it is by the points of the report's own figure, if by 1 %. Without stalls (the "
        "built-in sender) 60 and 50 ms are the best, at 21."
    ),
    "figure9": (
        "It comes out: delays lie within 2.5 % of the figure's, throughputs are 2 to 4 % above them, 9 and 7 % at 50 and 70 "
        "ms, where a millisecond less of round trip is a larger part of what the threshold leaves."
    ),
    "figure10": (
        "It comes out: the best is at 120 ms, and it is 22. At 50, 70 and 200 ms the score is 6 to 7 % above the report's, as "
        "the throughputs of figure 9 are."
    ),
    "designs": (
        "As the text has it: the steady state alone keeps a long queue, the RTT gradient and cycle gain gain nothing over it "
        "with a good lambda, the exponential penalty is what helps, and the plain one of final Latte helps more. The code that "
        "was handed in still cuts the window by the gradient; without that cut it has 4 % more throughput for 4 % more delay."
    ),
    "constants": (
        "The report's choices are as good as any: lambda from 1.5 to 1.7, and gamma of 0.7 and 0.8, differ by less than reruns "
        "of one setting do. With a lambda of 1.3, and with a gamma of 1, which paces at the measured rate and no faster, the "
        "score collapses."
    ),
    "results": (
        "Lambda 1.7 comes out in every number. Final Latte's score does, too; it is 5 % faster than in the report, and in "
        "`live`, with faster hosts than the 0.1 ms of `sim`, 6 % with 11 % more queueing. Reruns of its own code in an emulator "
        "had 3.79 to 4.01 Mbit/s and 40.8 to 42.7. Which host the report used is not known."
    ),
    "figure12": "It comes out but for the 5 % of latte-results: Latte follows the capacity down and leaves part of every rise.",
    "figure13": (
        "It comes out. Signal delays peak where the link pauses, at 64 s for 1.4 s. Delays are not cut to whole milliseconds; "
        "the figure begins at 1 ms, as the emulator's does."
    ),
}
