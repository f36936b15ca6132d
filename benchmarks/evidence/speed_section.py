"""The tables of how long ECE takes."""

from __future__ import annotations

from statistics import median
from typing import Any

from benchmarks.evidence.markdown import table
from benchmarks.evidence.timing import SIZES, TOO_LONG
from benchmarks.speed import certainty_costs


def ratio(timed: dict[str, Any], to: str) -> str:
    if "seconds" not in timed:
        return str(timed.get("why", ""))
    times = timed["seconds"] / timed[to]
    return f"{times:.2f}" if times < 100 else f"{times:,.0f}"


def timed_peers(found: dict[str, Any]) -> dict[str, dict[str, Any]]:
    """Give the times of those that have any, the quickest at the most rows first."""

    def slowness(name: str) -> float:
        last: dict[str, Any] = found[name]["times"][str(SIZES[-1])]
        return float(last["seconds"] / last["ours"]) if "seconds" in last else float("inf")

    return {name: found[name]["times"] for name in
            sorted((n for n, f in found.items() if f.get("times")), key=slowness)}  # fmt: skip


def faster_than_us(found: dict[str, Any], n: int) -> dict[str, float]:
    """Give who needs less time than softcal, and how many times less."""
    at = {name: timed[str(n)] for name, timed in timed_peers(found).items()}
    return {
        name: timed["ours"] / timed["seconds"]
        for name, timed in at.items()
        if "seconds" in timed and timed["seconds"] < timed["ours"]
    }


def ours_to_floor(found: dict[str, Any], n: int) -> float:
    """Give softcal's time in floors, the median over the processes."""
    at = [timed[str(n)] for timed in timed_peers(found).values()]
    return median(float(timed["ours"] / timed["floor"]) for timed in at if "seconds" in timed)


def section(found: dict[str, Any]) -> str:
    """Write the times of all, beside ours and the floor."""
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
        "ECE with ten bins of 0/1 labels in float64, the least of several runs (of one, where a "
        f"call takes over 2 s; a size is left out when ten times the one before is over "
        f"{TOO_LONG:.0f} s). softcal uses all cores, the floor one; it makes the whole table, "
        "with all checks, where the others return a number or a curve. Each "
        "library is timed in a process of its own, beside softcal and the floor, "
        "`p.sum() + y.sum()`.\n",
        "**Times as long as softcal** (below 1: the library is faster):\n",
        table(("library", *sizes), to_ours, numbers_from=1),
        "\n**Times as long as the floor**, and the memory it takes at the most rows:\n",
        table(("library", *sizes, "MB"), to_floor, numbers_from=1),
        "\n**Milliseconds**, the least over all processes:\n",
        table(("what", *sizes), [
            ["floor", *(f"{least(peers, 'floor', n):.4g}" for n in SIZES)],
            ["softcal", *(f"{least(peers, 'ours', n):.4g}" for n in SIZES)],
        ], numbers_from=1),
        "\n**An interval**, of 100,000 rows:\n",
        table(("what", "milliseconds"),
              [[what, f"{seconds * 1e3:,.2f}"] for what, seconds in certainty_costs(10**5).items()],
              numbers_from=1),
    ])  # fmt: skip


def least(peers: dict[str, dict[str, Any]], what: str, n: int) -> float:
    """Give the least time of the floor or of softcal, in milliseconds."""
    return 1e3 * min(float(t[str(n)][what]) for t in peers.values() if what in t[str(n)])


def megabytes(timed: dict[str, Any]) -> str:
    peak = timed[str(SIZES[-1])].get("megabytes")
    return "" if peak is None else f"{peak:.0f}"
