"""How the report is read, and what came out: by the entry's name."""

#: Read by every entry.
_CONTEST = (
    "140 s of the recording Verizon-LTE-short: data over `.down`, ACKs over `.up`, 20 ms each way between, queues without end. "
    "Packets are of 1504 bytes with the tunnel's header, ACKs of 80, one per packet. The hosts are the contest's: clocks of 1 ms, "
    "a sender that sleeps its pacing gaps and looks at one ACK per turn, no loss detection, a probe per timeout."
)
_HOST = (
    "A host takes 0.1 ms per packet received and per pacing sleep. That is fitted to the utilisation of Latte, which depends on "
    "it: from 0 to 0.2 ms final Latte goes from 4.06 to 3.90 Mbit/s and its score stays between 42 and 43. Senders that do not "
    "pace give the same numbers from 0 to 0.4 ms."
)
_SCORE = "The score is the throughput in Mbit/s over the 95th percentile of the signal delay in s; propagation is in neither."
_DRAWN = (
    "Of most points the report prints no number: those rows are not judged, but best values and trends are. Values are the "
    "labels of the figure."
)
_NEAR = "A printed number is held within 5 %."

_STALL = (
    "The sender is the report's rule to the letter, in Python: its window may fall below a packet, and then nothing is sent "
    "until the timeout of 1 s. The built-in `delay-threshold` stops at one packet."
)

READINGS: dict[str, tuple[str, ...]] = {
    "bounds": (
        _CONTEST,
        _HOST,
        _STALL,
        "The bounds were set before: ±1.5 of the score for Latte, 3 % for the window, 5 % for RTT + AIMD and AIMD, 5 % of the "
        "throughput of the threshold and of one of its two delays, 300 and 415 ms: reruns of the report's code gave both. "
        "Throughputs and delays of Latte are there to compare worlds.",
    ),
    "figure2": (_CONTEST, _HOST, _DRAWN, _NEAR),
    "figure3": (_CONTEST, _HOST, _SCORE, _DRAWN, _NEAR),
    "figure4": (_CONTEST, _HOST, _SCORE, _DRAWN, "The natural logarithm. A printed score is held within 5 %."),
    "repeat": (_CONTEST, _HOST, "Means are held within 3 %, deviations (divided by n) where they are less than 2 % of the mean."),
    "figure5": (_CONTEST, _HOST, _DRAWN, _NEAR),
    "figure6": (_CONTEST, _HOST, _SCORE, _DRAWN, _NEAR),
    "figure7": (_CONTEST, _HOST, _STALL, _DRAWN, _NEAR),
    "figure8": (_CONTEST, _HOST, _SCORE, _STALL, _DRAWN, _NEAR),
    "figure9": (_CONTEST, _HOST, _DRAWN, _NEAR),
    "figure10": (_CONTEST, _HOST, _SCORE, _DRAWN, _NEAR),
    "designs": (_CONTEST, _HOST, _SCORE),
    "constants": (_CONTEST, _HOST, _SCORE),
    "results": (_CONTEST, _HOST, _NEAR),
    "figure12": (_CONTEST, _HOST, _NEAR),
    "figure13": (_CONTEST, _HOST, _NEAR),
}

VERDICTS: dict[str, str] = dict.fromkeys(READINGS, "")
