"""Run one library on every question, test, and size of data, in its own process.

    python -m benchmarks.evidence.asking NAME ANSWERS.json

A library that crashes or patches another one cannot change the results of the others.
"""

from __future__ import annotations

import io
import json
import sys
import warnings
from contextlib import redirect_stdout
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.evidence.peers import PEERS, SOFTCAL, Peer, installed_version
from benchmarks.evidence.questions import FORMULA, QUESTIONS, Question

Names = dict[str, Any]


@dataclass(frozen=True)
class Answer:
    """The result of a call: a number or the text of an error, and a warning."""

    number: float | None
    error: str = ""
    warned: str = ""
    # Its answer to the same input without the fault.
    to_good: float | None = None


def names_of(peer: Peer) -> Names:
    """Import a library, and name its ECE `ece`."""
    names: Names = {"np": np}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        exec(peer.imports, names)  # noqa: S102 - the page shows this text
    if peer.ece:
        names["ece"] = eval(f"lambda y, p: {peer.ece}", names)  # noqa: S307
    return names


def right_answer(question: Question) -> float:
    """Return the right answer, by arithmetic alone."""
    return float(eval(question.right, made(question, {})))  # noqa: S307


def made(question: Question, names: Names) -> Names:
    """Return a question's data together with the names of a library."""
    both = dict(names)
    exec(FORMULA, both)  # noqa: S102
    exec(question.setup, both)  # noqa: S102
    return both


def answer(call: str, names: Names) -> Answer:
    """Run one call and return its result or its error."""
    with warnings.catch_warnings(record=True) as heard, redirect_stdout(io.StringIO()):
        warnings.simplefilter("always")
        try:
            number = as_number(eval(call, names))  # noqa: S307
        except Exception as error:  # an error of a library is its answer
            return Answer(None, f"{type(error).__name__}: {' '.join(str(error).split())}")
    said = [w for w in heard if issubclass(w.category, UserWarning | RuntimeWarning)]
    return Answer(number, warned=str(said[0].message) if said else "")


def answer_to(question: Question, call: str, names: Names) -> Answer:
    """Ask one question; if its input is bad, also ask about the input without the fault."""
    both = made(question, names)
    found = answer(call, both)
    if found.number is None or not question.good:
        return found
    return replace(found, to_good=answer(f"ece({question.good})", both).number)


def as_number(result: Any) -> float:
    """Return the number that a library returned; a whole curve is not a number."""
    return float(np.squeeze(np.asarray(result)))


def ask(peer: Peer, names: Names) -> dict[str, Answer]:
    """Ask every question meant for this library."""
    found = {}
    for question in QUESTIONS:
        call = question.ours if peer is SOFTCAL else question.calls.get(peer.name)
        if call:
            found[question.title] = answer_to(question, call, names)
    return found


def main() -> None:
    from benchmarks.evidence.rejections import rejection_rates
    from benchmarks.evidence.timing import times

    name, to = sys.argv[1:]
    peer = next(peer for peer in [SOFTCAL, *PEERS] if peer.name == name)
    result: Names = {"version": installed_version(name)}
    try:
        names = names_of(peer)
    except Exception as error:  # the page shows why it did not run
        # An ImportError ends with the path of a file, which is only of this machine.
        result["missing"] = f"{type(error).__name__}: {str(error).partition(' (/')[0]}"
    else:
        result["answers"] = {title: asdict(said) for title, said in ask(peer, names).items()}
        result["rejections"] = rejection_rates(peer, names)
        result["times"] = times(peer, names)
    Path(to).write_text(json.dumps(result), encoding="utf-8")


if __name__ == "__main__":
    main()
