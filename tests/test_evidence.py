"""The page of evidence says what today's code says; the other libraries' lines, where installed.

Its right answers are doctests, so pytest computes them too.
"""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import pytest
from benchmarks.evidence.asking import Answer, answer_to, names_of, right_answer
from benchmarks.evidence.peers import PEERS, SOFTCAL, Peer, installed_version
from benchmarks.evidence.questions import CONTROL, QUESTIONS, SOFT, Question
from benchmarks.evidence.rejection_section import verdict as judged_by_rates
from benchmarks.evidence.wrong_numbers import block, row, verdict

PAGE = (Path(__file__).parent.parent / "docs" / "evidence.md").read_text(encoding="utf-8")
QUICK = [question for question in QUESTIONS if "20_000_000" not in question.setup]
# Those the tests have anyway; all the rest answer `make evidence`.
HERE = [peer for peer in PEERS if peer.name in ("scikit-learn", "relplot", "netcal")]


def part_of(question: Question) -> str:
    """Cut out what the page says about a question."""
    return PAGE.partition(f". {question.title}\n")[2].partition("\n#")[0]


def lines_of(peer: Peer, questions: list[Question]) -> dict[str, list[str]]:
    names = names_of(peer)
    lines = {}
    for question in questions:
        call = question.ours if peer is SOFTCAL else question.calls.get(peer.name)
        if call:
            found = answer_to(question, call, names)
            label = f"{peer.name} {installed_version(peer.name)}"
            lines[question.title] = row(label, call, question, right_answer(question), found)
    return lines


@pytest.mark.parametrize("question", QUICK, ids=lambda question: question.title)
def test_the_page_shows_the_code_and_its_right_answer(question: Question) -> None:
    assert block(question) in part_of(question)


@pytest.mark.parametrize("peer", [SOFTCAL, *HERE], ids=lambda peer: peer.name)
def test_the_page_shows_what_is_answered_today(peer: Peer) -> None:
    for title, line in lines_of(peer, QUICK).items():
        question = next(question for question in QUICK if question.title == title)
        assert f"| {' | '.join(cell.replace('|', '/') for cell in line)} |" in part_of(question)


def test_softcal_is_right_or_refuses() -> None:
    """Of bad input the right thing is to refuse it, of the rest a right number is wanted."""
    for title, line in lines_of(SOFTCAL, QUICK).items():
        bad = next(question for question in QUICK if question.title == title).bad
        assert line[3] == ("refuses" if bad else "right"), title


@pytest.mark.parametrize(
    ("question", "found", "words"),
    [
        (SOFT, Answer(0.0770806465), "right"),
        (SOFT, Answer(0.0770816), "right to 1e-06"),
        (SOFT, Answer(0.0367959), "**off by 0.04**"),
        (SOFT, Answer(None, "ValueError: no"), "refuses"),
        (SOFT, Answer(math.nan), "answers nan"),
    ],
)
def test_the_verdict_follows_from_the_number(question: Question, found: Answer, words: str) -> None:
    """A library that is mended is called right by the next run."""
    assert verdict(question, right_answer(question), found) == words


def test_bad_input_is_judged_by_what_it_does_to_the_number() -> None:
    bad = next(question for question in QUICK if question.bad and question.right != "np.nan")
    right = right_answer(bad)
    assert verdict(bad, right, Answer(right)) == "unharmed"
    assert verdict(bad, right, Answer(right + 0.25)) == "**silent, off by 0.25**"
    assert verdict(bad, math.nan, Answer(right)) == "**answers without a word**"


@pytest.mark.parametrize(
    ("rate", "words"),
    [(0.05, "right"), (0.0, "**too rarely**"), (1.0, "**rejects the calibrated**")],
)
def test_a_test_is_judged_by_calibrated_soft_labels(rate: Any, words: str) -> None:
    assert judged_by_rates({"soft, calibrated": rate}) == words


def test_every_library_is_on_the_page_whether_it_ran_or_not() -> None:
    ran = PAGE.partition("## How they were run")[2]
    for peer in PEERS:
        assert f"| {peer.name} | " in ran
    assert CONTROL.title in PAGE
