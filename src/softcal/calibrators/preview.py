"""Compare calibrators on held-out rows."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from softcal import _display
from softcal._validation import inputs
from softcal._validation.inputs import DEFAULT_NAMES, Coded
from softcal._validation.multiclass import ClassRows, class_rows, is_by_class
from softcal._validation.rules import generator, is_whole
from softcal.bins import Bins
from softcal.calibrators.base import Data, Logits, LogMap, fitting_data
from softcal.calibrators.maps import MAPS, TemperatureMap
from softcal.exceptions import InputError, InputTypeError
from softcal.inference.smece import Interval, smece_interval
from softcal.metrics.proper import brier, log_loss
from softcal.table.kernel import top_label_rows
from softcal.table.reliability import Reliability, from_rows

if TYPE_CHECKING:
    from collections.abc import Iterator

    Indices = npt.NDArray[np.intp]
    from collections.abc import Sequence

    from softcal._validation.inputs import FloatArray, Names, Rows
    from softcal.bins import BinsLike
    from softcal.calibrators.base import CalibrationMap


def split_folds(
    n_rows: int,
    n_folds: int,
    rng: np.random.Generator | int | None,
    groups: Indices | None = None,
) -> Iterator[tuple[Indices, Indices]]:
    """Yield, for each fold, the rows to fit on and the rows held out.

    `groups` has the index of each row's group, from 0.
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
LOGIT_METHODS = tuple(name for name, map_ in MAPS.items() if issubclass(map_, LogMap))
"""Methods that also accept logits, of one column or of classes."""


@dataclass(frozen=True)
class Trial:
    """Scores of the original predictions, or of one calibration method on held-out rows.

    Attributes
    ----------
    method : str
        The method, or `"none"` for the original predictions.
    brier, log_loss : float
        Proper scores against the soft labels; the log loss may be infinite.
    smece : Interval
        SMECE with its interval. The interval ignores the uncertainty of the fitted map.
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
        The scores of the original predictions.
    after : tuple of Trial
        The scores of each method on held-out rows.
    best : str
        The simplest method whose held-out Brier score is within one standard error of the lowest.
    helps : bool
        Whether that score is below that of the original predictions.
    folds : int
        The number of folds.
    lowest : str
        The method with the lowest held-out Brier score.
    notes : tuple of str
        Which differences of Brier scores are within one standard error.
    """

    before: Trial
    after: tuple[Trial, ...]
    best: str
    helps: bool
    folds: int
    lowest: str
    notes: tuple[str, ...]

    @property
    def verdict(self) -> str:
        """Why the best method was chosen, in one sentence without a period."""
        if not self.helps:
            return (
                "No method improved the held-out Brier score by more than its standard error; keep "
                "the original predictions"
            )
        if self.best == self.lowest:
            return f"{self.best} has the lowest held-out Brier score"
        return (
            f"{self.best} is the simplest method within one standard error of the lowest held-out "
            "Brier score"
        )

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
        rows = [
            [
                trial.method,
                *(f"{x:.4f}" for x in (trial.brier, trial.log_loss, trial.smece.value)),
                f"{trial.smece.low:.4f} to {trial.smece.high:.4f}",
            ]
            for trial in (self.before, *self.after)
        ]
        header = ["method", "Brier", "log loss", "SMECE", f"{level} interval"]
        return f"{self.verdict} ({self.folds} folds)", header, rows


def repair_preview(
    y_true: npt.ArrayLike,
    y_prob: npt.ArrayLike,
    *,
    bins: BinsLike = 10,
    sample_weight: npt.ArrayLike | None = None,
    n_votes: npt.ArrayLike | None = None,
    groups: npt.ArrayLike | None = None,
    methods: Sequence[str] | None = None,
    folds: int = 5,
    rng: np.random.Generator | int = 0,
    level: float = 0.95,
    logits: bool = False,
) -> RepairPreview:
    """Compare calibration methods by cross-validation.

    Each method is fitted on all folds except one, and scored on the fold held out. The best method
    is the simplest whose held-out Brier score is at most one standard error above the lowest. The
    standard error is that of the difference on the same rows, by group if there are groups. From
    simple to complex, the methods are temperature, platt, beta, isotonic, and histogram, which is
    not monotone; for classes temperature, vector, and dirichlet.

    The log loss is not used, because a single row decides it if isotonic regression or a bin
    predicts exactly 0 or 1. SMECE is not used, because it is not a proper score: predicting the
    mean label for every row would win.

    Parameters
    ----------
    y_true : Votes or array-like of shape (n_samples,) or (n_samples, n_classes)
        Labels as in `reliability`, or for classes as in `classwise_reliability`.
    y_prob : array-like of shape (n_samples,) or (n_samples, n_classes)
        Predictions. For classes, the Brier score and the log loss are those of all classes, and
        SMECE and the tables are those of the predicted class.
    bins : int, Bins, or sequence of float, default=10
        The bins of the tables, as in `reliability`.
    sample_weight : array-like of shape (n_samples,), optional
        Non-negative weights.
    n_votes : int or array-like of shape (n_samples,), optional
        The number of votes behind each label, for the intervals.
    groups : array-like of shape (n_samples,), optional
        The group of each row. All rows of a group are in the same fold.
    methods : sequence of str, optional
        Some of temperature, platt, beta, isotonic, and histogram; for classes, some of temperature,
        vector, and dirichlet. By default, all of them. Histogram and isotonic do not accept logits.
    folds : int, default=5
        The number of folds, at least 2.
    rng : numpy.random.Generator or int, default=0
        Assigns rows to folds; the same seed gives the same folds.
    level : float, default=0.95
        The confidence level of the intervals.
    logits : bool, default=False
        Whether `y_prob` contains logits, as in `TemperatureCalibrator`.

    Returns
    -------
    RepairPreview
        The scores of the original predictions and of each method on held-out rows, and the best
        method.

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
           none   0.0491        inf   0.0952   0.0758 to 0.1085
    temperature   0.0407     0.4548   0.0363   0.0103 to 0.0510
          platt   0.0393     0.4525   0.0312   0.0073 to 0.0458
           beta   0.0388     0.4482   0.0201   0.0000 to 0.0327
       isotonic   0.0388        inf   0.0140   0.0000 to 0.0229
      histogram   0.0396     0.4495   0.0065   0.0000 to 0.0216

    Classes, from logits:

    >>> y_true = [[0.8, 0.2, 0.0], [0.1, 0.6, 0.3], [0.2, 0.3, 0.5]] * 20
    >>> z = [[4.0, 1.0, -3.0], [0.0, 4.0, 2.0], [1.0, 2.0, 4.0]] * 20
    >>> repair_preview(y_true, z, methods=["temperature"], logits=True)
    RepairPreview(best='temperature', helps=True, folds=5)
    """
    take = class_rows if is_by_class(y_prob) else inputs.rows
    rows = take(y_true, y_prob, sample_weight, n_votes)
    inputs.refuse_misaligned_groups(groups, y_true=y_true, y_prob=y_prob)
    return preview_of(
        rows, bins=bins, groups=groups, methods=methods, folds=folds, rng=rng, level=level,
        logits=logits,
    )  # fmt: skip


def preview_of(
    rows: Rows | ClassRows,
    *,
    bins: BinsLike,
    groups: npt.ArrayLike | None,
    methods: Sequence[str] | None = None,
    folds: int,
    rng: np.random.Generator | int = 0,
    level: float,
    logits: bool = False,
) -> RepairPreview:
    """Compare methods on rows with validated type and shape; messages use the names of `rows`."""
    data = fitting_data(rows.y_prob, rows.y_true, rows.sample_weight, rows.names, logits=logits)
    known = CLASS_METHODS if data.p.ndim == 2 else BINARY_METHODS
    if logits:
        known = tuple(method for method in known if method in LOGIT_METHODS)
    methods = known if methods is None else methods
    _refuse_unknown(methods, known)
    column = rows.column(0) if isinstance(rows, ClassRows) else rows
    own, votes, group = _present(column, groups)
    coded = None if group is None else Coded(group, range(int(group.max()) + 1))

    def trial(method: str, p: FloatArray) -> Trial:
        if p.ndim == 2:
            classes = tuple(range(p.shape[1]))
            judged = top_label_rows(ClassRows(data.y, p, own, votes, classes, rows.names))
        else:
            judged = inputs.Rows(data.y, p, own, votes, rows.names)
        table = from_rows(judged, Bins.of(bins), coded)
        return Trial(
            method,
            brier(data.y, p, sample_weight=own),
            log_loss(data.y, p, sample_weight=own),
            smece_interval(table, level=level),
            table,
        )

    mapped = {method: np.empty_like(data.p) for method in methods}
    for fit_on, held_out in split_folds(data.w.size, folds, rng, group):
        part = Data(data.p[fit_on], data.y[fit_on], data.w[fit_on], logits)
        for method, found in mapped.items():
            found[held_out] = MAPS[method].fit(part).apply(data.p[held_out])
    original = _SOFTMAX.apply(data.p) if logits else data.p
    before = trial("none", original)
    after = tuple(trial(method, p) for method, p in mapped.items())
    lowest = min(after, key=lambda each: each.brier)
    losses = {name: _squared(p, data.y) for name, p in {"none": original, **mapped}.items()}

    def noise(one: Trial, other: Trial) -> float:
        return _standard_error(losses[one.method] - losses[other.method], data.w, group)

    improved = before.brier - lowest.brier > noise(before, lowest)
    best = next(
        each
        for each in sorted(after, key=lambda each: known.index(each.method))
        if each.brier - lowest.brier <= noise(each, lowest)
        and (each.brier < before.brier or not improved)
    )
    helps = best.brier < before.brier
    close = [] if best is lowest else [(best, lowest)]
    if helps and before.brier - best.brier <= noise(before, best):
        close.append((before, best))
    notes = tuple(_note(*pair, noise(*pair)) for pair in close)
    return RepairPreview(before, after, best.method, helps, folds, lowest.method, notes)


def _squared(p: FloatArray, y: FloatArray) -> FloatArray:
    """Return the Brier score of each row."""
    squares: FloatArray = ((p - y) ** 2).reshape(y.shape[0], -1).sum(axis=1)
    return squares


def _standard_error(values: FloatArray, weight: FloatArray, group: Indices | None) -> float:
    """Return the standard error of the weighted mean; rows of a group are not independent."""
    parts = weight * (values - np.average(values, weights=weight))
    if group is not None:
        parts = np.bincount(group, parts).astype(np.float64)
    return float(np.sqrt((parts**2).sum() * parts.size / (parts.size - 1)) / weight.sum())


def _note(simple: Trial, other: Trial, noise: float) -> str:
    what = "Leaving predictions as they are" if simple.method == "none" else simple.method
    return (
        f"{what} is simpler than {other.method} and within one standard error: its held-out Brier "
        f"score is {simple.brier - other.brier:.2g} higher, and the standard error of this "
        f"difference is {noise:.2g}."
    )


_SOFTMAX = TemperatureMap(1.0, Logits())  # converts logits to probabilities


def _present(rows: Rows, groups: npt.ArrayLike | None) -> tuple[Any, Any, Any]:
    """Return the weights, votes, and groups of the rows with positive weight."""
    weights, votes = rows.sample_weight, rows.n_votes
    present = np.ones(rows.y_prob.size, dtype=bool) if weights is None else weights > 0
    return (
        None if weights is None else weights[present],
        None if votes is None else votes[present],
        None if groups is None else _by_appearance(inputs.group_numbers(groups, rows)[present]),
    )


def fit_map(
    method: str,
    y_true: npt.ArrayLike,
    y_prob: npt.ArrayLike,
    *,
    sample_weight: npt.ArrayLike | None = None,
    names: Names = DEFAULT_NAMES,
    logits: bool = False,
) -> CalibrationMap:
    """Fit one calibration method to all rows."""
    data = fitting_data(y_prob, y_true, sample_weight, names, logits=logits)
    map_ = MAPS[method]
    map_.refuse_other_dimensions(data.p)
    return map_.fit(data)


def _by_appearance(groups: npt.NDArray[np.intp]) -> npt.NDArray[np.intp]:
    """Renumber groups in order of appearance, so that folds do not depend on their names."""
    _, first, number = np.unique(groups, return_index=True, return_inverse=True)
    return first.argsort().argsort()[number]


def _refuse_unknown(methods: Sequence[str], known: Sequence[str]) -> None:
    if isinstance(methods, str) or not isinstance(methods, Collection):
        message = f"methods must be a list of names: got {methods!r:.60}."
        raise InputTypeError(message)
    unknown = [method for method in methods if method not in known]
    if unknown or not methods:
        message = (
            f"methods (--method) must be some of {', '.join(known)}: got "
            f"{', '.join(map(repr, unknown)) or 'none'}."
        )
        raise InputError(message)
