"""The evidence page shows what today's code returns, and other libraries where installed.

Its right answers are doctests, so pytest computes them too.
"""

from __future__ import annotations

import csv
import math
import re
from pathlib import Path
from typing import Any

import pytest
from benchmarks.evidence import page
from benchmarks.evidence.asking import Answer, answer_to, names_of, right_answer
from benchmarks.evidence.peers import PEERS, SOFTCAL, Peer, installed_version
from benchmarks.evidence.questions import CONTROL, QUESTIONS, SOFT, Question
from benchmarks.evidence.rejection_section import verdict as judged_by_rates
from benchmarks.evidence.speed_section import least, one_core_to_all, timed_peers
from benchmarks.evidence.summary import soft_counts
from benchmarks.evidence.timing import SIZES
from benchmarks.evidence.wrong_numbers import block, row, verdict, verdicts

ROOT = Path(__file__).parent.parent
DOCS = ROOT / "docs"
PAGE = (DOCS / "evidence.md").read_text(encoding="utf-8")
QUICK = [question for question in QUESTIONS if "20_000_000" not in question.setup]
# Those that the tests have anyway; `make evidence` runs all of them.
HERE = [peer for peer in PEERS if peer.name in ("scikit-learn", "relplot", "netcal")]


def part_of(question: Question) -> str:
    """Return the part of the page about one question."""
    return PAGE.partition(f". {question.title}</summary>\n")[2].partition("</details>")[0]


def lines_of(peer: Peer, questions: list[Question]) -> dict[str, list[str]]:
    names = names_of(peer)
    measured = page.load()["libraries"]["softcal"]["version"]
    version = measured if peer is SOFTCAL else installed_version(peer.name)
    lines = {}
    for question in questions:
        call = question.ours if peer is SOFTCAL else question.calls.get(peer.name)
        if call:
            found = answer_to(question, call, names)
            label = f"{peer.name} {version}"
            lines[question.title] = row(label, call, question, right_answer(question), found)
    return lines


@pytest.mark.parametrize("question", QUICK, ids=lambda question: question.title)
def test_page_shows_code_and_right_answer_of_each_question(question: Question) -> None:
    assert block(question, right_answer(question)) in part_of(question)


@pytest.mark.parametrize("peer", [SOFTCAL, *HERE], ids=lambda peer: peer.name)
def test_page_shows_what_each_library_returns_today(peer: Peer) -> None:
    for title, line in lines_of(peer, QUICK).items():
        question = next(question for question in QUICK if question.title == title)
        assert f"| {' | '.join(cell.replace('|', '/') for cell in line)} |" in part_of(question)


def test_softcal_is_right_or_refuses() -> None:
    """Bad input must be refused; all other questions have a right number."""
    for title, line in lines_of(SOFTCAL, QUICK).items():
        bad = next(question for question in QUICK if question.title == title).bad
        assert line[1] == ("refuses" if bad else "right"), title


@pytest.mark.parametrize(
    ("question", "found", "words"),
    [
        (SOFT, Answer(0.0770806465), "right"),
        (SOFT, Answer(0.0770816), "right to 1e-06"),
        (SOFT, Answer(0.0367959), "**off by 0.04**"),
        (SOFT, Answer(None, "ValueError: no"), "refuses"),
        (SOFT, Answer(math.nan), "returns NaN"),
    ],
)
def test_verdict_depends_on_the_number_alone(question: Question, found: Answer, words: str) -> None:
    """The next run calls a fixed library right."""
    assert verdict(question, right_answer(question), found) == words


def test_verdict_on_bad_input_depends_on_the_change_of_the_number() -> None:
    bad = next(question for question in QUICK if question.bad and question.right != "np.nan")
    right = right_answer(bad)
    assert verdict(bad, right, Answer(right)) == "unaffected"
    assert verdict(bad, right, Answer(right + 0.25)) == "**silent, off by 0.25**"
    assert verdict(bad, math.nan, Answer(right)) == "**silent**"


@pytest.mark.parametrize(
    ("rate", "words"),
    [(0.05, "right"), (0.0, "**rejects too rarely**"), (1.0, "**rejects too often**")],
)
def test_verdict_on_a_test_depends_on_calibrated_soft_labels(rate: Any, words: str) -> None:
    assert judged_by_rates({"soft, calibrated": rate}) == words


def test_page_is_written_from_the_saved_results() -> None:
    assert page.text(page.load()) == PAGE


def words_of(page: str) -> str:
    """Return the words of a page on one line."""
    return " ".join((ROOT / page).read_text(encoding="utf-8").split())


def test_pages_state_the_counts_of_the_results() -> None:
    results = page.load()
    found = results["libraries"]
    ran = sum("missing" not in answers for answers in found.values()) - 1  # without softcal
    for shown in ("README.md", "docs/index.md"):
        words = words_of(shown)
        assert soft_counts(found, results["right"]) in words
        assert f" {ran} other libraries" in words


@pytest.mark.parametrize("shown", ["README.md", *(f"docs/{p.name}" for p in DOCS.glob("*.md"))])
def test_no_page_speaks_of_most_libraries(shown: str) -> None:
    assert not re.search(r"\bmost (other )?libraries", words_of(shown), re.IGNORECASE)


def test_table_of_readme_has_the_measured_numbers() -> None:
    results = page.load()
    found = results["libraries"]
    readme = (ROOT / "README.md").read_text(encoding="utf-8")
    cells = {
        line.split(" | ")[0].split()[1].strip("*,"): line.strip("| \n").split(" | ")[1:]
        for line in readme.partition("## Comparison")[2].splitlines()
        if line.startswith("| ") and "one core" not in line and "soft labels" not in line
    }
    bad = [question for question in QUESTIONS if question.bad]
    assert list(cells) == ["softcal", "relplot", "scikit-learn", "torchmetrics", "netcal"]
    for name, (_, silent, _, shown, cores, memory) in cells.items():
        words = verdicts(name, bad, found, results["right"])
        counted = f"{sum('**' in each for each in words)} of {len(words)}"
        assert silent == (counted if words else "no metric")
        if name != "softcal":
            timed = found[name]["times"][str(SIZES[-1])]
            times = timed["seconds"] / timed["ours"]
            assert shown == (f"{times:.1f}" if times < 10 else f"{times:.0f}")
            assert float(cores) == round(timed["cores"], 1)
            assert memory == f"{timed['megabytes']:.0f} MB"
    milliseconds = least(timed_peers(found), "ours", SIZES[-1])
    assert cells["softcal"][3] == f"**1** ({milliseconds:.0f} ms)"
    assert cells["softcal"][4] == results["machine"]["cores"]
    assert results["our_megabytes"] < 1
    slower = one_core_to_all(found, results["one_core"], SIZES[-1])
    assert f"| **softcal**, one core | | | | {slower:.1f} | 1 | |" in readme


def test_page_on_other_libraries_states_the_simulated_coverage() -> None:
    def column(file: str, name: str, *, but: str = "") -> list[float]:
        with (DOCS / file).open(encoding="utf-8") as lines:
            return [float(line[name]) for line in csv.DictReader(lines) if line["label"] != but]

    ours = column("coverage.csv", "coverage")
    boot = [
        share
        for name in ("percentile_coverage", "bca_coverage")
        for share in column("coverage_bootstrap.csv", name, but="exact soft")
    ]
    words = words_of("docs/migrate.md")
    assert (
        f"contain the true error in {min(ours):.0%} to {max(ours):.0%} of the data sets in each "
        f"of {len(ours)} [settings]"
    ) in words
    assert f"contained it in {min(boot):.0%} to {max(boot):.0%} of [simulated" in words


def test_page_lists_every_library() -> None:
    ran = PAGE.partition("## Setup")[2]
    for peer in PEERS:
        assert f"| {peer.name} | " in ran
    assert CONTROL.title in PAGE
