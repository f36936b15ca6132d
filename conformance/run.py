"""Run libraries on the conformance cases.

    python conformance/run.py --library softcal --library torchmetrics
    python conformance/run.py --format json
    python conformance/run.py --max-rows 1000000   skip the cases with more rows
    python conformance/run.py --save               update results.json and docs/conformance.md

Without --library, every library with an adapter is run. The exit code is 1 if one was wrong or
silent.
"""

from __future__ import annotations

import argparse
import datetime as dt
import importlib
import json
import os
import sys
import warnings
from collections import Counter
from contextlib import redirect_stderr, redirect_stdout
from importlib.metadata import version
from pathlib import Path
from typing import Any

import numpy as np

from adapters import Array, Data, NotOffered

HERE = Path(__file__).parent
RESULTS = HERE / "results.json"
PAGE = HERE.parent / "docs" / "conformance.md"
LIBRARIES = sorted(path.stem for path in (HERE / "adapters").glob("[!_]*.py"))
OUTCOMES = ("right", "wrong", "silent", "refused", "not offered")
TOLD = ("wrong", "silent", "refused")
BEGIN, END = "<!-- results: written by conformance/run.py --save -->", "<!-- end of results -->"


def cases(max_rows: int | None = None) -> list[dict[str, Any]]:
    """Read all cases, each with the tolerance of its topic unless it has its own."""
    found = []
    for path in sorted((HERE / "cases").glob("*.json")):
        topic = json.loads(path.read_text(encoding="utf-8"))
        found += [
            {"tolerance": topic["tolerance"], **case}
            for case in topic["cases"]
            if max_rows is None or sum(case["data"].get("repeat", [0])) <= max_rows
        ]
    return found


def answer(adapter: Any, case: dict[str, Any]) -> Any:
    """Call the library; raise NotOffered for what it does not document."""
    metric, data = case["metric"], Data(case)
    mass = " equal-mass" if metric.get("bins") == "equal-mass" else ""
    function = adapter.METRICS.get(metric["name"] + mass)
    if function is None:
        reason = f"no {metric['name']}{mass}"
        raise NotOffered(reason)
    if case["id"] in getattr(adapter, "OTHERWISE", {}):
        raise NotOffered(adapter.OTHERWISE[case["id"]])
    if "w" in case["data"] and metric["name"] + mass not in getattr(adapter, "WEIGHTED", ()):
        reason = "no weights"
        raise NotOffered(reason)
    if data.is_soft and metric["name"] not in getattr(adapter, "SOFT", ()):
        reason = "labels are documented as outcomes or classes"
        raise NotOffered(reason)
    if "resolution" in case and metric["name"] in getattr(adapter, "SINGLE", ()):
        reason = "it computes in float32, where this prediction is another number"
        raise NotOffered(reason)
    return function(data)


def expected_value(adapter: Any, case: dict[str, Any]) -> dict[str, Any]:
    """Return the certified value under the convention that the library documents."""
    expected: dict[str, dict[str, Any]] = case["expected"]
    if "any" in expected:
        return expected["any"]
    word = adapter.CONVENTIONS.get(case["metric"].get("bins", case["metric"]["name"]))
    if word not in expected:
        reason = "its convention has no name in this set"
        raise NotOffered(reason)
    return expected[word]


def is_close(got: Array, expected: dict[str, Any], tolerance: float) -> bool:
    """Return whether a number, or every number of a list, is near enough."""
    wanted = np.atleast_1d(np.array(expected.get("floats", expected.get("float")), dtype=float))
    if got.shape != wanted.shape:
        return False
    with np.errstate(invalid="ignore"):
        return bool(((got == wanted) | (np.abs(got - wanted) <= tolerance)).all())


def judge(adapter: Any, case: dict[str, Any]) -> tuple[str, str]:
    """Return the outcome of one case, and why.

    `silent` means a number for input without a right answer, `refused` an error or NaN otherwise.
    """
    invalid = "must_refuse" in case
    try:
        expected = expected_value(adapter, case)
        got = np.atleast_1d(np.asarray(answer(adapter, case), dtype=np.float64)).ravel()
    except NotOffered as reason:
        return "not offered", str(reason)
    except Exception as error:  # the answer of a library
        said = f"{type(error).__name__}: {' '.join(str(error).split())[:120]}"
        return ("right" if invalid else "refused"), said
    shown = str(got.item() if got.size == 1 else got.tolist())
    if invalid:
        return ("silent" if np.isfinite(got).all() else "right"), f"got {shown}, expected an error"
    if np.isnan(got).any():
        return "refused", f"returned {shown}"
    wanted = expected.get("floats", expected.get("float"))
    right = is_close(got, expected, tolerance_of(adapter, case))
    return ("right" if right else "wrong"), f"got {shown}, expected {wanted}"


def tolerance_of(adapter: Any, case: dict[str, Any]) -> float:
    """Return the tolerance of the case for the type in which the library computes."""
    single = case["metric"]["name"] in getattr(adapter, "SINGLE", ())
    word = "float32" if single else case["data"].get("dtype", "float64")
    return float(case["tolerance"][word])


def run(library: str, chosen: list[dict[str, Any]]) -> dict[str, Any]:
    """Run one library on all chosen cases."""
    silent = Path(os.devnull).open("w", encoding="utf-8")  # noqa: SIM115
    with warnings.catch_warnings(), silent, redirect_stdout(silent), redirect_stderr(silent):
        warnings.simplefilter("ignore")
        try:
            adapter = importlib.import_module(f"adapters.{library}")
            number = version(adapter.NAME)
        except (ImportError, OSError) as error:
            return {"library": library.replace("_", "-"), "missing": f"not installed ({error})"}
        found = {case["id"]: judge(adapter, case) for case in chosen}
    return {
        "library": adapter.NAME,
        "version": number,
        "date": dt.datetime.now(tz=dt.UTC).date().isoformat(),
        "conventions": adapter.CONVENTIONS,
        "basis": adapter.BASIS,
        "outcomes": {name: outcome for name, (outcome, _) in found.items()},
        "details": {name: why for name, (outcome, why) in found.items() if outcome in TOLD},
    }


# Tables


def counts(result: dict[str, Any], topic: str = "") -> Counter[str]:
    """Count the outcomes of a library, in one topic or in all."""
    found = result["outcomes"].items()
    return Counter(outcome for name, outcome in found if name.startswith(topic))


def topic_table(result: dict[str, Any]) -> str:
    """Return the outcomes of one library per topic, and every wrong case, as text."""
    if "missing" in result:
        return f"{result['library']}: {result['missing']}\n"
    lines = [f"{result['library']} {result['version']}"]
    lines.append(f"{'topic':<14}" + "".join(f"{word:>13}" for word in OUTCOMES))
    topics = list(dict.fromkeys(name.partition("/")[0] for name in result["outcomes"]))
    for topic in topics:
        count = counts(result, f"{topic}/")
        lines.append(f"{topic:<14}" + "".join(f"{count[word]:>13}" for word in OUTCOMES))
    count = counts(result)
    lines.append(f"{'all':<14}" + "".join(f"{count[word]:>13}" for word in OUTCOMES))
    lines += [f"  {name}: {why}" for name, why in result["details"].items()]
    return "\n".join(lines) + "\n"


def page_table(results: list[dict[str, Any]]) -> str:
    """Return the table of the page, in Markdown, from saved results."""
    dates = sorted({result["date"] for result in results})
    words = ["library", "version", *OUTCOMES, "wrong or silent, of those answered"]
    lines = [f"Run on {' and '.join(dates)}:", "", f"| {' | '.join(words)} |"]
    lines.append("|---|---|" + "---:|" * len(OUTCOMES) + "---|")
    for result in results:
        count = counts(result)
        cells = [result["library"], result["version"]]
        cells += [str(count[word]) for word in OUTCOMES]
        lines.append(f"| {' | '.join(cells)} | {where_off(result)} |")
    return "\n".join(lines)


def where_off(result: dict[str, Any]) -> str:
    """Return the topics with wrong or silent answers, and how many of each."""
    found = []
    for topic in dict.fromkeys(name.partition("/")[0] for name in result["outcomes"]):
        count = counts(result, f"{topic}/")
        off = count["wrong"] + count["silent"]
        if off:
            found.append(f"{topic} {off} of {count['right'] + off}")
    return ", ".join(found)


def page_with(text: str, results: list[dict[str, Any]]) -> str:
    """Return the page with its tables replaced."""
    head, _, rest = text.partition(BEGIN)
    return f"{head}{BEGIN}\n\n{page_table(results)}\n\n{END}{rest.partition(END)[2]}"


def load() -> list[dict[str, Any]]:
    """Read the saved results."""
    found: list[dict[str, Any]] = json.loads(RESULTS.read_text(encoding="utf-8"))
    return found


def save(results: list[dict[str, Any]]) -> None:
    """Replace the saved results of these libraries, and write the page."""
    old = load() if RESULTS.exists() else []
    new = {each["library"]: each for each in [*old, *results] if "missing" not in each}
    kept = sorted(new.values(), key=lambda each: each["library"].lower())
    lines = ",\n".join(json.dumps(each, ensure_ascii=False) for each in kept)
    RESULTS.write_text(f"[\n{lines}\n]\n", encoding="utf-8")
    if PAGE.exists():
        PAGE.write_text(page_with(PAGE.read_text(encoding="utf-8"), kept), encoding="utf-8")


def main() -> int:
    """Run the chosen libraries and print their outcomes."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else "")
    parser.add_argument("--library", action="append", choices=LIBRARIES, help="repeat for several")
    parser.add_argument("--format", choices=("table", "json"), default="table")
    parser.add_argument("--max-rows", type=int, help="skip cases with more rows")
    parser.add_argument("--save", action="store_true", help="update results.json and the page")
    options = parser.parse_args()
    chosen = cases(options.max_rows)
    results = [run(library, chosen) for library in options.library or LIBRARIES]
    if options.format == "json":
        sys.stdout.write(json.dumps(results, ensure_ascii=False, indent=1) + "\n")
    else:
        sys.stdout.write("\n".join(map(topic_table, results)))
    if options.save:
        save(results)
    ran = [counts(each) for each in results if "missing" not in each]
    return int(any(count["wrong"] or count["silent"] for count in ran))


if __name__ == "__main__":
    sys.exit(main())
