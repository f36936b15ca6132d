"""Each question with the right answer, and what softcal and the libraries answered."""

from __future__ import annotations

import math
import re
from typing import Any

from benchmarks.evidence.asking import Answer, right_answer
from benchmarks.evidence.markdown import code, session, table
from benchmarks.evidence.peers import PEERS
from benchmarks.evidence.questions import CONTROL, FORMULA, QUESTIONS, SOFT, Question

LONGEST = 70  # letters of an error shown
ACCIDENTS = ("IndexError", "KeyError", "AttributeError")
DIGITS = 12  # decimals that are not rounding
RULE = (
    " The right thing is to refuse; the number below is that without the fault, and each library "
    "is held against its own answer to that."
)


def number(value: float) -> str:
    """Write seven digits, and what is rounding only as 0."""
    return f"{round(value, DIGITS) + 0.0:.7g}"


def shortened(text: str) -> str:
    """Cut a message, and leave out where on this machine a file is."""
    text = re.sub(r" \(/.*\)", "", text)
    return text if len(text) <= LONGEST else text[:LONGEST].rstrip() + "…"


def said(answer: Answer) -> str:
    """Write what came back."""
    if answer.number is None:
        return shortened(answer.error)
    warned = f" (warns: {shortened(answer.warned)})" if answer.warned else ""
    return number(answer.number) + warned


def verdict(question: Question, right: float, answer: Answer) -> str:
    """Judge an answer by the numbers alone."""
    if answer.number is None:
        return "fails" if answer.error.startswith(ACCIDENTS) else "refuses"
    if math.isnan(answer.number):
        return "answers nan"
    if question.bad:
        return _of_bad_input(question, right, answer)
    away = abs(answer.number - right)
    if away > question.within:
        return f"**off by {away:.2g}**"
    return "right" if away < 1e-9 or question.within > 1e-3 else f"right to {away:.0e}"


def _of_bad_input(question: Question, right: float, answer: Answer) -> str:
    """Judge by how far the bad part moved the library's own number: its bins are not at issue."""
    assert answer.number is not None  # noqa: S101
    good = right if answer.to_good is None else answer.to_good
    if math.isnan(good):
        return "**answers without a word**"
    away = abs(answer.number - good)
    return "unharmed" if away <= question.within else f"**silent, off by {away:.2g}**"


def row(name: str, call: str, question: Question, right: float, answer: Answer) -> list[str]:
    """Give the line of one library."""
    return [name, code(call), said(answer), verdict(question, right, answer)]


def rows_of(question: Question, found: dict[str, Any]) -> list[list[str]]:
    """Give a question's lines: softcal, then the libraries that could be asked."""
    right = right_answer(question)
    lines = []
    for name, call in {"softcal": question.ours, **question.calls}.items():
        answers = found[name].get("answers", {})
        if call and question.title in answers:
            answer = Answer(**answers[question.title])
            lines.append(row(f"{name} {found[name]['version']}", call, question, right, answer))
    return lines


def right_line(question: Question) -> tuple[str, str]:
    """Give the code of the right answer and its value, both as shown."""
    return f"print(f'{{{question.right}:.7g}}')", number(right_answer(question))


def block(question: Question) -> str:
    """Give a question's code, as the tests run it."""
    return session(question.setup, *right_line(question))


def section(found: dict[str, Any]) -> str:
    """Write all questions."""
    parts = [
        "## Wrong numbers\n",
        "Each question is a piece of code that makes y (labels) and p (predictions), the right "
        "answer by a formula of two lines, and what came back when the call was run. Copy any of "
        "them. *Refuses* is an error, *fails* one that looks like an accident, *off by* how far a "
        "number is from the right one. The binned error is the same formula for 0/1 labels (ECE) "
        "and soft ones (SMECE):\n",
        session(FORMULA),
    ]
    for place, question in enumerate(QUESTIONS, 1):
        parts += [
            f"\n### {place}. {question.title}\n",
            question.words + (RULE if question.good else "") + "\n",
            block(question),
            "",
            table(("library", "call", "returned", "verdict"), rows_of(question, found)),
        ]
    return "\n".join(parts)


def how_imported() -> str:
    """Write what to import before a call can be copied."""
    lines = [f"# {peer.name}\n{peer.imports}" for peer in PEERS]
    return "```text\n" + "\n\n".join(lines) + "\n```"


def tally(found: dict[str, Any], *, soft: bool, ours: bool = False) -> dict[str, list[str]]:
    """Sort the answers by verdict, to the question on soft labels or to all the traps."""
    kinds: dict[str, list[str]] = {"right": [], "refuses": [], "off": []}
    for question in QUESTIONS:
        if question is not CONTROL and (question is SOFT) == soft:
            for name, _, _, words in rows_of(question, found):
                if name.startswith("softcal") == ours:
                    kinds[kind_of(words)].append(name)
    return kinds


def kind_of(words: str) -> str:
    """Sort a verdict."""
    if "**" in words:
        return "off"
    return "refuses" if words in ("refuses", "fails") else "right"
