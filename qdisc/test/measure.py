#!/usr/bin/env python3
# SPDX-License-Identifier: MIT OR GPL-2.0-only
"""Makes the table of docs/qdisc.md from what measure.job wrote: measure.py FILE. Statistics are of the time from 5 s on."""

import json
import re
import statistics
import sys
from pathlib import Path

SKIP_S = 5.0
PINGS_PER_S = 50


def main() -> None:
    """Prints a row per section."""
    text = Path(sys.argv[1]).read_text(errors="replace").replace("\r", "")
    print("| case | goodput Mbit/s | each | path RTT mean ± std ms | flows' RTT mean ± std ms | dropped |")
    print("|---|---|---|---|---|---|")
    # The router counts through all cases.
    before = 0
    for section in re.split(r"^=== ", text, flags=re.MULTILINE)[1:]:
        title, *_ = section.splitlines()
        _, *pairs = re.split(r"^--- (.+)\n", section, flags=re.MULTILINE)
        goodputs, rtts, pings, dropped = [], [], [], 0
        for name, body in zip(pairs[::2], pairs[1::2], strict=True):
            if name == "flow":
                streams = [interval["streams"][0] for interval in json.loads(body)["intervals"]]
                late = [stream for stream in streams if stream["start"] >= SKIP_S]
                seconds = sum(stream["seconds"] for stream in late)
                goodputs.append(sum(stream["bytes"] for stream in late) * 8e-6 / seconds)
                rtts += [stream["rtt"] / 1e3 for stream in late]
            elif name == "ping":
                found = re.findall(r"seq=(\d+) .*time=([\d.]+)", body)
                pings = [float(ms) for number, ms in found if int(number) > SKIP_S * PINGS_PER_S]
            elif name == "router":
                total = json.loads(body)[0]["drops"]
                dropped, before = total - before, total
        path, flows = ((statistics.mean(values), statistics.pstdev(values)) for values in (pings, rtts))
        each = ", ".join(f"{goodput:.1f}" for goodput in goodputs)
        columns = [title, f"{sum(goodputs):.1f}", each, *(f"{mean:.2f} ± {std:.2f}" for mean, std in (path, flows)), str(dropped)]
        print(f"| {' | '.join(columns)} |")


main()
