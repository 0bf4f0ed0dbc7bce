"""Records made from small fluid models, for the tests of the report. Every value is a pure function of the arguments."""

import hashlib
import json
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

HOSTILE = "</script><img src=x onerror=alert(1)>"

SCENARIO = """\
title = "A variable link, as a cellular one"
duration = "30 s"
warmup = "5 s"

[link]
trace = "variable.down"
rtt = "40 ms"
buffer = "100 packets"
"""

_QUANTILES = {"min": 0, "p5": 5, "p25": 25, "p50": 50, "p75": 75, "p95": 95, "p99": 99, "max": 100}


def stats(values):
    """STATS of the run's result."""
    return {
        "mean": float(np.mean(values)),
        "std": float(np.std(values)),
        **{key: float(np.percentile(values, q)) for key, q in _QUANTILES.items()},
    }


def smoothed(values):
    """Exponential average with the weight of RFC 6298, 1/8."""
    out = np.array(values, dtype=float)
    for index in range(1, len(out)):
        out[index] = 0.875 * out[index - 1] + 0.125 * out[index]
    return out


def capacity_bps(time_s):
    """A link that swings between about 3 and 9 Mbit/s in steps of half a second."""
    steps = np.floor(time_s * 2)
    return 1e6 * np.clip(6 + 2.2 * np.sin(0.31 * steps) + 1.5 * np.sin(1.7 * steps), 2, 12)


def window_model(kind, capacity, step_s, base_rtt_s=0.04, buffer_bytes=150_000.0, share=1.0, phase=0.0):
    """Window, queue and loss of one flow (``share`` of the link) as a fluid: a sawtooth (`cubic`) or a delay target (others)."""
    window, queue, lost = 20_000.0, 0.0, 0.0
    rows = []
    for index, rate_bps in enumerate(capacity):
        rate = share * rate_bps / 8
        rtt_s = base_rtt_s + queue / rate
        arriving = window / rtt_s
        queue += (arriving - rate) * step_s
        queue = max(queue, 0.0)
        if queue > buffer_bytes * share:
            lost += (queue - buffer_bytes * share) / 1500 + 1
            queue = buffer_bytes * share
            window *= 0.7 if kind == "cubic" else 0.9
        if kind == "cubic":
            window += 1500 * step_s / rtt_s * (2.2 + np.sin(phase))
        else:
            # Each controller holds a queue of its own length.
            held_s = 0.005 + 0.003 * (sum(map(ord, kind)) % 7)
            target = (base_rtt_s + held_s) * rate * (1 + 0.04 * np.sin(index * step_s * 5 + phase))
            window += (target - window) * step_s / rtt_s
        sent = min(arriving, rate if queue > 0 else arriving)
        rows.append((8 * sent, 8 * arriving, window, queue, 1e3 * rtt_s, 1e3 * queue / rate, np.floor(lost)))
    return np.array(rows).T


def write_record(
    directory: Path,
    flows=(("flow 1", "cubic"),),
    seed=1,
    samples=3000,
    observed=False,
    title=None,
    world="sim",
    drop=(),
    checks=None,
):
    """Writes a record of ``flows`` (name, controller) and returns its directory. ``drop``: columns or files to leave out."""
    directory.mkdir(parents=True)
    text = SCENARIO if title is None else SCENARIO.replace("A variable link, as a cellular one", title)
    duration_s = 30.0
    time_s = np.arange(1, samples + 1) * (duration_s / samples)
    capacity = capacity_bps(time_s)
    share = 1 / max(1, len(flows))
    tables, results, total_queue, total_rate = [], [], 0.0, 0.0
    for index, (name, controller) in enumerate(flows):
        rate, send, cwnd, queue, rtt, wait, lost = window_model(
            controller, capacity, duration_s / samples, share=share, phase=index + 0.1 * seed
        )
        total_queue, total_rate = total_queue + queue, total_rate + rate
        columns = {
            "time_s": time_s,
            "flow": pa.array([name] * samples),
            "throughput_bps": rate,
            "send_bps": send,
            "cwnd_bytes": cwnd,
            "in_flight_bytes": cwnd * 0.97,
            "pacing_bps": send * 1.2 if controller != "cubic" else [None] * samples,
            "rtt_ms": rtt,
            "srtt_ms": smoothed(rtt),
            "queueing_delay_ms": wait,
            "delivered_packets": np.cumsum(rate) * duration_s / samples / 12000,
            "lost_packets": lost,
            "retransmitted_packets": lost,
        }
        if observed:
            columns["target_delay_ms"] = 12 + 2 * np.sin(time_s) if controller != "cubic" else [None] * samples
            columns["gain"] = 1 + 0.25 * (np.floor(time_s * 4) % 8 == 0) if controller != "cubic" else [None] * samples
        tables.append(_table({k: v for k, v in columns.items() if k not in drop}, {"target_delay_ms": "ms", "gain": "1"}))
        warm = time_s > 5
        results.append(
            {
                "name": name,
                "controller": controller,
                "stack": "datagram",
                "start_s": 0.0,
                "end_s": duration_s,
                "throughput_bps": float(rate[warm].mean()),
                "goodput_bps": float(rate[warm].mean() * 0.96),
                "rtt_ms": stats(rtt[warm]),
                "cwnd_bytes": stats(cwnd[warm]),
                "sent_packets": 20000,
                "delivered_packets": 20000 - int(lost[-1]),
                "lost_packets": int(lost[-1]),
                "retransmitted_packets": int(lost[-1]),
                "timeouts": 0,
                "loss_fraction": float(lost[-1] / 20000),
                "queueing_delay_ms": stats(wait[warm]),
                "signal_delay_ms": {"p95": float(np.percentile(wait[warm], 95) * 1.7)},
                "power_score": float(rate[warm].mean() / 1e6 / (np.percentile(wait[warm], 95) * 1.7e-3)),
                "completion_s": None,
            }
        )
    links = {
        "time_s": time_s,
        "link": pa.array(["bottleneck"] * samples),
        "capacity_bps": capacity,
        "throughput_bps": total_rate,
        "queue_bytes": total_queue,
        "queue_ms": 8e3 * total_queue / capacity,
        "drops": np.zeros(samples),
        "marks": np.zeros(samples),
    }
    rates = np.array([flow["throughput_bps"] for flow in results])
    result = {
        "scenario": "variable.toml",
        "world": world,
        "seed": seed,
        "duration_s": duration_s,
        "links": [
            {
                "name": "bottleneck",
                "capacity_bps": float(capacity.mean()),
                "throughput_bps": float(total_rate.mean()),
                "utilization": float(total_rate.mean() / capacity.mean()),
                "drops": sum(flow["lost_packets"] for flow in results),
                "marks": 0,
                "queue_ms": stats(links["queue_ms"]),
                "queue_bytes": stats(total_queue),
            }
        ],
        "flows": results,
        "jain_index": float(rates.sum() ** 2 / (len(rates) * (rates**2).sum())),
        "engine": {"events": 1_234_567, "packets": 20000, "cpu_s": 0.0123},
    }
    if "series.parquet" not in drop:
        pq.write_table(pa.concat_tables(tables, promote_options="permissive"), directory / "series.parquet")
    if "links.parquet" not in drop:
        pq.write_table(_table(links, {}), directory / "links.parquet")
    manifest = {
        "format": "paceline-record",
        "format_version": 1,
        "paceline_version": "0.1.0",
        "git": {"commit": "0123456789abcdef0123456789abcdef01234567", "dirty": False},
        "scenario": {
            "name": "variable",
            "path": "scenarios/variable.toml",
            "sha256": hashlib.sha256(text.encode()).hexdigest(),
            "text": text,
        },
        "seed": seed,
        "world": world,
        "command_line": ["paceline", "run", "scenarios/variable.toml", "--controller", flows[0][1], "--seed", str(seed)],
        "host": {"os": "linux", "kernel": "6.1.0", "arch": "x86_64", "cpu_model": "example CPU", "cores": 2},
        "started": "2026-01-02T03:04:05Z",
        "wall_s": 0.5,
        "files": [{"name": "series.parquet"}, {"name": "links.parquet"}],
        "flows": [{"name": name, "controller": controller, "controller_params": {"gain": 0.5}} for name, controller in flows],
        "result": result,
        "checks": checks
        if checks is not None
        else [
            {"name": "packets_conserved", "ok": True, "detail": "sent = delivered + lost + in flight for every flow"},
            {"name": "queue stays within the buffer", "ok": True, "detail": "largest 150000 of 150000 bytes"},
        ],
    }
    (directory / "manifest.json").write_text(json.dumps(manifest))
    return directory


def _table(columns, units):
    known = {"bps": "bit/s", "bytes": "bytes", "ms": "ms", "s": "s", "packets": "packets"}
    table = pa.table(columns)
    fields = [
        column.with_metadata({"unit": units.get(column.name, known.get(column.name.rsplit("_", 1)[-1], ""))})
        for column in table.schema
    ]
    return table.cast(pa.schema(fields))
