"""The error of parts of the rows: segments, classes, and thresholds between ordered classes."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Literal, NamedTuple

from softcal.inference.smece import smece_interval
from softcal.table.tableset import MISSING

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from softcal.inference.smece import Interval
    from softcal.table.reliability import Reliability
    from softcal.table.tableset import TableSet


@dataclass(frozen=True, kw_only=True)
class PartScore:
    """A part of the rows with its simultaneous interval, and how it compares with all rows.

    `share` is the mean label.
    """

    value: str
    n: int
    share: float
    smece: float
    debiased: float
    low: float
    high: float
    bias: float
    against: Literal["worse", "better", "unclear"] = "unclear"


class Off(NamedTuple):
    """A segment, class, or threshold whose simultaneous interval of SMECE excludes 0."""

    kind: str  # "segment", "class", or "threshold"
    name: str
    low: float
    high: float
    column: str = ""  # of a segment

    @staticmethod
    def of(kind: str, rows: Iterable[PartScore], column: str = "") -> list[Off]:
        """Return the parts whose intervals exclude 0."""
        named = ((f"{column} = {row.value}" if column else row.value, row) for row in rows)
        return [Off(kind, name, row.low, row.high, column) for name, row in named if row.low > 0]


def segment_scores(
    tables: TableSet, columns: Sequence[str], level: float
) -> dict[str, dict[str, list[PartScore]]]:
    """Return the segments of each column and model, worst first, with simultaneous intervals."""
    found = {
        column: {
            MISSING if value is None else value: segment
            for value, segment in tables.by(column).items()
            if segment.n
        }
        for column in columns
    }
    together = 1 - (1 - level) / max(sum(map(len, found.values())) * len(tables), 1)
    wholes = {model: smece_interval(tables[model], level=level) for model in tables if found}
    return {
        column: {
            model: _worst_first(
                _compared(_part(value, segment[model], together), whole)
                for value, segment in segments.items()
            )
            for model, whole in wholes.items()
        }
        for column, segments in found.items()
    }


def class_scores(
    tables: TableSet, names: Sequence[str], level: float
) -> dict[str, list[PartScore]]:
    """Return the classes or thresholds of each model, worst first, with simultaneous intervals."""
    together = 1 - (1 - level) / max(len(names) * len(tables), 1)
    return {
        model: _worst_first(_part(name, tables[model, name], together) for name in names)
        for model in tables
    }


def outer_columns(tables: TableSet, columns: Sequence[str]) -> dict[str, str]:
    """Return the column that each nested one divides further: its values have one value of it."""
    lists = {c: [cell[tables.by_names.index(c)] for cell in tables.axes.cell] for c in columns}
    order = {column: (len(set(lists[column])), k) for k, column in enumerate(columns)}
    out = {}
    for inner, (size, _) in order.items():
        around = [
            other
            for other in columns
            if order[other][0] > 1 and order[other] < order[inner]
            and len(set(zip(lists[inner], lists[other], strict=True))) == size
        ]  # fmt: skip
        if around:
            out[inner] = min(around, key=order.__getitem__)
    return out


def _part(value: str, rel: Reliability, level: float) -> PartScore:
    found = smece_interval(rel, level=level)
    return PartScore(
        value=value, n=rel.n, share=float(rel.sums.label.sum() / rel.sums.weight.sum()),
        smece=rel.smece, debiased=found.debiased, low=found.low, high=found.high, bias=rel.bias,
    )  # fmt: skip


def _compared(part: PartScore, whole: Interval) -> PartScore:
    if part.low > whole.high:
        return replace(part, against="worse")
    return replace(part, against="better") if part.high < whole.low else part


def _worst_first(parts: Iterable[PartScore]) -> list[PartScore]:
    """Order parts by the SMECE that is sure, then by its estimate."""
    return sorted(parts, key=lambda each: (-each.low, -each.debiased))
