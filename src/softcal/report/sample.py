"""What recalibration would do: on held-out rows of a sample, or fitted to a table."""

from __future__ import annotations

import threading
from collections import Counter
from typing import TYPE_CHECKING, Any

import numpy as np

from softcal._validation.inputs import as_float64
from softcal.calibrators.base import Data
from softcal.calibrators.maps import MAPS
from softcal.calibrators.preview import preview_of
from softcal.report.classes import diagram_of_points, small_diagram

if TYPE_CHECKING:
    from collections.abc import Mapping

    import numpy.typing as npt

    from softcal._validation.inputs import Rows
    from softcal.bins import Bins
    from softcal.calibrators.preview import RepairPreview, Trial
    from softcal.table.build import Coded
    from softcal.table.reliability import Reliability

MOST_ROWS = 200_000
FOLDS = 5
FEWEST_ROWS = 100  # with fewer, the result of a fold is mostly chance


class Sample:
    """A uniform sample of rows of bounded size, the same for any order of the pieces.

    Each row has a random key that depends only on the number of its piece and its position there.
    The rows with the smallest keys are kept.
    """

    def __init__(self, most: int = MOST_ROWS) -> None:
        self._most = most
        self._lock = threading.Lock()
        self._seen: Counter[int] = Counter()  # rows of each piece
        self._limit = np.inf  # no row with a larger key can be kept
        self._kept: list[dict[str, npt.NDArray[Any]]] = []
        self._first: Mapping[str, Rows] = {}
        self.zeros: Counter[str] = Counter()  # predictions of exactly 0, of all rows of each model
        self.ones: Counter[str] = Counter()

    def add(self, piece: int, rows: Mapping[str, Rows], groups: Coded | None = None) -> None:
        """Add the next rows of a piece; threads may add pieces in any order."""
        first = next(iter(rows.values()))
        size = first.y_prob.size
        with self._lock:
            before, limit = self._seen[piece], self._limit
            self._seen[piece] += size
        key = np.random.default_rng((piece, before)).random(size)
        at = np.flatnonzero(key < limit)
        columns = {"key": key[at], "piece": np.full(at.size, piece), "row": before + at}
        columns["y"] = as_float64(first.y_true[at])
        counted = ... if first.sample_weight is None else first.sample_weight > 0
        zeros = {name: np.count_nonzero(each.y_prob[counted] == 0) for name, each in rows.items()}
        ones = {name: np.count_nonzero(each.y_prob[counted] == 1) for name, each in rows.items()}
        columns |= {f"p {name}": as_float64(each.y_prob[at]) for name, each in rows.items()}
        if first.sample_weight is not None:
            columns["weight"] = as_float64(first.sample_weight[at])
        if first.n_votes is not None:
            columns["votes"] = as_float64(first.n_votes[at])
        if groups is not None:
            numbers = groups.numbers[at].tolist()
            columns["group"] = np.array([str(groups.names[k]) for k in numbers], dtype=object)
        with self._lock:
            self._first = self._first or rows
            self.zeros.update(zeros)
            self.ones.update(ones)
            self._kept.append(columns)
            # Not after every piece, because that would copy the whole sample each time.
            if sum(each["key"].size for each in self._kept) > 2 * self._most:
                self._drop()

    def _drop(self) -> dict[str, npt.NDArray[Any]]:
        """Drop the rows with the largest keys, and return the others."""
        columns = {k: np.concatenate([each[k] for each in self._kept]) for k in self._kept[0]}
        if columns["key"].size > self._most:
            smallest = columns["key"].argpartition(self._most)[: self._most]
            columns = {k: v[smallest] for k, v in columns.items()}
            self._limit = float(columns["key"].max())
        self._kept = [columns]
        return columns

    def sees(self, model: str) -> bool:
        """Return whether rows of a model were added."""
        return model in self._first

    def rows(self, model: str) -> tuple[Rows, npt.NDArray[Any] | None]:
        """Return the sampled rows of a model in their original order, and their groups."""
        columns = self._drop()
        order = np.lexsort((columns["row"], columns["piece"]))
        kept = {name: values[order] for name, values in columns.items()}
        rows = self._first[model]._replace(
            y_true=kept["y"],
            y_prob=kept[f"p {model}"],
            sample_weight=kept.get("weight"),
            n_votes=kept.get("votes"),
        )
        return rows, kept.get("group")


def recalibration_panel(
    sample: Sample, models: tuple[str, ...], bins: Bins, level: float
) -> list[dict[str, Any]]:
    """Return the scores of each method for each model; nothing if there are too few rows."""
    out = []
    for name in models:
        rows, groups = sample.rows(name)
        weight = rows.sample_weight
        size = rows.y_prob.size if weight is None else int((weight > 0).sum())
        if size < FEWEST_ROWS or (groups is not None and len(set(groups)) < FOLDS):
            return []
        found = preview_of(rows, bins=bins, groups=groups, folds=FOLDS, level=level)
        trials = [_row(trial, found) for trial in (found.before, *found.after)]
        best = next(trial for trial in found.after if trial.method == found.best)
        drawn = {"before": found.before, f"after {best.method}": best}
        diagrams = [
            small_diagram(trial.table, title, trial.smece.value, level)
            for title, trial in drawn.items()
        ]
        out.append(
            {"name": name, "text": _text(found), "rows": trials, "n": size, "diagrams": diagrams}
        )
    return out


def table_panel(
    tables: Mapping[str, Reliability], bins: Bins, level: float
) -> list[dict[str, Any]]:
    """Return diagrams before and after a beta map that is fitted to each table.

    A bin stands for its rows with its mean prediction. The map has three parameters only, because
    the same rows fit it and evaluate it.
    """
    out = []
    for name, fine in tables.items():
        if fine.n < FEWEST_ROWS:
            return []
        filled = fine.count > 0
        p, weight = fine.mean_prob[filled], fine.sums.weight[filled]
        q = MAPS["beta"].fit(Data(p, fine.mean_label[filled], weight)).apply(p)
        place = bins.edges[1:-1].searchsorted(q, side="right")
        size, prob, label = (
            np.bincount(place, weights=each)
            for each in (weight, weight * q, fine.sums.label[filled])
        )
        used = size > 0
        after = float(np.abs(prob - label).sum() / size.sum())
        before = fine.coarsen(bins)
        x, y, share = prob[used] / size[used], label[used] / size[used], size[used] / size.sum()
        diagrams = [
            small_diagram(before, "before", before.smece, level),
            diagram_of_points("after beta", after, x, y, y, y, share),
        ]
        out.append({"name": name, "text": _table_text(before.smece, after), "diagrams": diagrams})
    return out


def _table_text(before: float, after: float) -> str:
    if after >= before:
        return f"A beta map fitted to these tables does not lower SMECE ({before:.3f})."
    return f"A beta map fitted to these tables changes SMECE from {before:.3f} to {after:.3f}."


def _row(trial: Trial, found: RepairPreview) -> dict[str, Any]:
    return {
        "method": "unchanged" if trial is found.before else trial.method,
        "best": trial.method == found.best and found.helps,
        "brier": trial.brier,
        "smece": trial.smece.value,
        "low": trial.smece.low,
        "high": trial.smece.high,
    }


def _text(found: RepairPreview) -> str:
    if not found.helps:
        return f"{found.verdict}."
    best = next(trial for trial in found.after if trial.method == found.best)
    return " ".join([
        f"{found.verdict}. It changes SMECE from {found.before.smece.value:.3f} to "
        f"{best.smece.value:.3f}, interval {best.smece.low:.3f} to {best.smece.high:.3f}.",
        *found.notes,
    ])  # fmt: skip
