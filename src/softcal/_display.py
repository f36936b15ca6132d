"""Render results as text and HTML, and escape names that come from data."""

from __future__ import annotations

import json
import re
import shlex
from collections.abc import Sequence
from typing import TYPE_CHECKING, TypeVar

_NUMBER = r"-?[\d.]+(?:e[+-]?\d+)?"
RANGE = re.compile(rf"(?P<below>below )?(?P<start>{_NUMBER})(?P<end> to {_NUMBER}| and above)?")
"""The name of a range of numbers, or a number."""


def printable(name: str) -> str:
    r"""Escape the line ends, control characters, and bidirectional characters of a name.

    >>> print(printable("a\nb\x1b[31m"))
    a\nb\x1b[31m
    """
    return "".join(c if c.isprintable() else ascii(c)[1:-1] for c in name)


LONGEST_NAME, HEAD, TAIL = 32, 20, 11  # of a name in a legend, or in a card beside another one


def clipped(name: str) -> str:
    """Leave out the middle of a long name, and escape it as `printable` does.

    >>> clipped("resnet_152_finetuned_on_imagenet_and_radiology_reports")
    'resnet_152_finetuned…ogy_reports'
    """
    name = printable(name)
    return name if len(name) <= LONGEST_NAME else f"{name[:HEAD]}…{name[-TAIL:]}"


def error_name(*, hard_labels: bool) -> str:
    """Return what the calibration error is called, which depends on the labels of all models.

    >>> error_name(hard_labels=True), error_name(hard_labels=False)
    ('ECE', 'SMECE')
    """
    return "ECE" if hard_labels else "SMECE"


ARGUMENTS = {
    "pred_scale": "y_prob=Column(..., scale={})",
    "label_scale": "y_true=Column(..., scale={})",
    "classes:pred_scale": "y_prob=Classes(..., scale={})",
    "classes:label_scale": "y_true=Classes(..., scale={})",
    "word:positive": "y_true=Column(..., positive={})",
    "sep": "Files(..., sep={})",
    "decimal": "Files(..., decimal={})",
    "encoding": "Files(..., encoding={})",
    "input_format": "Files(..., format={})",
    "sheet": "Files(..., sheet={})",
    "records": "Files(..., records={})",
    "raters": "RawVotes(..., raters={})",
    "aggregate": "RawVotes(..., aggregate={})",
    "allow_repeated": "RawVotes(..., allow_repeated={})",
    "drop_unmatched": "RawVotes(..., drop_unmatched={})",
    "models:drop_unmatched": "Long(..., drop_unmatched={})",
    "classes": "Classes(..., names=[...])",
    "ordered": "Classes(..., ordered={})",
    "epochs": "Long(..., epochs={})",
    "day_format": "Days(..., format={})",
}
"""How Python states an option of the command line, where it is not a keyword of the same name.

The option is what follows a colon.
"""


def keyword(name: str, value: str | bool = True) -> str:  # noqa: FBT001, FBT002
    """Return an argument as messages show it; the command line replaces it by its option.

    >>> keyword("sep", ";"), keyword("drop_missing")
    ('Files(..., sep=";")', 'drop_missing=True')
    """
    shown = json.dumps(value, ensure_ascii=False) if isinstance(value, str) else value
    return ARGUMENTS.get(name, f"{name}={{}}").format(shown)


def option_of(field: str) -> str:
    """Return the option of the command line with the name of a field.

    >>> option_of("drop_missing")
    '--drop-missing'
    """
    return "--data" if field == "data_file" else "--" + field.replace("_", "-")


def did_you_mean(name: str, known: Sequence[object]) -> str:
    """Return a question with the known name most similar to another; empty if none is similar.

    >>> did_you_mean("prise", ["label", "price"])
    " Did you mean 'price'?"
    """
    from difflib import get_close_matches  # here, because it is rarely needed

    same = {str(each).casefold(): str(each) for each in reversed(known)}
    close = get_close_matches(str(name).casefold(), same, 1, cutoff=0.7)
    return f" Did you mean {same[close[0]]!r}?" if close else ""


def quoted(word: str) -> str:
    """Quote a word for a shell; characters that do not print are escaped, as bash reads them."""
    if word.isprintable():
        return shlex.quote(word)
    escaped = (c if c.isprintable() and c not in "'\\" else f"\\U{ord(c):08x}" for c in word)
    return f"$'{''.join(escaped)}'"


_ENDS = 12

T = TypeVar("T")

_WIDTH = 80

Shown = tuple[str, Sequence[str], Sequence[Sequence[str]]]
"""Title, header, and rows. A result of one line has a title only."""


class Printed:
    """Mixin: print what `_shown` returns as text, and as HTML in notebooks."""

    __slots__ = ()

    if TYPE_CHECKING:

        def _shown(self) -> Shown: ...

    def _note(self) -> str:
        """Return the note below the table."""
        return ""

    def __str__(self) -> str:
        return as_text(*self._shown(), self._note())

    def _repr_html_(self) -> str:
        return as_html(*self._shown(), self._note())


def percent(level: float) -> str:
    """Format a level as a percentage.

    >>> percent(0.95)
    '95%'
    """
    return f"{100 * level:g}%"


def as_text(
    title: str, header: Sequence[str], rows: Sequence[Sequence[str]], note: str = ""
) -> str:
    """Return right-aligned columns under a title and above a note; both are wrapped."""
    lines = [header, *rows] if header else []
    widths = [max(len(line[k]) for line in lines) for k in range(len(header))]
    table = (
        "   ".join(f"{cell:>{width}}" for cell, width in zip(line, widths, strict=True)).rstrip()
        for line in lines
    )
    return "\n".join([*_wrapped(title), *table, *_wrapped(note)])


def _wrapped(text: str) -> list[str]:
    """Split text into lines of at most 80 characters, unless a name is longer."""
    from textwrap import wrap  # here, to keep `import softcal` fast

    return [
        part
        for line in text.splitlines()
        for part in wrap(line, _WIDTH, break_long_words=False, break_on_hyphens=False)
    ]


_TABLE = "text-align: right; border-spacing: 1em 0.1em; font-variant-numeric: tabular-nums"
_LEFT = "text-align: left; white-space: pre"


def as_html(
    title: str, header: Sequence[str], rows: Sequence[Sequence[str]], note: str = ""
) -> str:
    """Return an HTML table of the same content, with every string escaped."""
    from html import escape

    paragraphs = ["<br>".join(escape(line) for line in text.splitlines()) for text in (title, note)]
    below = f"<p>{paragraphs[1]}</p>" if note else ""
    if not header:
        return f"<p>{paragraphs[0]}</p>{below}"

    def line(cells: Sequence[str], tag: str) -> str:
        first, *others = map(escape, cells)
        right = "".join(f"<{tag}>{cell}</{tag}>" for cell in others)
        return f'<tr><{tag} style="{_LEFT}">{first}</{tag}>{right}</tr>'

    return (
        f'<table style="{_TABLE}"><caption style="{_LEFT}">{paragraphs[0]}</caption>'
        f"<thead>{line(header, 'th')}</thead>"
        f"<tbody>{''.join(line(row, 'td') for row in rows)}</tbody></table>{below}"
    )


def signed(value: float) -> str:
    """Format a signed difference to four decimals, or to two digits if those would be 0.

    >>> signed(-0.01234), signed(0.0000123)
    ('-0.0123', '+1.2e-05')
    """
    small = 0 < abs(value) < 0.00005
    return f"{value:+.1e}" if small else f"{value:+.4f}"


def ends(rows: list[T]) -> tuple[list[T], int, list[T]]:
    """Return the first rows of a long list, the number left out, and the last rows."""
    left_out = len(rows) - 2 * _ENDS
    if left_out <= 1:
        return rows, 0, []
    return rows[:_ENDS], left_out, rows[-_ENDS:]


def shortened(rows: list[list[str]]) -> list[list[str]]:
    """Return the rows of a table; in a long one, a single row stands for those in the middle."""
    first, left_out, last = ends(rows)
    if not left_out:
        return rows
    return [*first, [f"... {left_out:,} more", *[""] * (len(rows[0]) - 1)], *last]


def counted(number: int, noun: str) -> str:
    """Write a number with its noun, which is singular for 1.

    >>> counted(1, "row"), counted(1377, "row")
    ('1 row', '1,377 rows')
    """
    return f"{number:,} {noun}{'' if number == 1 else 's'}"
