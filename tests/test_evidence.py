"""The evidence page shows what today's code returns, and other libraries where installed.

Its right answers are doctests, so pytest computes them too.
"""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import pytest
from benchmarks.evidence import page
from benchmarks.evidence.asking import Answer, answer_to, names_of, right_answer
from benchmarks.evidence.peers import PEERS, SOFTCAL, Peer, installed_version
from benchmarks.evidence.questions import CONTROL, QUESTIONS, SOFT, Question
from benchmarks.evidence.rejection_section import verdict as judged_by_rates
from benchmarks.evidence.wrong_numbers import block, row, verdict

PAGE = (Path(__file__).parent.parent / "docs" / "evidence.md").read_text(encoding="utf-8")
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


def test_page_lists_every_library() -> None:
    ran = PAGE.partition("## Setup")[2]
    for peer in PEERS:
        assert f"| {peer.name} | " in ran
    assert CONTROL.title in PAGE
