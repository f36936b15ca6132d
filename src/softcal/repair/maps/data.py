"""What a map is fitted on: checked arrays, rows of weight 0 left out."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from softcal.door import inputs
from softcal.door.arrays import column, to_array
from softcal.door.inputs import DEFAULT_NAMES, FloatArray, Names
from softcal.door.rules import SUM_TOLERANCE
from softcal.errors import InputError


class Data(NamedTuple):
    """Predictions and labels, both of shape (n,) or both of shape (n, C), and weights."""

    p: FloatArray
    y: FloatArray
    w: FloatArray
    logits: bool = False  # whether that is what p holds

    @property
    def shares(self) -> FloatArray:
        """The weights, divided by their sum."""
        shares: FloatArray = self.w / self.w.sum()
        return shares


def fitting_data(
    y_prob: npt.ArrayLike,
    y_true: npt.ArrayLike,
    sample_weight: npt.ArrayLike | None = None,
    names: Names = DEFAULT_NAMES,
    *,
    logits: bool = False,
) -> Data:
    """Check what a map is to be fitted on; two dimensions are classes."""
    if _matrix(y_prob) is not None:
        return _of_classes(y_prob, y_true, sample_weight, names, logits=logits)
    rows = inputs.rows(y_true, y_prob, sample_weight, names=names)
    p, y = inputs.as_float64(rows.y_prob), inputs.as_float64(rows.y_true)
    w = None if rows.sample_weight is None else inputs.as_float64(rows.sample_weight)
    if logits:
        inputs.logits(p, names.y_prob)
        rows = rows._replace(y_prob=np.zeros(p.size))  # the other columns follow the same rules
    if not inputs.all_valid(inputs.as_float64(rows.y_prob), y, w):
        inputs.refuse(rows)
    if w is None:
        return Data(p, y, np.ones(p.size), logits)
    if not w.any():
        inputs.refuse_no_weight(rows)
    return _weighted(p, y, w, logits=logits)


def predictions(y_prob: npt.ArrayLike, name: str = "y_prob", *, logits: bool = False) -> FloatArray:
    """Check predictions of shape (n,), or of shape (n, C) with rows that sum to 1; or logits."""
    matrix = _matrix(y_prob)
    read = inputs.logits if logits else inputs.probabilities
    if matrix is None:
        return inputs.as_float64(read(y_prob, name))
    if matrix.shape[1] < 2:
        message = (
            f"{name} must be one column, or one column per class, at least two: it has shape "
            f"{matrix.shape}. Pass that column itself (of an array, {name}.ravel())."
        )
        raise InputError(message)
    classes: FloatArray = inputs.as_float64(read(matrix.ravel(), name)).reshape(matrix.shape)
    if logits:
        return classes
    off = np.abs(classes.sum(axis=1) - 1) > SUM_TOLERANCE
    if off.any():
        first = int(off.argmax())
        message = (
            f"each row of {name} must sum to 1: {off.sum()} of {off.size} do not, the first is "
            f"row {first}, which sums to {float(classes[first].sum()):.6g}. Divide each row by its "
            "sum, if the classes exclude each other."
        )
        raise InputError(message)
    return classes


def _matrix(values: npt.ArrayLike) -> npt.NDArray[Any] | None:
    """Give what has two dimensions as an array; the door looks at everything else."""
    if isinstance(values, np.ma.MaskedArray):
        return values if values.ndim == 2 else None  # the door refuses what is masked
    try:
        array = np.asarray(values.detach() if hasattr(values, "detach") else values)
    except (TypeError, ValueError, RuntimeError):
        return None
    return array if array.ndim == 2 else None


def _of_classes(
    y_prob: npt.ArrayLike,
    y_true: npt.ArrayLike,
    sample_weight: npt.ArrayLike | None,
    names: Names,
    *,
    logits: bool,
) -> Data:
    p, labels = predictions(y_prob, names.y_prob, logits=logits), _matrix(y_true)
    if labels is None or labels.shape != p.shape:
        found = to_array(y_true, names.y_true).shape
        message = (
            f"{names.y_true} must give each class its share, as {names.y_prob} does: it has shape "
            f"{found}, not {p.shape}. Of class numbers make "
            f"numpy.eye({p.shape[1]})[{names.y_true}]."
        )
        raise InputError(message)
    y = predictions(y_true, names.y_true)
    # Weights, and pandas' indexes, go through the door beside the first class.
    first = _first(y_prob, p), _first(y_true, y)
    one = fitting_data(*first, sample_weight, names, logits=logits)
    if sample_weight is None:
        return Data(p, y, one.w, logits)
    w = inputs.as_float64(column(sample_weight, names.sample_weight))
    return _weighted(p, y, w, logits=logits)


def _first(values: Any, checked: FloatArray) -> npt.ArrayLike:
    first: npt.ArrayLike = values.iloc[:, 0] if hasattr(values, "iloc") else checked[:, 0]
    return first


def _weighted(p: FloatArray, y: FloatArray, w: FloatArray, *, logits: bool) -> Data:
    present = w > 0
    return Data(p[present], y[present], w[present], logits)
