"""Time the ECE of one library, next to the yardstick and softcal in the same process."""

from __future__ import annotations

import os
import time
import warnings
from typing import Any

import numpy as np

import softcal as sc
from benchmarks.evidence.peers import SOFTCAL, Peer
from benchmarks.speed import BINS, Call, alternated, peak_megabytes
from benchmarks.speed import PEERS as TIMED

SIZES = (10**3, 10**5, 10**6, 10**7)
ON_ALL_CORES = SIZES[-2:]  # softcal starts threads from 200,000 rows on
TOO_LONG = 20.0  # seconds per call
TURNS_BELOW = 2.0  # seconds: a slower call runs once
Timed = dict[str, float | str | None]


def times(peer: Peer, names: dict[str, Any]) -> dict[str, Timed]:
    """Time ECE at each size until a call would take too long."""
    if peer is SOFTCAL or not (peer.ece or peer.timed_as):
        return {}
    found: dict[str, Timed] = {}
    expected = 0.0
    for n in SIZES:
        if expected > TOO_LONG:
            found[str(n)] = {"why": f"over {TOO_LONG:.0f} s"}
            continue
        found[str(n)] = timed(peer, names, n)
        seconds = found[str(n)].get("seconds")
        expected = 10 * seconds if isinstance(seconds, float) else TOO_LONG + 1
    return found


def rows(n: int) -> tuple[Any, Any]:
    """Return labels and predictions of a calibrated model."""
    rng = np.random.default_rng(0)
    p = rng.random(n)
    return (rng.random(n) < p).astype(np.float64), p


def yardstick_and_ours(y: Any, p: Any) -> dict[str, Call]:
    """Return the time to read the rows once, on one core, and softcal."""
    return {
        "yardstick": lambda: p.sum() + y.sum(),
        "ours": lambda: sc.smece(y, p, bins=BINS),
    }


def timed(peer: Peer, names: dict[str, Any], n: int) -> Timed:
    y, p = rows(n)
    call: Call
    call = TIMED[peer.timed_as](y, p) if peer.timed_as else lambda: names["ece"](y, p)
    both = yardstick_and_ours(y, p)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            start, work, own = time.perf_counter(), time.process_time(), time.thread_time()
            megabytes = peak_megabytes(call)
            once = time.perf_counter() - start
            cores = (time.process_time() - work) / (time.thread_time() - own)
            calls = both if once > TURNS_BELOW else {"seconds": call, **both}
            found = alternated(calls, budget=1.0)
        except Exception as error:  # the table shows a library that fails
            return {"why": f"fails: {type(error).__name__}"}
    return {"seconds": once, **found, "megabytes": megabytes, "cores": cores}


def our_megabytes() -> float | None:
    """Return how much the memory of the process grows when softcal scores the largest size."""
    y, p = rows(SIZES[-1])
    sc.smece(y[:1], p[:1])  # imports
    return peak_megabytes(lambda: sc.smece(y, p, bins=BINS))


def one_core() -> dict[str, dict[str, float]]:
    """Time softcal on one core, next to the yardstick, at sizes where it uses all; Linux only."""
    every = os.sched_getaffinity(0)
    os.sched_setaffinity(0, {min(every)})
    try:
        return {str(n): alternated(yardstick_and_ours(*rows(n))) for n in ON_ALL_CORES}
    finally:
        os.sched_setaffinity(0, every)
