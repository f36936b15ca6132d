"""What the report shows, gathered in one pass: tables only, however many rows there are."""

from __future__ import annotations

import math
from dataclasses import dataclass
from itertools import combinations
from typing import TYPE_CHECKING, Any

import numpy as np

from softcal._validation import inputs
from softcal._validation.arrays import to_array
from softcal.exceptions import InputError
from softcal.table.build import joined_rows
from softcal.table.reliability import Reliability, from_rows

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    import numpy.typing as npt

    from softcal._validation.inputs import Rows
    from softcal.bins import Bins
    from softcal.report.parts import Part
    from softcal.report.sample import Sample
    from softcal.table.joint import JointTable

MAX_SLICES = 200
_NO_VALUE = "(no value)"


@dataclass(frozen=True)
class Tables:
    """The tables of a report; those of parts of the data add up.

    Attributes
    ----------
    soft, hard : dict
        For each model its fine table, against the labels as they are and hardened at 0.5.
    joint : dict
        For each pair of models what ties them, on the bins asked for.
    slices : dict
        For each value of the column to slice by, and each model, its table.
    """

    soft: dict[str, Reliability]
    hard: dict[str, Reliability]
    joint: dict[tuple[str, str], JointTable]
    slices: dict[str, dict[str, Reliability]]

    def plus(self, other: Tables) -> Tables:
        """Add the tables of other rows."""
        slices = dict(self.slices)
        for value, tables in other.slices.items():
            slices[value] = _added(slices[value], tables) if value in slices else tables
        _refuse_many_slices(len(slices))
        return Tables(
            _added(self.soft, other.soft),
            _added(self.hard, other.hard),
            _added(self.joint, other.joint),
            slices,
        )


def _added(left: dict[Any, Any], right: dict[Any, Any]) -> dict[Any, Any]:
    return {key: table + right[key] for key, table in left.items()}


def fine_grid(n_bins: int) -> int:
    """Give the number of bins of the fine table: many divisors, n_bins among them.

    >>> fine_grid(10), fine_grid(7)
    (600, 840)
    """
    shared = math.lcm(n_bins, 60)
    if shared > 6000:  # the page need not be able to choose others
        return n_bins
    return shared * math.ceil(600 / shared)


def gather(parts: Iterable[Part], fine: Bins, bins: Bins, sample: Sample) -> Tables:
    """Read the rows part by part and keep their tables, and a sample of the rows."""
    found: Tables | None = None
    for part in parts:
        sample.add(part.soft)
        rows = next(iter(part.soft.values()))
        if _have_weight(rows):
            tables = _tables(part, fine, bins)
            found = tables if found is None else found.plus(tables)
    if found is None and sample.seen:
        inputs.refuse_no_weight(rows)
    if found is None:
        message = "there are no rows to report on."
        raise InputError(message)
    return found


def _refuse_many_slices(count: int) -> None:
    if count > MAX_SLICES:
        message = (
            f"a report shows at most {MAX_SLICES} slices, and the column to slice by has at least "
            f"{count} different values. Slice by a column with fewer, for instance ranges of this "
            "one."
        )
        raise InputError(message)


def _tables(part: Part, fine: Bins, bins: Bins) -> Tables:
    rows = part.soft
    soft = {name: from_rows(columns, fine) for name, columns in rows.items()}
    hard = {name: from_rows(columns, fine) for name, columns in part.hard.items()}
    joint = {(a, b): joined_rows({a: rows[a], b: rows[b]}, bins) for a, b in combinations(rows, 2)}
    slices: dict[str, dict[str, Reliability]] = {}
    if part.by is not None:
        for value, at in _slices(part.by, next(iter(rows.values())).y_true.size):
            some = {name: _some(columns, at) for name, columns in rows.items()}
            if _have_weight(next(iter(some.values()))):
                slices[value] = {name: from_rows(r, bins) for name, r in some.items()}
    return Tables(soft, hard, joint, slices)


def _have_weight(rows: Rows) -> bool:
    """Whether any of the rows counts: no table can be made of those that do not."""
    return rows.sample_weight is None or bool(rows.sample_weight.any())


def _some(rows: Rows, at: npt.NDArray[np.intp]) -> Rows:
    return rows._replace(
        y_true=rows.y_true[at],
        y_prob=rows.y_prob[at],
        sample_weight=None if rows.sample_weight is None else rows.sample_weight[at],
        n_votes=None if rows.n_votes is None else rows.n_votes[at],
    )


def _slices(column: Any, rows: int) -> Iterator[tuple[str, npt.NDArray[np.intp]]]:
    """Give each value of a column, as text, and where it is."""
    if hasattr(column, "dictionary_encode"):  # an Arrow array: no Python object for each row
        whole = column.combine_chunks() if hasattr(column, "combine_chunks") else column
        if hasattr(whole, "dictionary_decode"):
            whole = whole.dictionary_decode()
        coded = whole.dictionary_encode(null_encoding="encode")
        texts = [_text(value) for value in coded.dictionary.to_pylist()]
        at = coded.indices.to_numpy(zero_copy_only=False)
    else:
        shape = to_array(column, "by").shape
        if len(shape) != 1:
            message = f"by must be one column: it has shape {shape}."
            raise InputError(message)
        texts, at = [_text(value) for value in column], slice(None)
    different = sorted(set(texts))  # not by NumPy, which takes "a" and "a\0" for the same
    _refuse_many_slices(len(different))
    number = {value: k for k, value in enumerate(different)}
    inverse = np.array([number[text] for text in texts], dtype=np.intp)[at]
    if inverse.size != rows:
        message = f"by must have one value for each of the {rows} rows: it has {inverse.size}."
        raise InputError(message)
    order = np.argsort(inverse, kind="stable")
    starts = np.searchsorted(inverse[order], np.arange(len(different)))
    return zip(different, np.split(order, starts[1:]), strict=True)


def _text(value: Any) -> str:
    if isinstance(value, str):
        return value
    return _NO_VALUE if value is None or str(value) in ("nan", "<NA>", "NaT") else str(value)
