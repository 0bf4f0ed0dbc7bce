"""Thins long time series to what a screen can show without losing a peak or a dip.

In: sample times and columns. Out: the same, with at most ``limit`` points per series. Time is cut into equal buckets; each bucket
keeps its smallest and its largest value, in the order they came, placed at the bucket's first and last sample. All columns of
a source so share one time axis, a point moves by less than one bucket, and every extreme of the data is on the screen.
"""

import numpy as np

from paceline.report.loading import Samples

#: Points per series that a page carries.
LIMIT = 2000


def decimate(samples: Samples, span_s: tuple[float, float], limit: int = LIMIT) -> tuple[np.ndarray, dict[str, np.ndarray]]:
    """Times in s and columns by name, at most ``limit`` points each (``limit`` at least 2).

    ``span_s`` is the span to cut into buckets: the same for every source of a run, so that equal sample times stay equal.
    Samples outside it fall into its first or last bucket.
    """
    time_s = samples.time_s
    columns = {name: column.values for name, column in samples.columns.items()}
    if len(time_s) <= limit:
        return time_s, columns
    buckets = max(1, limit // 2)
    start_s, end_s = span_s
    width_s = (end_s - start_s) / buckets
    index = np.zeros(len(time_s), dtype=np.int64)
    if width_s > 0:
        index = np.clip(np.floor((time_s - start_s) / width_s), 0, buckets - 1).astype(np.int64)
    first = np.flatnonzero(np.r_[True, np.diff(index) > 0])
    last = np.r_[first[1:], len(index)] - 1
    lone = first == last
    keep = np.sort(np.r_[first, last[~lone]])
    # Where a bucket's two points lie in the output: its first, and its second unless it holds one sample only.
    out_first = np.searchsorted(keep, first)
    out_last = np.searchsorted(keep, last)
    return time_s[keep], {name: _extremes(values, first, out_first, out_last, len(keep)) for name, values in columns.items()}


def _extremes(values: np.ndarray, first: np.ndarray, out_first: np.ndarray, out_last: np.ndarray, size: int) -> np.ndarray:
    """Per bucket the smallest and largest value, in the order in which they occur; NaN for a bucket without values."""
    low = np.minimum.reduceat(np.where(np.isnan(values), np.inf, values), first)
    high = np.maximum.reduceat(np.where(np.isnan(values), -np.inf, values), first)
    empty = low > high
    low = np.where(empty, np.nan, low)
    high = np.where(empty, np.nan, high)
    bucket = np.searchsorted(first, np.arange(len(values)), side="right") - 1
    position = np.arange(len(values))
    at_low = np.minimum.reduceat(np.where(values == low[bucket], position, len(values)), first)
    at_high = np.minimum.reduceat(np.where(values == high[bucket], position, len(values)), first)
    falling = at_high < at_low
    out = np.empty(size)
    out[out_last] = np.where(falling, low, high)
    out[out_first] = np.where(falling, high, low)
    return out
