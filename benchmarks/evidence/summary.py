"""Summarize the results: sentences made from the figures, and one matrix."""

from __future__ import annotations

from typing import Any

from benchmarks.evidence.coverage_section import DATA_SETS
from benchmarks.evidence.markdown import table
from benchmarks.evidence.questions import OPTION, OPTIONS, QUESTIONS, SOFT
from benchmarks.evidence.rejection_section import verdict
from benchmarks.evidence.rejections import TESTS
from benchmarks.evidence.speed_section import (
    faster_than_us,
    one_core_to_all,
    ours_to_yardstick,
    timed_peers,
)
from benchmarks.evidence.timing import SIZES
from benchmarks.evidence.wrong_numbers import kind_of, tally, verdicts

TIMED = SIZES[-2]  # rows of the column of times


def of_soft_labels(found: dict[str, Any], right: dict[str, float]) -> str:
    """Return how many libraries handle soft labels."""
    more = right_with_option(found, right)
    calls = " and ".join(f"{name} (`{option}`)" for name, option in more.items())
    ran = [name for name, answers in found.items() if "missing" not in answers]
    unasked = [name for name in ran if not verdicts(name, [SOFT], found, right)]
    return (
        f"- **Soft labels.** {soft_counts(found, right)} Of the last two kinds, {calls} "
        "return the right number with an option that is not the default. Of the "
        f"{len(ran) - 1} other libraries on this page, {', '.join(unasked)} has only a test."
    )


def soft_counts(found: dict[str, Any], right: dict[str, float]) -> str:
    """Return the sentences that README and the first page repeat."""
    counts = {kind: len(names) for kind, names in tally(found, right, soft=True).items()}
    return (
        f"Of {sum(counts.values())} other libraries, {counts['right']} handle soft labels "
        f"correctly, {counts['refuses']} refuse them, and {counts['off']} return another number."
    )


def right_with_option(found: dict[str, Any], right: dict[str, float]) -> dict[str, str]:
    """Return the libraries that handle soft labels only with an option, and the option."""
    asked = {name: verdicts(name, [OPTIONS], found, right) for name in OPTION}
    return {name: OPTION[name] for name, words in asked.items() if words == ["right"]}


def of_traps(found: dict[str, Any], right: dict[str, float]) -> str:
    """Return the counts of all other questions."""
    counts = {kind: len(names) for kind, names in tally(found, right, soft=False).items()}
    mine = tally(found, right, soft=False, ours=True)
    ours = {kind: len(names) for kind, names in mine.items()}
    return (
        f"- **Edge cases and bad input.** Of {sum(counts.values())} answers by other libraries, "
        f"{counts['right']} are right, NaN, or unaffected, {counts['refuses']} are errors, and "
        f"{counts['off']} are wrong numbers. Of softcal's {sum(ours.values())} answers, "
        f"{ours['right']} are right, {ours['refuses']} are errors, and {ours['off']} are wrong."
    )


def of_tests(found: dict[str, Any]) -> str:
    """Return how many tests keep their level on soft labels."""
    judged = {
        f"{name} {test}": verdict(rates)
        for name in TESTS
        for test, rates in found[name].get("rejections", {}).items()
        if name != "softcal"
    }
    right = [name for name, words in judged.items() if words == "right"]
    return (
        f"- **Tests.** {len(right)} of {len(judged)} calibration tests of other libraries keep "
        f"their level on soft labels: {'; '.join(right) or 'none'}. The others reject calibrated "
        "models too often or too rarely."
    )


def of_speed(found: dict[str, Any], one_core: dict[str, Any]) -> str:
    """Return which libraries are faster, and how far the closest one is."""
    faster = {n: faster_than_us(found, n) for n in SIZES}
    quicker = [
        f"{name} is {times:.1f} times as fast as softcal at {n:,} rows"
        for n in SIZES
        for name, times in faster[n].items()
    ]
    *most, last_size = [f"{n:,}" for n in SIZES if not faster[n]] or [""]
    slower = f"{', '.join(most)}, or {last_size}" if most else last_size
    peers = timed_peers(found)
    none = f"None of {len(peers)} libraries is faster at {slower} rows"
    words = ". ".join([none] * bool(slower) + quicker)
    first = next(iter(peers))
    last = found[first]["times"][str(SIZES[-1])]
    return (
        f"- **Speed.** {words}. At {SIZES[-1]:,} rows softcal takes "
        f"{ours_to_yardstick(found, SIZES[-1]):.1f} times as long as `p.sum() + y.sum()`. The "
        f"next library, {first}, takes {last['seconds'] / last['ours']:.1f} times as long as "
        "softcal. softcal uses all cores there; on one core it takes "
        f"{one_core_to_all(found, one_core, SIZES[-1]):.1f} times as long."
    )


def of_coverage(rows: list[dict[str, Any]]) -> str:
    """Return the range of coverages."""
    noisy = [row for row in rows if row["theta"] > 0 or row["label"] != "exact soft"]
    ours = [row["coverage"] for row in noisy]
    boots = [row["percentile_coverage"] for row in noisy]
    wider = sum(row["width"] > row["percentile_width"] for row in noisy)
    return (
        f"- **Intervals.** In {len(noisy)} simulated settings of {DATA_SETS:,} data sets, "
        f"softcal's 95% interval contains the true SMECE in {min(ours):.1%} to {max(ours):.1%} of "
        f"data sets. The percentile bootstrap interval contains it in {min(boots):.1%} to "
        f"{max(boots):.1%}. softcal's interval is wider in {wider} settings."
    )


def of_paper(count: dict[str, Any]) -> str:
    """Return how many printed figures are reproduced."""
    return (
        f"- **Paper.** softcal reproduces {count['reproduced']} of {count['printed']} printed "
        "numbers digit for digit."
    )


def not_run(found: dict[str, Any]) -> str:
    """Return the libraries that did not run."""
    names = [name for name, answers in found.items() if "missing" in answers]
    return f"- **Not run:** {', '.join(names) if names else 'none'} ([why](#setup))."


def matrix(found: dict[str, Any], right: dict[str, float]) -> str:
    """Return one row per library: what it does with each kind of input, and its time."""
    edge = [question for question in QUESTIONS if question.edge]
    bad = [question for question in QUESTIONS if question.bad]
    with_option = right_with_option(found, right)
    lines = []
    for name, answers in found.items():
        if "missing" in answers:
            continue
        soft = verdicts(name, [SOFT], found, right)
        edges = verdicts(name, edge, found, right)
        silent = verdicts(name, bad, found, right)
        option = f"; right with `{with_option[name]}`" if name in with_option else ""
        lines.append([
            f"{'**softcal**' if name == 'softcal' else name}",
            f"{soft[0]}{option}" if soft else "-",
            _count(edges, "right") if edges else "-",
            _count(silent, "off") if silent else "-",
            _level(answers.get("rejections", {})),
            _time(name, answers.get("times", {})),
        ])  # fmt: skip
    head = (
        "library", "soft labels", "edge cases right", "bad input silently wrong",
        "tests that keep 5%", f"time, n = {TIMED:,}",
    )  # fmt: skip
    return "\n".join([
        "Soft labels: the verdict on [question 2](#correctness). Edge cases: predictions of "
        "exactly 0 and 1, predictions on a bin edge, and 20 million float32 rows. Bad input: "
        "missing values, predictions outside 0 to 1, labels of -1 and 1, and labels of another "
        "length or order. Time is relative to softcal on all cores. A dash means that the library "
        "has no such function.\n",
        table(head, lines, numbers_from=2),
    ])  # fmt: skip


def _count(words: list[str], kind: str) -> str:
    return f"{sum(kind_of(each) == kind for each in words)} of {len(words)}"


def _level(rates: dict[str, Any]) -> str:
    kept = [verdict(each) == "right" for each in rates.values()]
    return f"{sum(kept)} of {len(kept)}" if kept else "-"


def _time(name: str, times: dict[str, Any]) -> str:
    if name == "softcal":
        return "1"
    at = times.get(str(TIMED), {})
    return f"{at['seconds'] / at['ours']:.1f}" if "seconds" in at else "-"
