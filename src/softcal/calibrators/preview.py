"""Compare calibrators on held-out rows."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from softcal import _display
from softcal._validation import inputs
from softcal._validation.inputs import DEFAULT_NAMES
from softcal._validation.multiclass import class_rows
from softcal._validation.rules import generator, is_whole
from softcal.bins import Bins
from softcal.calibrators.base import Data, fitting_data
from softcal.calibrators.maps import MAPS
from softcal.exceptions import InputError, InputTypeError
from softcal.inference.intervals import Interval, smece_interval
from softcal.metrics.proper import brier, log_loss
from softcal.table.kernel import top_label_rows
from softcal.table.reliability import Reliability, from_rows, reliability

if TYPE_CHECKING:
    from collections.abc import Iterator

    Indices = npt.NDArray[np.intp]
    from collections.abc import Callable, Sequence

    from softcal._validation.inputs import FloatArray, Names, Rows
    from softcal._validation.multiclass import ClassRows
    from softcal.bins import BinsLike
    from softcal.calibrators.base import CalibrationMap


def split_folds(
    n_rows: int,
    n_folds: int,
    rng: np.random.Generator | int | None,
    groups: Indices | None = None,
) -> Iterator[tuple[Indices, Indices]]:
    """Yield, for each fold, the rows to fit on and the rows held out.

    `groups` has the number of each row's group, from 0.
    """
    units = n_rows if groups is None else int(groups.max()) + 1
    if not is_whole(n_folds):
        message = f"the number of folds must be a whole number: got {n_folds!r:.60}."
        raise InputTypeError(message)
    if not 2 <= n_folds <= units:
        what = "rows" if groups is None else "groups"
        message = (
            f"the number of folds must be between 2 and the number of {what}, {units}: got "
            f"{n_folds}."
        )
        raise InputError(message)
    of_unit = generator(rng).permutation(units) % n_folds
    fold = of_unit if groups is None else of_unit[groups]
    for number in range(n_folds):
        yield np.flatnonzero(fold != number), np.flatnonzero(fold == number)


BINARY_METHODS = tuple(name for name, map_ in MAPS.items() if 1 in map_.dimensions)
CLASS_METHODS = tuple(name for name, map_ in MAPS.items() if 2 in map_.dimensions)


@dataclass(frozen=True)
class Trial:
    """How predictions do: as they are, or mapped by a method fitted on other rows.

    Attributes
    ----------
    method : str
        The method, or `"none"`.
    brier, log_loss : float
        Proper scores against the soft labels; the log loss may be infinite.
    smece : Interval
        SMECE with its interval, for these predictions as if the map had been given.
    table : Reliability
        The reliability table.
    """

    method: str
    brier: float
    log_loss: float
    smece: Interval
    table: Reliability


@dataclass(frozen=True, repr=False)
class RepairPreview(_display.Printed):
    """Calibration methods compared on held-out rows by `repair_preview`.

    Attributes
    ----------
    before : Trial
        The predictions as they are.
    after : tuple of Trial
        Each method, on held-out rows.
    best : str
        The method with the lowest held-out Brier score.
    helps : bool
        Whether that score is below that of the predictions as they are.
    folds : int
        The number of folds.
    """

    before: Trial
    after: tuple[Trial, ...]
    best: str
    helps: bool
    folds: int

    def as_rows(self) -> list[dict[str, Any]]:
        """Return one plain row per trial, for JSON; an infinite log loss is None."""
        return [
            {
                "method": trial.method,
                "brier": trial.brier,
                "log_loss": trial.log_loss if np.isfinite(trial.log_loss) else None,
                **{f"smece_{key}": value for key, value in asdict(trial.smece).items()},
            }
            for trial in (self.before, *self.after)
        ]

    def __repr__(self) -> str:
        return f"RepairPreview(best={self.best!r}, helps={self.helps}, folds={self.folds})"

    def _shown(self) -> _display.Shown:
        level = _display.percent(self.before.smece.level)
        verdict = (
            f"{self.best} has the lowest held-out Brier score"
            if self.helps
            else "No method improved the held-out Brier score; keep the original predictions"
        )
        rows = [
            [
                trial.method,
                *(f"{x:.4f}" for x in (trial.brier, trial.log_loss, trial.smece.value)),
                f"{trial.smece.low:.4f} to {trial.smece.high:.4f}",
            ]
            for trial in (self.before, *self.after)
        ]
        header = ["method", "Brier", "log loss", "SMECE", f"{level} interval"]
        return f"{verdict} ({self.folds} folds)", header, rows


def repair_preview(
    y_true: npt.ArrayLike,
    y_prob: npt.ArrayLike,
    *,
    bins: BinsLike = 10,
    sample_weight: npt.ArrayLike | None = None,
    n_votes: npt.ArrayLike | None = None,
    groups: npt.ArrayLike | None = None,
    methods: Sequence[str] = BINARY_METHODS,
    folds: int = 5,
    rng: np.random.Generator | int = 0,
    level: float = 0.95,
) -> RepairPreview:
    """Fit each calibration method on all folds except one, and score it on the one held out.

    The best method has the lowest held-out Brier score. The log loss is not used, because a single
    row decides it when isotonic regression or a bin predicts exactly 0 or 1. SMECE is not used,
    because it is not a proper score: predicting the mean label for every row would win.

    Parameters
    ----------
    y_true, y_prob, bins, sample_weight, n_votes, groups
        As in `reliability`. Rows of one group are never on both sides of a fold.
    methods : sequence of str
        Some of temperature, platt, beta, histogram, isotonic.
    folds : int
        At least 2.
    rng : numpy.random.Generator or int, default 0
        Assigns rows to folds; the same seed gives the same folds.
    level : float
        Of the intervals.

    Returns
    -------
    RepairPreview
        The predictions as they are, each method on held-out rows, and which does best.

    Examples
    --------
    >>> from softcal.datasets import lidc_malignancy
    >>> d = lidc_malignancy()
    >>> found = repair_preview(d["soft_malignant"], d["prob_rf_all"], groups=d["patient"])
    >>> found
    RepairPreview(best='beta', helps=True, folds=5)
    >>> print(found)
    beta has the lowest held-out Brier score (5 folds)
         method    Brier   log loss    SMECE       95% interval
           none   0.0491        inf   0.0952   0.0789 to 0.1075
    temperature   0.0407     0.4548   0.0363   0.0202 to 0.0485
          platt   0.0393     0.4525   0.0312   0.0169 to 0.0439
           beta   0.0388     0.4482   0.0201   0.0000 to 0.0315
      histogram   0.0396     0.4495   0.0065   0.0000 to 0.0233
       isotonic   0.0388        inf   0.0140   0.0000 to 0.0248
    """
    rows = inputs.rows(y_true, y_prob, sample_weight, n_votes)
    inputs.refuse_misaligned_groups(groups, y_true=y_true, y_prob=y_prob)
    return preview_of(
        rows, bins=bins, groups=groups, methods=methods, folds=folds, rng=rng, level=level
    )


def preview_of(
    rows: Rows,
    *,
    bins: BinsLike,
    groups: npt.ArrayLike | None,
    methods: Sequence[str],
    folds: int,
    rng: np.random.Generator | int = 0,
    level: float,
) -> RepairPreview:
    """Do it for columns that came through the door, whose names the messages use."""
    _refuse_unknown(methods, BINARY_METHODS)
    data = fitting_data(rows.y_prob, rows.y_true, rows.sample_weight, rows.names)
    own, votes, group = _present(rows, groups)

    def trial(method: str, p: FloatArray) -> Trial:
        table = reliability(data.y, p, bins=bins, sample_weight=own, n_votes=votes, groups=group)
        loss = log_loss(data.y, p, sample_weight=own)
        return Trial(method, table.brier, loss, smece_interval(table, level=level), table)

    return _judged(data, group, trial, methods=methods, folds=folds, rng=rng)


def class_preview_of(
    rows: ClassRows,
    *,
    bins: BinsLike,
    groups: npt.ArrayLike | None,
    methods: Sequence[str],
    folds: int,
    level: float,
) -> RepairPreview:
    """Do it for predictions of classes; SMECE and tables are those of the predicted class."""
    _refuse_unknown(methods, CLASS_METHODS)
    data = fitting_data(rows.y_prob, rows.y_true, rows.sample_weight, rows.names)
    own, votes, group = _present(rows.column(0), groups)

    def trial(method: str, p: FloatArray) -> Trial:
        table = from_rows(top_label_rows(class_rows(data.y, p, own, votes)), Bins.of(bins), group)
        return Trial(
            method,
            brier(data.y, p, sample_weight=own),
            log_loss(data.y, p, sample_weight=own),
            smece_interval(table, level=level),
            table,
        )

    return _judged(data, group, trial, methods=methods, folds=folds, rng=0)


def _present(rows: Rows, groups: npt.ArrayLike | None) -> tuple[Any, Any, Any]:
    """Give weights, votes and groups, where there are any, of the rows that have weight."""
    weights, votes = rows.sample_weight, rows.n_votes
    present = np.ones(rows.y_prob.size, dtype=bool) if weights is None else weights > 0
    return (
        None if weights is None else weights[present],
        None if votes is None else votes[present],
        None if groups is None else _by_appearance(inputs.group_numbers(groups, rows)[present]),
    )


def _judged(
    data: Data,
    group: npt.NDArray[np.intp] | None,
    trial: Callable[[str, FloatArray], Trial],
    *,
    methods: Sequence[str],
    folds: int,
    rng: np.random.Generator | int,
) -> RepairPreview:
    """Map each row by maps fitted on the other folds, and put the methods to trial on that."""
    mapped = {method: np.empty_like(data.p) for method in methods}
    for fit_on, held_out in split_folds(data.w.size, folds, rng, group):
        part = Data(data.p[fit_on], data.y[fit_on], data.w[fit_on])
        for method, found in mapped.items():
            found[held_out] = MAPS[method].fit(part).apply(data.p[held_out])
    before = trial("none", data.p)
    after = tuple(trial(method, p) for method, p in mapped.items())
    best = min(after, key=lambda each: each.brier)
    return RepairPreview(before, after, best.method, best.brier < before.brier, folds)


def fit_map(
    method: str,
    y_true: npt.ArrayLike,
    y_prob: npt.ArrayLike,
    *,
    sample_weight: npt.ArrayLike | None = None,
    names: Names = DEFAULT_NAMES,
) -> CalibrationMap:
    """Fit one method to all rows."""
    data = fitting_data(y_prob, y_true, sample_weight, names)
    map_ = MAPS[method]
    map_.refuse_other_dimensions(data.p)
    return map_.fit(data)


def _by_appearance(groups: npt.NDArray[np.intp]) -> npt.NDArray[np.intp]:
    """Give groups numbers in order of appearance: folds do not depend on their names."""
    _, first, number = np.unique(groups, return_index=True, return_inverse=True)
    return first.argsort().argsort()[number]


def _refuse_unknown(methods: Sequence[str], known: Sequence[str]) -> None:
    if isinstance(methods, str) or not isinstance(methods, Collection):
        message = f"methods must be a list of names: got {methods!r:.60}."
        raise InputTypeError(message)
    unknown = [method for method in methods if method not in known]
    if unknown or not methods:
        message = (
            f"methods must be some of {', '.join(known)}: got "
            f"{', '.join(map(repr, unknown)) or 'none'}."
        )
        raise InputError(message)
