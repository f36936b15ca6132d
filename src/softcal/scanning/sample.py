"""Keep rows of bounded number while tables are built, for what tables cannot compute."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from softcal._validation.inputs import as_float64

if TYPE_CHECKING:
    from collections.abc import Mapping

    import numpy.typing as npt

    from softcal._validation.inputs import Coded, Rows
    from softcal.table.tableset import TableSet

MOST_ROWS = 1_000_000


class Sample:
    """A uniform sample of rows of bounded size, the same for any order of the pieces.

    Each row has a random key that depends only on the number of its piece and its position there.
    The rows with the smallest keys are kept.
    """

    def __init__(self, most: int = MOST_ROWS) -> None:
        self._most = most
        self._seen = 0
        self._limit = np.inf  # no row with a larger key can be kept
        self._kept: list[dict[str, npt.NDArray[Any]]] = []
        self._first: Mapping[str, Rows] = {}

    def add(self, piece: int, rows: Mapping[str, Rows], groups: Coded | None = None) -> None:
        """Add the rows of a piece."""
        self._first = self._first or rows
        first = next(iter(rows.values()))
        key = np.random.default_rng((piece, 0)).random(first.y_prob.size)
        self._seen += key.size
        at = np.flatnonzero(key < self._limit)
        columns = {"key": key[at], "piece": np.full(at.size, piece), "row": at}
        single = {"y": first.y_true, "weight": first.sample_weight, "votes": first.n_votes}
        single |= {f"p {name}": each.y_prob for name, each in rows.items()}
        columns |= {name: as_float64(x[at]) for name, x in single.items() if x is not None}
        if groups is not None:
            numbers = groups.numbers[at].tolist()
            columns["group"] = np.array([str(groups.names[k]) for k in numbers], dtype=object)
        self._kept.append(columns)
        # Not after every piece, because that would copy the whole sample each time.
        if sum(each["key"].size for each in self._kept) > 2 * self._most:
            self._drop()

    def _drop(self) -> dict[str, npt.NDArray[Any]]:
        """Drop the rows with the largest keys, and return the others."""
        columns = {k: np.concatenate([each[k] for each in self._kept]) for k in self._kept[0]}
        columns = _smallest(columns, self._most)
        if columns["key"].size == self._most:
            self._limit = float(columns["key"].max())
        self._kept = [columns]
        return columns

    def rows(self, model: str, most: int) -> tuple[Rows, npt.NDArray[Any] | None]:
        """Return at most so many rows of a model in their original order, and their groups."""
        columns = _smallest(self._drop(), most)
        order = np.lexsort((columns["row"], columns["piece"]))
        kept = {name: values[order] for name, values in columns.items()}
        rows = self._first[model]._replace(
            y_true=kept["y"],
            y_prob=kept[f"p {model}"],
            sample_weight=kept.get("weight"),
            n_votes=kept.get("votes"),
        )
        return rows, kept.get("group")

    @property
    def complete(self) -> bool:
        """Whether the sample has every row."""
        return self._seen <= self._most


def _smallest(columns: dict[str, npt.NDArray[Any]], most: int) -> dict[str, npt.NDArray[Any]]:
    """Return the rows with the smallest keys."""
    if columns["key"].size <= most:
        return columns
    kept = columns["key"].argpartition(most)[:most]
    return {name: values[kept] for name, values in columns.items()}


class Basis(NamedTuple):
    """What the numbers of decisions are computed from: all rows, or tables on the grid."""

    models: dict[str, dict[str, Any]]  # the first arguments of `net_benefit` for each model
    name: str
    text: str


def basis(tables: TableSet, sample: Sample | None) -> Basis:
    """Return all rows of each model if the sample has them, or its table on the grid."""
    if sample is not None and sample.complete:
        names = ("y_true", "y_prob", "sample_weight")
        of = {}
        for model in tables:
            rows, groups = sample.rows(model, MOST_ROWS)
            of[model] = {k: getattr(rows, k) for k in names} | {"groups": groups}
        return Basis(of, "rows", "Computed from the rows.")
    why = "" if sample is None else f", because there are more than {MOST_ROWS:,} rows"
    text = (
        f"Computed from the {len(tables.grid)} bins of the grid{why}. The rows of a bin count with "
        "their mean prediction."
    )
    fine = tables.coarsen(tables.grid)
    return Basis({model: {"y_true": fine[model]} for model in fine}, "grid", text)
