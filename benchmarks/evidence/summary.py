"""What we win and what we lose, in sentences made from the figures."""

from __future__ import annotations

from typing import Any

from benchmarks.evidence.coverage_section import DATA_SETS
from benchmarks.evidence.rejection_section import verdict
from benchmarks.evidence.rejections import TESTS
from benchmarks.evidence.speed_section import faster_than_us, ours_to_floor, timed_peers
from benchmarks.evidence.timing import SIZES
from benchmarks.evidence.wrong_numbers import tally


def of_soft_labels(found: dict[str, Any]) -> str:
    sorted_ = tally(found, soft=True)
    right, refuse, off = (", ".join(sorted_[kind]) for kind in ("right", "refuses", "off"))
    return (
        f"- **Soft labels.** {len(sorted_['right'])} libraries compute SMECE rightly when handed "
        f"soft labels, so the number itself is not ours alone: {right}. "
        f"{len(sorted_['refuses'])} refuse: {refuse}. {len(sorted_['off'])} return another number: "
        f"{off}."
    )


def of_traps(found: dict[str, Any]) -> str:
    sorted_ = tally(found, soft=False)
    counts = {kind: len(names) for kind, names in sorted_.items()}
    mine = tally(found, soft=False, ours=True)
    ours = ", ".join(f"{len(names)} {kind}" for kind, names in mine.items())
    return (
        f"- **Traps.** Of the {sum(counts.values())} answers of other libraries to the further "
        f"questions, {counts['right']} are right, nan or unharmed, {counts['refuses']} refuse, and "
        f"{counts['off']} are other numbers. softcal: {ours}. (Of bad input each library is "
        "judged by what it does to the library's own number.)"
    )


def of_tests(found: dict[str, Any]) -> str:
    judged = {
        f"{name} {test}": verdict(rates)
        for name in TESTS
        for test, rates in found[name].get("rejections", {}).items()
        if name != "softcal"
    }
    right = [name for name, words in judged.items() if words == "right"]
    return (
        f"- **Tests.** Of {len(judged)} tests of other libraries {len(right)} keep their level on "
        f"soft labels ({', '.join(right)}); the rest reject calibrated models too often or "
        "too rarely."
    )


def of_speed(found: dict[str, Any]) -> str:
    parts = [
        f"At {n:,} rows softcal takes {ours_to_floor(found, n):.1f} times the floor; "
        + (", ".join(f"{name} is {times:.1f} times faster than softcal"
                     for name, times in faster.items()) if faster else "no library is faster")
        for n in SIZES
        for faster in [faster_than_us(found, n)]
    ]  # fmt: skip
    first = next(iter(timed_peers(found)))
    last = found[first]["times"][str(SIZES[-1])]
    return (
        f"- **Speed.** {'. '.join(parts)}. The nearest at {SIZES[-1]:,} rows is {first}, "
        f"{last['seconds'] / last['ours']:.1f} times as long."
    )


def of_coverage(rows: list[dict[str, Any]]) -> str:
    noisy = [row for row in rows if row["theta"] > 0 or row["label"] != "exact soft"]
    ours = [row["coverage"] for row in noisy]
    boots = [row["percentile_coverage"] for row in noisy]
    wider = sum(row["width"] > row["percentile_width"] for row in noisy)
    return (
        f"- **The interval.** In the {len(noisy)} of {len(rows)} settings whose labels have "
        f"noise or whose model is off, each of {DATA_SETS:,} data sets, the 95 % interval covers "
        f"the truth {min(ours):.1%} to {max(ours):.1%} of the time, the percentile "
        f"bootstrap {min(boots):.1%} to {max(boots):.1%}. Ours is the wider one in {wider} of them."
    )


def of_paper(count: dict[str, Any]) -> str:
    return (
        f"- **The paper.** {count['reproduced']} of {count['printed']} printed figures come out "
        "digit for digit."
    )


def not_run(found: dict[str, Any]) -> str:
    names = [name for name, answers in found.items() if "missing" in answers]
    return f"- **Not run:** {', '.join(names) if names else 'none'} ([why](#how-they-were-run))."
