"""Results: typed numbers with a layout. Text, JSON, HTML, and frames are the same for all of them.

A card is a frozen dataclass. `parts` says how it is laid out: sentences, and tables whose columns
are format strings, such as `"{low:.3f} to {high:.3f}"`, of the fields of each row.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, fields, is_dataclass
from string import Formatter
from typing import TYPE_CHECKING, Any, Literal, NamedTuple, TypeAlias

from softcal._display import as_html, as_text, counted, error_name, percent, printable

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from softcal.table.tableset import TableSet

Style: TypeAlias = Literal["plain", "strong", "quiet", "good", "bad", "unsure"]


class Column(NamedTuple):
    """A column of a table: its title and its cells as format strings of a row's fields.

    Besides the usual ones, there are the formats p (a p-value), % (a level), digits (three, and
    more if it would look like 0), limit (the same with a sign), and name. A cell with a missing or
    infinite number is a dash. A title that is a name may be folded.
    """

    title: str
    text: str
    bold: bool = False
    named: bool = False


def calling(error: str, columns: Sequence[Column]) -> tuple[Column, ...]:
    """Return columns whose titles call the error by its name; names from the data stay."""
    return tuple(
        each if each.named else each._replace(title=each.title.replace("SMECE", error))
        for each in columns
    )


class Grid(NamedTuple):
    """A table with one row, or one column if it is turned, for each of several results."""

    columns: Sequence[Column]
    rows: Sequence[Any]
    title: str = ""
    turned: bool = False

    def kept(self) -> list[Column]:
        """Return the columns of which a row has a value."""
        return [
            column
            for k, column in enumerate(self.columns)
            if not k or any(cell(column.text, row) != "-" for row in self.rows)
        ]

    def cells(self) -> tuple[list[str], list[list[str]]]:
        """Return the header and the rows as text. Titles of columns are those of the first row."""
        kept = self.kept()
        header = [cell(column.title, self.rows[0]) for column in kept]
        lines = [header, *([cell(column.text, row) for column in kept] for row in self.rows)]
        if self.turned:
            lines = [list(line) for line in zip(*lines, strict=True)]
        return lines[0], lines[1:]


class Numbered(NamedTuple):
    """A row of any number of values: its name, and the fields m0, m1, ..."""

    name: Any
    values: Sequence[Any]

    def __getattr__(self, field: str) -> Any:
        if not field.removeprefix("m").isdecimal():
            raise AttributeError(field)
        return self.values[int(field.removeprefix("m"))]


class Said(NamedTuple):
    """A sentence."""

    text: str
    style: Style = "plain"


Part: TypeAlias = Grid | Said


class Card:
    """Mixin of results: how they are printed, and given away."""

    def parts(self) -> Iterator[Part]:
        """Yield the sentences and tables of the result."""
        raise NotImplementedError

    def rows(self) -> Sequence[Any]:
        """Return the results that are the rows of `to_frame`."""
        return [self]

    def to_dict(self) -> dict[str, Any]:
        """Return the numbers as dicts and lists, with None for numbers that are not finite."""
        found: dict[str, Any] = plain(self)
        return found

    def to_frame(self) -> Any:
        """Return one row of numbers per model and segment, or date, as a pandas frame."""
        import pandas as pd

        numbers = [plain(row) for row in self.rows()]
        single = [
            {k: v for k, v in row.items() if not isinstance(v, list | dict)} for row in numbers
        ]
        return pd.DataFrame(single)

    def __str__(self) -> str:
        return "\n\n".join(
            as_text(part.text, [], [])
            if isinstance(part, Said)
            else as_text(part.title, *map(_flat, part.cells()))
            for part in self.parts()
        )

    def _repr_html_(self) -> str:
        return "".join(
            as_html(part.text, [], [])
            if isinstance(part, Said)
            else as_html(part.title, *map(_flat, part.cells()))
            for part in self.parts()
        )


def _flat(part: Any) -> Any:
    """Return cells without line ends, which are for headers of narrow columns."""
    return [_flat(each) if isinstance(each, list) else each.replace("\n", " ") for each in part]


@dataclass(frozen=True, kw_only=True)
class OfTables(Card):
    """What the results of a set of tables have in common: where the numbers come from.

    Labels are all 0 or 1 if `hard_labels`.
    """

    source: str
    n: int
    rows_without_weight: int | None
    rows_dropped: int | None
    bins: int
    label: str
    hard_labels: bool
    weight: str | None
    group: str | None
    groups: int | None
    softcal: str
    notes: tuple[str, ...] = ()

    @property
    def error(self) -> str:
        """What the error is called."""
        return error_name(hard_labels=self.hard_labels)

    @property
    def origin(self) -> str:
        """The source and its rows."""
        rows = _rows(self.n, self.rows_without_weight, self.rows_dropped)
        return printable(f"{self.source}: {rows}")

    def heading(self, *more: str) -> str:
        """Return the title of the result: its source, rows, labels, bins, and weights."""
        weighted = f"weighted by {self.weight}" if self.weight else ""
        grouped = f"{counted(self.groups, 'group')} ({self.group})" if self.groups else ""
        parts = [f"label {self.label}", *more, counted(self.bins, "bin"), weighted, grouped]
        return ", ".join([self.origin, *map(printable, filter(None, parts))])


def rows_text(tables: TableSet) -> str:
    """Write the number of rows, how many more have weight 0, and how many were dropped."""
    return _rows(tables.n, tables.about.rows_without_weight, tables.about.rows_dropped)


def _rows(n: int, weightless: int | None, dropped: int | None) -> str:
    said = [f"{weightless:,} more with weight 0"] if weightless else []
    said += [] if dropped is None else [f"{dropped:,} dropped"]
    return counted(n, "row") + (f" ({'; '.join(said)})" if said else "")


def provenance(tables: TableSet, source: str) -> dict[str, Any]:
    """Return the fields of `OfTables` of a set."""
    from softcal import __version__

    about = tables.about
    weightless = None if about.weight is None else about.rows_without_weight
    return {
        "source": source, "n": tables.n, "rows_without_weight": weightless,
        "rows_dropped": about.rows_dropped, "bins": len(tables.bins), "label": about.label,
        "hard_labels": tables.has_hard_labels, "weight": about.weight, "group": about.group,
        "groups": None if about.group is None else len(tables.axes.owner), "softcal": __version__,
    }  # fmt: skip


def plain(value: Any) -> Any:
    """Return dataclasses, named tuples, and mappings as dicts, and infinite numbers as None."""
    if is_dataclass(value) and not isinstance(value, type):
        return {field.name: plain(getattr(value, field.name)) for field in fields(value)}
    if isinstance(value, dict):
        return {key: plain(item) for key, item in value.items()}
    if hasattr(value, "_asdict"):
        return plain(value._asdict())
    if isinstance(value, list | tuple):
        return [plain(item) for item in value]
    if hasattr(value, "tolist"):  # NumPy
        return plain(value.tolist())
    return None if isinstance(value, float) and not math.isfinite(value) else value


class _MissingError(Exception):
    """A cell has no number."""


class _Cell(Formatter):
    """Formats the fields of a row."""

    def get_value(self, key: int | str, args: Sequence[Any], kwargs: Mapping[str, Any]) -> Any:
        del kwargs
        return getattr(args[0], str(key))

    def format_field(self, value: Any, format_spec: str) -> str:
        if value is None or (isinstance(value, float) and not math.isfinite(value)):
            raise _MissingError
        if format_spec == "name":
            return printable(str(value))
        if format_spec == "p":
            return chance(value)
        if format_spec == "%":
            return percent(value)
        if format_spec == "digits":
            return limit(value)
        if format_spec == "limit":
            shown = limit(abs(value) if abs(value) >= _NOTHING else 0.0)
            return ("-" if value < 0 and float(shown) else "+") + shown
        return format(value, format_spec)


def cell(text: str, row: Any) -> str:
    """Return a format string with the fields of a row; a dash if a number is missing."""
    try:
        return _CELL.format(text, row)
    except _MissingError:
        return "-"


_CELL = _Cell()
_NOTHING = 5e-6  # a difference that is shown as 0


def limit(value: float, digits: int = 3) -> str:
    """Write the end of an interval, with more digits if it would be shown as 0 but is not.

    >>> limit(0.0123), limit(0.0), limit(0.00031)
    ('0.012', '0.000', '0.0003')
    """
    while 1e-6 < abs(value) < 0.5 * 10**-digits:
        digits += 1
    return f"{value:.{digits}f}"


def chance(pvalue: float) -> str:
    """Write a p-value to three digits, never as 0.

    >>> chance(0.0416), chance(1e-9)
    ('0.042', '<0.001')
    """
    return "<0.001" if pvalue < 0.001 else f"{pvalue:.3f}"
