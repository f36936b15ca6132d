"""The conformance cases are valid, certified, confirmed by NumPy, and passed by softcal."""

from __future__ import annotations

import json
import math
import subprocess
import sys
from fractions import Fraction
from importlib import import_module
from importlib.util import find_spec
from itertools import pairwise
from pathlib import Path
from typing import Any

import jsonschema
import numpy as np
import pytest

import adapters
import exact
import run

ROOT = Path(__file__).parent.parent
FILES = sorted((ROOT / "conformance" / "cases").glob("*.json"))
CASES = run.cases()
SMALL = run.cases(max_rows=1_000_000)
IDS = [case["id"] for case in CASES]


def named(name: str) -> dict[str, Any]:
    return next(case for case in CASES if case["id"] == name)


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.stem)
def test_case_files_fit_the_schema_and_name_their_topic(path: Path) -> None:
    schema = json.loads((ROOT / "conformance" / "schema.json").read_text(encoding="utf-8"))
    jsonschema.Draft202012Validator.check_schema(schema)
    topic = json.loads(path.read_text(encoding="utf-8"))
    jsonschema.Draft202012Validator(schema).validate(topic)
    assert topic["topic"] == path.stem
    assert all(case["id"].startswith(f"{path.stem}/") for case in topic["cases"])


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.stem)
def test_exact_arithmetic_writes_the_committed_files(path: Path) -> None:
    text = path.read_text(encoding="utf-8")
    topic = json.loads(text)
    for case in topic["cases"]:
        case["expected"] = exact.certified(case)
    assert exact.dumped(topic) == text


def test_certifier_needs_only_the_standard_library() -> None:
    code = (
        "import sys, exact; print([m for m in ('numpy', 'softcal', 'scipy') if m in sys.modules])"
    )
    done = subprocess.run(  # noqa: S603
        [sys.executable, "-S", "-c", code],
        cwd=ROOT / "conformance", capture_output=True, encoding="utf-8", check=True,
    )  # fmt: skip
    assert done.stdout == "[]\n"


def test_ids_are_unique_and_readme_counts_them() -> None:
    assert len(set(IDS)) == len(IDS)
    readme = (ROOT / "conformance" / "README.md").read_text(encoding="utf-8")
    assert f"{len(IDS)} small inputs" in readme
    assert len(CASES) - len(SMALL) == 4
    assert "Four cases have up to 20 million rows" in readme


def test_conventions_that_differ_do_so_by_more_than_any_tolerance() -> None:
    for case in CASES:
        values = [v.get("float", v.get("floats")) for v in case["expected"].values()]
        different = {str(v): np.atleast_1d(np.array(v, dtype=float)) for v in values}
        numbers = list(different.values())
        for a, b in pairwise(numbers):
            if case["id"] != "log_loss/perfect":  # 0, or 2.2e-16 if clipped
                assert a.shape != b.shape or np.abs(a - b).max() > 1e-4, case["id"]


# A second computation, in float64


def brute_bins(p: Any, n: int, convention: str) -> Any:
    edges = np.arange(1, n) / n
    return np.searchsorted(edges, p, side="right" if convention == "left-closed" else "left")


def brute_binned(name: str, data: adapters.Data, convention: str) -> Any:
    p, y = data.p.astype(float), data.y.astype(float)
    w = np.ones_like(p) if data.w is None else data.w
    where = brute_bins(p, data.n, convention)
    used = np.unique(where[w > 0])
    weight = np.array([w[where == b].sum() for b in used])
    mean_p = np.array([np.average(p[where == b], weights=w[where == b]) for b in used])
    mean_y = np.array([np.average(y[where == b], weights=w[where == b]) for b in used])
    gaps = np.abs(mean_p - mean_y)
    return {
        "ece": lambda: np.average(gaps, weights=weight),
        "mce": gaps.max,
        "rms_ce": lambda: math.sqrt(np.average(gaps**2, weights=weight)),
        "curve": lambda: np.stack([mean_p, mean_y], axis=1).ravel(),
    }[name]()


BINNED = [
    case for case in SMALL
    if case["metric"]["name"] in ("ece", "mce", "rms_ce", "curve")
    and case["metric"]["bins"] == "equal-width" and "must_refuse" not in case
]  # fmt: skip


@pytest.mark.parametrize("case", BINNED, ids=lambda case: case["id"])
def test_binned_values_equal_those_of_numpy(case: dict[str, Any]) -> None:
    for convention in ("left-closed", "right-closed"):
        found = brute_binned(case["metric"]["name"], adapters.Data(case), convention)
        value = case["expected"].get("any") or case["expected"][convention]
        assert found == pytest.approx(np.array(value.get("floats", value.get("float"))), abs=1e-14)


PLAIN = [
    case for case in SMALL
    if case["metric"]["name"] in ("brier", "log_loss", "bias", "class_brier", "class_log_loss")
    and "must_refuse" not in case
]  # fmt: skip


def brute_plain(name: str, data: adapters.Data) -> Any:
    classes = data.p.ndim == 2
    p, y = data.p.astype(float), (data.shares if classes else data.y).astype(float)
    with np.errstate(all="ignore"):
        logs = np.where(y > 0, y * np.log(p), 0), np.where(y < 1, (1 - y) * np.log1p(-p), 0)
    terms = {
        "brier": (p - y) ** 2,
        "bias": p - y,
        "log_loss": -logs[0] - logs[1],
        "class_brier": (p - y) ** 2,
        "class_log_loss": -logs[0],
    }[name]
    rows = terms.sum(axis=1) if classes else terms
    here = slice(None) if data.w is None else data.w > 0
    return np.average(rows[here], weights=None if data.w is None else data.w[here])


@pytest.mark.parametrize("case", PLAIN, ids=lambda case: case["id"])
def test_scores_equal_those_of_numpy(case: dict[str, Any]) -> None:
    expected = case["expected"]
    value = next(expected[word] for word in ("any", "exact", "sum") if word in expected)
    found = brute_plain(case["metric"]["name"], adapters.Data(case))
    assert found == pytest.approx(float(value["float"]), rel=1e-14, abs=1e-30)


def test_enclosures_contain_what_mathematics_says() -> None:
    """log 2, and the roots of 2 and of 1/4."""
    half = named("log_loss/half")["expected"]["any"]
    assert half["low"].startswith("0.69314718055994530941723212145")
    two = exact.root(Fraction(2))
    assert isinstance(two, exact.Enclosure)
    assert two.low**2 < 2 < two.high**2
    assert exact.root(Fraction(1, 4)) == Fraction(1, 2)


def test_weights_equal_repeated_rows() -> None:
    same = ["integers", "repeated-rows", "scaled", "scaled-down", "zero"]
    assert len({str(named(f"weights/{name}")["expected"]) for name in same}) == 1
    votes = ["per-vote", "expanded"]
    assert len({str(named(f"votes/{name}")["expected"]) for name in votes}) == 1


def test_thread_of_torchmetrics_is_answered() -> None:
    """0.475 is the value that torchmetrics#3510 expects, and 0.525 the one it reports."""
    assert named("zero_and_one/torchmetrics-3510")["expected"]["any"]["float"] == 0.475


# Runner


def test_softcal_passes_every_case_that_it_offers() -> None:
    result = run.run("softcal", CASES)
    assert result["details"] == {}
    offered = {name for name, outcome in result["outcomes"].items() if outcome != "not offered"}
    missing = {named(name)["metric"]["name"] for name in set(IDS) - offered}
    assert missing == {"squared_gap_outcomes"}


def test_softcal_is_exact_to_the_last_digits() -> None:
    adapter = import_module("adapters.softcal")
    for case in CASES:
        if "must_refuse" in case or case["metric"]["name"] == "squared_gap_outcomes":
            continue
        value = run.expected_value(adapter, case)
        wanted = np.array(value.get("floats", value.get("float")), dtype=float)
        got = np.asarray(run.answer(adapter, case)).ravel()
        assert got == pytest.approx(np.atleast_1d(wanted), rel=1e-14, abs=1e-14), case["id"]


class Peer:
    """An adapter of a library that returns the same answer to every question."""

    NAME = "softcal"
    BASIS = ""

    def __init__(self, number: Any) -> None:
        self.CONVENTIONS = {"equal-width": "right-closed"}
        self.OTHERWISE = {"edges/ten-bins-2": "something else"}
        self.METRICS = {"ece": lambda _: number() if callable(number) else number}


def fail() -> None:
    raise ValueError


@pytest.mark.parametrize(
    ("name", "number", "outcome"),
    [
        ("edges/ten-bins-1", 0.425, "right"),  # by its own convention
        ("edges/ten-bins-1", 0.525, "wrong"),
        ("edges/ten-bins-1", math.nan, "refused"),
        ("edges/ten-bins-1", fail, "refused"),
        ("edges/ten-bins-2", 0.525, "not offered"),
        ("edges/all-edges-mce", 0.5, "not offered"),
        ("soft_labels/ece", 0.5, "not offered"),
        ("weights/integers", 0.5, "not offered"),
        ("equal_mass/ties-across", 0.5, "not offered"),
        ("invalid/above-one", 0.5, "silent"),
        ("invalid/above-one", fail, "right"),
        ("invalid/above-one", math.nan, "right"),
    ],
)
def test_judgement_follows_the_documented_convention(name: str, number: Any, outcome: str) -> None:
    assert run.judge(Peer(number), named(name))[0] == outcome


def test_libraries_that_are_absent_are_reported(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "netcal.metrics", None)
    monkeypatch.delitem(sys.modules, "adapters.netcal", raising=False)
    result = run.run("netcal", SMALL)
    assert result["missing"].startswith("not installed")
    assert run.topic_table(result).startswith("netcal: not installed")


def test_command_prints_a_table_and_exits_with_0_for_softcal() -> None:
    done = subprocess.run(
        [sys.executable, "conformance/run.py", "--library", "softcal", "--max-rows", "1000"],
        cwd=ROOT, capture_output=True, encoding="utf-8", check=True,
    )  # fmt: skip
    assert "topic" in done.stdout.splitlines()[1]
    assert done.stdout.splitlines()[-1].startswith("all")


@pytest.mark.parametrize("library", ["scikit_learn", "torchmetrics", "netcal", "relplot"])
def test_other_libraries_run_and_are_only_recorded(library: str) -> None:
    """What they return is theirs, and no test depends on it."""
    if find_spec({"scikit_learn": "sklearn"}.get(library, library)) is None:
        pytest.skip(f"{library} is not installed")
    result = run.run(library, SMALL)
    assert set(result["outcomes"]) == {case["id"] for case in SMALL}
    assert set(result["outcomes"].values()) <= set(run.OUTCOMES)


# Pages


def test_page_shows_the_saved_results() -> None:
    text = run.PAGE.read_text(encoding="utf-8")
    assert run.page_with(text, run.load()) == text
    assert f"{len(CASES)} cases" in text
    assert f"compare {len(BINNED) + len(PLAIN)} of them" in text


def test_saved_results_are_of_these_cases() -> None:
    for result in run.load():
        assert list(result["outcomes"]) == IDS, result["library"]


def test_readme_example_runs() -> None:
    """The ten lines, with a library of three lines."""
    readme = (ROOT / "conformance" / "README.md").read_text(encoding="utf-8")
    code = readme.partition("```python\n")[2].partition("```")[0]

    def ece(p: list[float], y: list[float], n_bins: int) -> float:
        where = brute_bins(np.array(p), n_bins, "left-closed")
        return float(np.abs(np.bincount(where, np.subtract(p, y))).sum() / len(p))

    names: dict[str, Any] = {"ece": ece}
    code = code.replace("from mylibrary import ece\n", "")
    code = code.replace('"conformance/cases"', repr(str(ROOT / "conformance" / "cases")))
    exec(code, names)  # noqa: S102
    soft = [case for case in names["CASES"] if set(case["data"]["y"]) - {0, 1}]
    assert all(case["id"].startswith("soft_labels") for case in soft)
    assert len(soft) == 5
    assert f"Five of these {len(names['CASES'])} cases have soft labels" in readme
    assert len(names["CASES"]) > 30
    for case in names["CASES"]:
        names["test_ece_is_certified"](case)
