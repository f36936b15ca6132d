"""What the columns of files hold, which roles they could have, and commands to type next."""

from __future__ import annotations

import json
import os
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from softcal import __version__
from softcal._display import counted, ends, option_of, printable, quoted
from softcal._io import place_of
from softcal.cards.card import Card, Column, Grid, Said
from softcal.scanning.inspection import classes_text

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from softcal.cards.card import Part
    from softcal.scanning.inspection import Inspection, Profile, Suggestion

READING = ("sep", "decimal", "encoding", "input_format", "sheet", "records")
"""The options that say how to read files."""

_SHOWN = {"percent": "pred", "logit": "pred", "logprob": "pred", "positive": "label"}
_ORDER = ("--label", "--pred", "--label-columns", "--vote-columns", "--pred-columns", "--votes")
_MOST_NAMES, _LONGEST, _WIDTH = 6, 24, 75


@dataclass(frozen=True, kw_only=True)
class InspectedColumn:
    """A column: its values, and the options that could name it, with reasons.

    The number of different values is exact up to 20, else an estimate. Only numbers have a lowest
    and a highest value.
    """

    name: str
    kind: str
    filled: int
    missing: int
    different: int
    examples: list[str]
    low: float | None
    high: float | None
    whole: bool
    percent: bool
    roles: dict[str, str]

    @property
    def span(self) -> str | None:
        """The range of numbers."""
        if self.low is None or self.high is None:
            return None
        return f"{_short(str(self.low))} to {_short(str(self.high))}"

    @property
    def values(self) -> str:
        """The number of different values; an estimate has two digits."""
        about = 20 < self.different < 0.98 * self.filled
        return f"~{float(f'{self.different:.2g}'):,.0f}" if about else f"{self.different:,}"

    @property
    def shown_examples(self) -> str:
        """The most frequent values."""
        return ", ".join(map(_short, self.examples))

    @property
    def shown_missing(self) -> int | None:
        """The number of missing values, if there are any."""
        return self.missing or None


@dataclass(frozen=True, kw_only=True)
class NextCommand:
    """A command to type next, also as lines that a shell joins, and the reasons for its options."""

    command: str
    lines: list[str]
    reasons: list[str]


@dataclass(frozen=True, kw_only=True)
class PossibleRole:
    """An option, the columns that it could name, or patterns of columns, and the reason."""

    option: str
    reason: str
    columns: list[str]

    @property
    def names(self) -> str:
        """The first columns, and how many more there are."""
        return _few(self.columns)


_COLUMNS = (
    Column("column", "{name:name}"), Column("type", "{kind:name}"), Column("range", "{span:name}"),
    Column("values", "{values}"), Column("examples", "{shown_examples:name}"),
    Column("missing", "{shown_missing:,}"),
)  # fmt: skip
_ROLES = (
    Column("could be", "{option}"), Column("column", "{names:name}"),
    Column("because", "{reason:name}"),
)  # fmt: skip


@dataclass(frozen=True, kw_only=True)
class InspectionCard(Card):
    """The columns of files, the columns of many classes with their option, and what to type next.

    `others` are the names of columns that were not inspected.
    """

    source: str
    n: int
    columns: list[InspectedColumn]
    others: list[str]
    classes: dict[str, str]
    reading: str
    roles: list[PossibleRole]
    suggestions: list[NextCommand]
    softcal: str = __version__
    notes: tuple[str, ...] = ()

    @staticmethod
    def of(data: Sequence[str], found: Inspection) -> InspectionCard:
        """Return what the columns hold, and the commands for the files as they were named."""
        reading = (f"{option_of(k)} {quoted(v)}" for k, v in _reading(found).items())
        source = found.place if len(data) == 1 else f"{len(data)} sources"
        return InspectionCard(
            source=source, n=found.rows, columns=[_column(each) for each in found.columns],
            others=found.names[len(found.columns) :],
            classes={spec: option_of(option) for spec, (option, _) in found.classes.items()},
            reading=" ".join(reading), roles=_roles(found),
            suggestions=[_next(data, found, each) for each in found.suggestions],
        )  # fmt: skip

    def parts(self) -> Iterator[Part]:
        """Yield the columns, the roles that they could have, and the commands."""
        several = [column for column in self.columns if column.different > 1]
        first, left_out, last = ends(several)
        total = len(self.columns) + len(self.others)
        title = f"{self.source}: {counted(self.n, 'row')}, {counted(total, 'column')}"
        title += f", read with {self.reading}" if self.reading else ""
        title += f", {left_out:,} in the middle not shown" if left_out else ""
        yield Grid(_COLUMNS, [*first, *last], printable(title)) if several else Said(title)
        rest = {
            "One value in all rows": [c.name for c in self.columns if c.different == 1],
            "No value": [c.name for c in self.columns if not c.filled],
            "Lists and objects": [c.name for c in self.columns if c.kind in ("list", "object")],
            "Not inspected": self.others,
        }
        for what, names in rest.items():
            if names:
                yield Said(printable(f"{what}: {_few(names)}."))
        if self.roles:
            yield Grid(_ROLES, self.roles, "What the columns could be")
        for k, each in enumerate(self.suggestions):
            yield Said("Or:" if k else "To try next, if the columns have these roles:", "strong")
            yield Said("\n".join(f"  {line}" for line in each.lines))
            yield Said(printable(" ".join(f"{reason}." for reason in each.reasons)), "quiet")
        if not self.suggestions:
            yield Said("No command to suggest: no two columns look like a label and a prediction.")

    def rows(self) -> list[InspectedColumn]:
        """Return the columns."""
        return self.columns


def toml_of(data: Sequence[str], found: Inspection, folder: Path) -> str:
    """Return the first suggestion as options of a TOML file in a folder, the others as comments."""
    lines = ["# Options about the data. Use: softcal score --data FILE. Check each of them."]
    source = [os.path.relpath(path, folder.resolve()) for path in data]
    for k, each in enumerate(found.suggestions):
        what = "Another suggestion" if k else "Suggested"
        lines += ["", f"# {what}, for softcal {each.command}:"]
        lines += [f"#   {printable(reason)}" for reason in each.reasons]
        for field, value in ({"source": source} | each.options | _reading(found)).items():
            text = json.dumps(value, ensure_ascii=False)
            text = "".join(c if c.isprintable() else f"\\U{ord(c):08x}" for c in text)
            lines.append(f"{'# ' if k else ''}{field.replace('_', '-')} = {text}")
    return "\n".join(lines) + "\n"


def _next(data: Sequence[str], found: Inspection, each: Suggestion) -> NextCommand:
    """Return a command, quoted for a shell. A line may end between options."""
    parts = ["softcal", each.command, *(quoted(place_of(Path(path))) for path in data)]
    for field, value in (each.options | _reading(found)).items():
        several = value if isinstance(value, list) else [value]
        option = option_of(field)
        parts += [option if one is True else f"{option} {quoted(str(one))}" for one in several]
    lines = [""]
    for part in parts:
        if lines[-1] and len(lines[-1]) + len(part) > _WIDTH:
            lines[-1] += " \\"
            lines.append("   ")
        lines[-1] += f" {part}" if lines[-1] else part
    return NextCommand(command=" ".join(parts), lines=lines, reasons=each.reasons)


def _reading(found: Inspection) -> dict[str, Any]:
    """Return the options that say how to read the files."""
    files = {field: getattr(found.files, field.removeprefix("input_")) for field in READING}
    given = {field: value for field, value in files.items() if value not in (None, ".")}
    return given | ({"sep": "tab"} if given.get("sep") == "\t" else {})


def _column(found: Profile) -> InspectedColumn:
    own = found._asdict() | {
        "examples": found.examples[:3],
        "roles": {_option(role): reason for role, reason in found.roles},
    }
    return InspectedColumn(**own)


def _short(text: str) -> str:
    """Return a number to four digits, and the start of a long text."""
    with suppress(ValueError):
        number = float(text)
        return text.removesuffix(".0") if number == round(number, 3) else f"{number:.4g}"
    return text if len(text) <= _LONGEST else f"{text[: _LONGEST - 3]}..."


def _option(role: str) -> str:
    """Return the option of a role; a scale is one of predictions."""
    return option_of(_SHOWN.get(role, role))


def _few(names: Sequence[str]) -> str:
    more = f", and {len(names) - _MOST_NAMES} more" if len(names) > _MOST_NAMES else ""
    return ", ".join(names[:_MOST_NAMES]) + more


def _roles(found: Inspection) -> list[PossibleRole]:
    """Return each option and reason, in the order of the options."""
    grouped: dict[tuple[str, str], list[str]] = {}
    for spec, (option, names) in found.classes.items():
        grouped.setdefault((_option(option), classes_text(option, names)), []).append(spec)
    inside = {name for _, names in found.classes.values() for name in names}
    for column in found.columns:
        for option, reason in column.roles:
            if column.name not in inside or option in ("label", "pred"):
                grouped.setdefault((_option(option), reason), []).append(column.name)
    roles = [PossibleRole(option=o, reason=r, columns=names) for (o, r), names in grouped.items()]
    return sorted(roles, key=lambda each: (*_ORDER, each.option).index(each.option))
