"""Report each question, the right answer, and what every library returned."""

from __future__ import annotations

import math
import re
from typing import TYPE_CHECKING, Any

from benchmarks.evidence.asking import Answer
from benchmarks.evidence.markdown import code, folded, session, table
from benchmarks.evidence.peers import PEERS
from benchmarks.evidence.questions import CONTROL, FORMULA, QUESTIONS, SOFT, Question

if TYPE_CHECKING:
    from collections.abc import Iterable

LONGEST = 70  # characters of an error shown
ACCIDENTS = ("IndexError", "KeyError", "AttributeError")
DIGITS = 12  # decimals that are not rounding
RULE = (
    " A library should refuse this input. The number below is the result without the fault, and "
    "each library is compared with its own result without the fault."
)
HEAD = ("library", "verdict", "returned", "call")


def number(value: float) -> str:
    """Return seven digits, and 0 for what is rounding only."""
    return f"{round(value, DIGITS) + 0.0:.7g}"


def shortened(text: str) -> str:
    """Return a shorter message, without paths of this machine."""
    text = re.sub(r" \(/.*\)", "", text)
    return text if len(text) <= LONGEST else text[:LONGEST].rstrip() + "…"


def said(answer: Answer) -> str:
    """Return what a library returned, as text."""
    if answer.number is None:
        return shortened(answer.error)
    warned = f" (warns: {shortened(answer.warned)})" if answer.warned else ""
    return number(answer.number) + warned


def verdict(question: Question, right: float, answer: Answer) -> str:
    """Return the verdict on an answer, by its number alone."""
    if answer.number is None:
        return "fails" if answer.error.startswith(ACCIDENTS) else "refuses"
    if math.isnan(answer.number):
        return "returns NaN"
    if question.bad:
        return _of_bad_input(question, right, answer)
    away = abs(answer.number - right)
    if away > question.within:
        return f"**off by {away:.2g}**"
    return "right" if away < 1e-9 or question.within > 1e-3 else f"right to {away:.0e}"


def _of_bad_input(question: Question, right: float, answer: Answer) -> str:
    """Return how far the fault moved the library's own number; its bins do not matter here."""
    assert answer.number is not None  # noqa: S101
    good = right if answer.to_good is None else answer.to_good
    if math.isnan(good):
        return "**silent**"
    away = abs(answer.number - good)
    return "unaffected" if away <= question.within else f"**silent, off by {away:.2g}**"


def row(name: str, call: str, question: Question, right: float, answer: Answer) -> list[str]:
    """Return the line of one library."""
    return [name, verdict(question, right, answer), said(answer), code(call)]


def rows_of(question: Question, found: dict[str, Any], right: dict[str, float]) -> list[list[str]]:
    """Return a question's lines: softcal first, then every library that ran."""
    lines = []
    for name, call in {"softcal": question.ours, **question.calls}.items():
        answers = found[name].get("answers", {})
        if call and question.title in answers:
            answer = Answer(**answers[question.title])
            label = f"{name} {found[name]['version']}"
            lines.append(row(label, call, question, right[question.title], answer))
    return lines


def block(question: Question, right: float) -> str:
    """Return a question's code and its right answer, as the tests run it."""
    return session(question.setup, f"print(f'{{{question.right}:.7g}}')", number(right))


def section(found: dict[str, Any], right: dict[str, float]) -> str:
    """Return all questions, each folded."""
    parts = [
        "## Correctness\n",
        "Each question has code that creates labels y and predictions p, the right answer from a "
        "short formula, and the result of every library. *Refuses* means an error, and *fails* an "
        "accidental error such as `IndexError`. *Off by* is the distance from the right answer. "
        "The same formula gives the ECE of 0/1 labels and the SMECE of soft labels:\n",
        session(FORMULA),
    ]
    for place, question in enumerate(QUESTIONS, 1):
        lines = [
            question.words + (RULE if question.good else "") + "\n",
            block(question, right[question.title]),
            "",
            table(HEAD, rows_of(question, found, right)),
        ]
        parts += ["", folded(f"{place}. {question.title}", "\n".join(lines))]
    return "\n".join(parts)


def how_imported() -> str:
    """Return what to import before a call can be copied."""
    lines = [f"# {peer.name}\n{peer.imports}" for peer in PEERS]
    return "```text\nimport numpy as np\n\n" + "\n\n".join(lines) + "\n```"


def verdicts(
    name: str, questions: Iterable[Question], found: dict[str, Any], right: dict[str, float]
) -> list[str]:
    """Return one library's verdicts on the questions it was asked."""
    label = f"{name} {found[name]['version']}"
    rows = (line for question in questions for line in rows_of(question, found, right))
    return [words for library, words, *_ in rows if library == label]


def tally(
    found: dict[str, Any], right: dict[str, float], *, soft: bool, ours: bool = False
) -> dict[str, list[str]]:
    """Sort the answers by verdict: to the soft-label question, or to all others."""
    kinds: dict[str, list[str]] = {"right": [], "refuses": [], "off": []}
    for question in QUESTIONS:
        if question is not CONTROL and (question is SOFT) == soft:
            for name, words, *_ in rows_of(question, found, right):
                if name.startswith("softcal") == ours:
                    kinds[kind_of(words)].append(name)
    return kinds


def kind_of(words: str) -> str:
    """Return the kind of a verdict."""
    if "**" in words:
        return "off"
    return "refuses" if words in ("refuses", "fails") else "right"
