"""Report how long ECE takes."""

from __future__ import annotations

from statistics import median
from typing import Any

from benchmarks.evidence.markdown import folded, table
from benchmarks.evidence.timing import SIZES, TOO_LONG, TURNS_BELOW


def ratio(timed: dict[str, Any], to: str) -> str:
    if "seconds" not in timed:
        return str(timed.get("why", ""))
    times = timed["seconds"] / timed[to]
    return f"{times:.2f}" if times < 100 else f"{times:,.0f}"


def timed_peers(found: dict[str, Any]) -> dict[str, dict[str, Any]]:
    """Return the times of the timed libraries, fastest at the largest size first."""

    def slowness(name: str) -> float:
        last: dict[str, Any] = found[name]["times"][str(SIZES[-1])]
        return float(last["seconds"] / last["ours"]) if "seconds" in last else float("inf")

    return {name: found[name]["times"] for name in
            sorted((n for n, f in found.items() if f.get("times")), key=slowness)}  # fmt: skip


def faster_than_us(found: dict[str, Any], n: int) -> dict[str, float]:
    """Return the libraries that are faster than softcal, and by what factor."""
    at = {name: timed[str(n)] for name, timed in timed_peers(found).items()}
    return {
        name: timed["ours"] / timed["seconds"]
        for name, timed in at.items()
        if "seconds" in timed and timed["seconds"] < timed["ours"]
    }


def ours_to_floor(found: dict[str, Any], n: int) -> float:
    """Return softcal's time relative to the floor, the median over the processes."""
    at = [timed[str(n)] for timed in timed_peers(found).values()]
    return median(float(timed["ours"] / timed["floor"]) for timed in at if "seconds" in timed)


def section(found: dict[str, Any], interval_seconds: dict[str, float]) -> str:
    """Return the times of all libraries, relative to softcal and to the floor."""
    peers = timed_peers(found)
    sizes = [f"n = {n:,}" for n in SIZES]
    to_ours = [[name, *(ratio(t[str(n)], "ours") for n in SIZES)] for name, t in peers.items()]
    to_floor = [
        ["softcal", *(f"{ours_to_floor(found, n):.2f}" for n in SIZES), ""],
        *(
            [name, *(ratio(t[str(n)], "floor") for n in SIZES), megabytes(t)]
            for name, t in peers.items()
        ),
    ]
    return "\n".join([
        "## Speed\n",
        "The tables show the time of ECE with ten bins, 0/1 labels, and float64, as the lowest of "
        f"several alternated runs. A call over {TURNS_BELOW:.0f} s ran once, and a size that would "
        f"take over {TOO_LONG:.0f} s is left out. Each library ran in its own process, in turns "
        "with softcal and the floor, `p.sum() + y.sum()`. The floor uses one core, softcal all "
        "cores and checks every value.\n",
        folded("Time relative to softcal (below 1: the library is faster)",
               table(("library", *sizes), to_ours, numbers_from=1)),
        "",
        folded("Time relative to the floor, and peak memory at the largest size",
               table(("library", *sizes, "MB"), to_floor, numbers_from=1)),
        "",
        folded("Milliseconds of softcal and of the floor", table(("what", *sizes), [
            ["floor", *(f"{least(peers, 'floor', n):.4g}" for n in SIZES)],
            ["softcal", *(f"{least(peers, 'ours', n):.4g}" for n in SIZES)],
        ], numbers_from=1)),
        "",
        folded("Milliseconds of an interval, 100,000 rows", table(
            ("what", "milliseconds"),
            [[what, f"{seconds * 1e3:,.2f}"] for what, seconds in interval_seconds.items()],
            numbers_from=1,
        )),
    ])  # fmt: skip


def least(peers: dict[str, dict[str, Any]], what: str, n: int) -> float:
    """Return the lowest time of the floor or of softcal, in milliseconds."""
    return 1e3 * min(float(t[str(n)][what]) for t in peers.values() if what in t[str(n)])


def megabytes(timed: dict[str, Any]) -> str:
    peak = timed[str(SIZES[-1])].get("megabytes")
    return "" if peak is None else f"{peak:.0f}"
