"""Report how long ECE takes."""

from __future__ import annotations

from statistics import median
from typing import Any

from benchmarks.evidence.markdown import folded, table
from benchmarks.evidence.timing import ON_ALL_CORES, SIZES, TOO_LONG, TURNS_BELOW


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


def ours_to_yardstick(found: dict[str, Any], n: int) -> float:
    """Return softcal's time relative to the yardstick, the median over the processes."""
    at = [timed[str(n)] for timed in timed_peers(found).values()]
    return median(float(timed["ours"] / timed["yardstick"]) for timed in at if "seconds" in timed)


def one_core_to_all(found: dict[str, Any], one_core: dict[str, Any], n: int) -> float:
    """Return softcal's time on one core relative to all cores, each relative to the yardstick."""
    if n not in ON_ALL_CORES:
        return 1.0
    alone = one_core[str(n)]
    return float(alone["ours"] / alone["yardstick"] / ours_to_yardstick(found, n))


def section(results: dict[str, Any]) -> str:
    """Return the times of all libraries, relative to softcal and to the yardstick."""
    found, one_core = results["libraries"], results["one_core"]
    peers = timed_peers(found)
    sizes = [f"n = {n:,}" for n in SIZES]
    to_ours = [
        [
            "softcal on one core",
            *(f"{one_core_to_all(found, one_core, n):.2f}" for n in SIZES),
            "1.0",
        ],
        *(
            [name, *(ratio(t[str(n)], "ours") for n in SIZES), cores(t)]
            for name, t in peers.items()
        ),
    ]
    to_yardstick = [
        [
            "softcal",
            *(f"{ours_to_yardstick(found, n):.2f}" for n in SIZES),
            f"{results['our_megabytes']:.1f}",
        ],
        *(
            [name, *(ratio(t[str(n)], "yardstick") for n in SIZES), megabytes(t)]
            for name, t in peers.items()
        ),
    ]
    return "\n".join([
        "## Speed\n",
        "The tables show the time of ECE with ten bins, 0/1 labels, and float64, as the lowest of "
        f"several alternated runs. A call over {TURNS_BELOW:.0f} s ran once, and a size that would "
        f"take over {TOO_LONG:.0f} s is left out. Each library ran in its own process, in turns "
        "with softcal and the yardstick, `p.sum() + y.sum()`, which reads the rows once on one "
        "core. From 200,000 rows on, softcal uses all cores. Cores are the processor time of all "
        "threads at the largest size, relative to that of the calling thread. softcal validates "
        "every value; the yardstick does not.\n",
        folded("Time relative to softcal on all cores (below 1: faster)",
               table(("library", *sizes, "cores"), to_ours, numbers_from=1)),
        "",
        folded("Time relative to the yardstick, and peak memory at the largest size",
               table(("library", *sizes, "MB"), to_yardstick, numbers_from=1)),
        "",
        folded("Milliseconds of softcal and of the yardstick", table(("what", *sizes), [
            ["yardstick", *(f"{least(peers, 'yardstick', n):.4g}" for n in SIZES)],
            ["softcal", *(f"{least(peers, 'ours', n):.4g}" for n in SIZES)],
        ], numbers_from=1)),
        "",
        folded("Milliseconds of an interval, 100,000 rows", table(
            ("what", "milliseconds"),
            [[what, f"{seconds * 1e3:,.2f}"]
             for what, seconds in results["interval_seconds"].items()],
            numbers_from=1,
        )),
    ])  # fmt: skip


def least(peers: dict[str, dict[str, Any]], what: str, n: int) -> float:
    """Return the lowest time of the yardstick or of softcal, in milliseconds."""
    return 1e3 * min(float(t[str(n)][what]) for t in peers.values() if what in t[str(n)])


def cores(timed: dict[str, Any]) -> str:
    used = timed[str(SIZES[-1])].get("cores")
    return "" if used is None else f"{used:.1f}"


def megabytes(timed: dict[str, Any]) -> str:
    peak = timed[str(SIZES[-1])].get("megabytes")
    return "" if peak is None else f"{peak:.0f}"
