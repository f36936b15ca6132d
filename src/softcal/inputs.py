"""The one door: array-likes become checked columns, and every message about bad data.

The check has two halves. `rows` looks at what costs nothing: kind, shape, length. The
values themselves are checked by whoever reads them anyway (the kernel, in its one pass
over the data), and when a value breaks a rule the kernel only says so; `refuse` then
goes back, finds the first offender and raises. Good data is so read once.
"""

from __future__ import annotations

from numbers import Real
from typing import TYPE_CHECKING, Any, NamedTuple, NoReturn, TypeAlias

import numpy as np
import numpy.typing as npt

from softcal.errors import InputError, InputTypeError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

Column: TypeAlias = npt.NDArray[Any]
"""One-dimensional array of any real dtype, as the caller holds it where NumPy can read that."""

FloatArray: TypeAlias = npt.NDArray[np.float64]

SMALLEST_WEIGHT = 1e-100
LARGEST_WEIGHT = 1e100
"""Between these the square of a weight is a normal float64, and so are sums of it."""

_ROWS_AT_ONCE = 1 << 16


class Names(NamedTuple):
    """What the caller calls the columns, for messages that name them."""

    y_true: str = "y_true"
    y_prob: str = "y_prob"
    sample_weight: str = "sample_weight"
    n_votes: str = "n_votes"
    from_logits: str = "scipy.special.expit({})"  # what makes a probability of a logit there


_DEFAULT_NAMES = Names()


class Rows(NamedTuple):
    """Columns of one length whose kind and shape are right; values not yet read."""

    y_true: Column
    y_prob: Column
    sample_weight: Column | None
    n_votes: Column | None
    names: Names

    def blocks(
        self, size: int = _ROWS_AT_ONCE
    ) -> Iterator[tuple[FloatArray, FloatArray, FloatArray | None]]:
        """Walk through (p, y, w) as float64, a bounded number of rows at a time."""
        for start in range(0, self.y_prob.size, size):
            part = slice(start, start + size)
            weight = self.sample_weight
            yield (
                as_float64(self.y_prob[part]),
                as_float64(self.y_true[part]),
                None if weight is None else as_float64(weight[part]),
            )


def rows(
    y_true: npt.ArrayLike,
    y_prob: npt.ArrayLike,
    sample_weight: npt.ArrayLike | None = None,
    n_votes: npt.ArrayLike | None = None,
    names: Names = _DEFAULT_NAMES,
) -> Rows:
    """Check the kind, shape and length of the columns; leave the values unread."""
    y = column(y_true, names.y_true)
    p = column(y_prob, names.y_prob)
    w = None if sample_weight is None else column(sample_weight, names.sample_weight)
    m = None if n_votes is None else _votes(n_votes, names.n_votes, p.size)
    for other, name in ((p, names.y_prob), (w, names.sample_weight), (m, names.n_votes)):
        if other is not None and other.size != y.size:
            message = (
                f"{names.y_true} and {name} must have the same length: {names.y_true} has "
                f"{y.size} rows, {name} has {other.size}. Pass one value of each per row."
            )
            raise InputError(message)
    _refuse_misaligned(
        (y_true, names.y_true),
        (y_prob, names.y_prob),
        (sample_weight, names.sample_weight),
        (n_votes, names.n_votes),
    )
    return Rows(y, p, w, m, names)


def all_valid(
    p: FloatArray, y: FloatArray, w: FloatArray | None, m: FloatArray | None = None
) -> bool:
    """Whether every value keeps the rules; where not, `refuse` says which and why."""
    # Written so that NaN, which fails every comparison, is invalid.
    valid = p.min() >= 0 and p.max() <= 1 and y.min() >= 0 and y.max() <= 1
    if w is not None:
        valid = valid and bool((~_is_bad_weight(w)).all())
    if m is not None:
        valid = valid and bool((~_is_bad_vote(m)).all())
    return bool(valid)


def probabilities(values: npt.ArrayLike, name: str) -> Column:
    """Check one column of probabilities, kind and values."""
    array = column(values, name)
    _refuse_outside_unit(array, name)
    return array


def refuse(data: Rows) -> NoReturn:
    """Raise for the first value that breaks a rule. The caller knows there is one."""
    _refuse_outside_unit(data.y_true, data.names.y_true, data.names.from_logits)
    _refuse_outside_unit(data.y_prob, data.names.y_prob, data.names.from_logits)
    if data.sample_weight is not None:
        _refuse_bad_weights(data.sample_weight, data.names.sample_weight)
    if data.n_votes is not None:
        _refuse_bad_votes(data.n_votes, data.names.n_votes)
    message = "the data changed while it was being read; try again on a copy of it."
    raise InputError(message)


def refuse_no_weight(data: Rows) -> NoReturn:
    """Raise because every weight is zero, which leaves no row to measure."""
    name = data.names.sample_weight
    message = (
        f"{name} must have a positive value somewhere: all {data.y_prob.size} are 0, which "
        f"leaves no row. Leave {name} out to count every row once."
    )
    raise InputError(message)


def refuse_soft_labels(data: Rows) -> NoReturn:
    """Raise because an outcome metric was given labels other than 0 and 1."""
    y, name = data.y_true, data.names.y_true
    soft = (y != 0) & (y != 1)
    if data.sample_weight is not None:
        soft &= data.sample_weight > 0
    message = (
        f"{name} must be 0 or 1 for ece: {_found(y, soft, name)}. Use smece for labels that "
        "are probabilities, or ece(..., threshold=0.5) to harden them on purpose."
    )
    raise InputError(message)


def as_float64(part: Column) -> FloatArray:
    """Give a contiguous float64 view of a block, copying it only where it is not one."""
    return np.ascontiguousarray(part, dtype=np.float64)


def column(values: Any, name: str) -> Column:
    """Turn any array-like into a one-dimensional array of real numbers, without a copy."""
    array = values if type(values) is np.ndarray else _to_array(values, name)
    _refuse_other_shapes(array, name)
    kind = array.dtype.kind
    if kind == "O":
        return _from_objects(array, name)
    if kind not in "fiub":
        what = {"c": "complex numbers", "U": "text", "S": "text", "T": "text"}
        message = (
            f"{name} must hold real numbers: it holds {what.get(kind, str(array.dtype))} "
            f"(dtype {array.dtype}). Convert it to float first."
        )
        raise InputTypeError(message)
    return array


def _refuse_other_shapes(array: Column, name: str) -> None:
    if array.ndim != 1:
        hint = "Pass a list, an array or a column, one value per row."
        if array.ndim == 2 and 1 in array.shape:
            hint = f"Pass that column itself (of an array, {name}.ravel())."
        elif array.ndim == 2:
            hint = f"Pass the column of one class (of an array, {name}[:, 1])."
        message = f"{name} must be one column: it has shape {array.shape}. {hint}"
        raise InputError(message)
    if not array.size:
        message = f"{name} is empty: pass at least one row."
        raise InputError(message)


def _to_array(values: Any, name: str) -> Column:
    if isinstance(values, np.ma.MaskedArray):
        missing = np.ma.getmaskarray(values)
        if missing.any():
            _refuse_missing(missing.ravel(), name)
        return np.asarray(values.data)
    try:
        if hasattr(values, "detach") and hasattr(values, "device"):
            return _from_torch(values, name)
        if hasattr(values, "iloc") and hasattr(getattr(values, "dtype", None), "na_value"):
            return _from_nullable(values)
        return np.asarray(values)
    except InputTypeError:
        raise
    except (TypeError, ValueError, RuntimeError) as error:
        reason = " ".join(str(error).split())
        message = f"{name} must be a column of numbers: NumPy cannot read it ({reason:.200})."
        raise InputTypeError(message) from error


def _from_nullable(series: Any) -> Column:
    """Read pandas' nullable numbers without making an object of each."""
    if series.dtype.kind in "fiub":
        return np.asarray(series.to_numpy(dtype=np.float64, na_value=np.nan))
    return np.asarray(series)


def _from_torch(tensor: Any, name: str) -> Column:
    if tensor.device.type != "cpu":
        message = (
            f"{name} must be on the CPU: this tensor is on {tensor.device}. Pass {name}.cpu()."
        )
        raise InputTypeError(message)
    tensor = tensor.detach()
    if str(tensor.dtype) == "torch.bfloat16":  # NumPy has no such type
        tensor = tensor.float()
    return np.asarray(tensor.numpy())


def _from_objects(array: Column, name: str) -> Column:
    """Read objects one by one: numbers pass, None and NA are missing, text is refused."""
    from decimal import Decimal  # here, since few ever need it and it is slow to import

    flat = array.ravel()
    missing = np.array([_is_missing(value) for value in flat], dtype=bool)
    if missing.any():
        _refuse_missing(missing, name)
    for position, value in enumerate(flat):
        if not isinstance(value, Real | Decimal | np.bool_):
            message = (
                f"{name} must hold real numbers: {name}[{position}] is "
                f"{value!r:.60} ({type(value).__name__}). Convert it to float first."
            )
            raise InputTypeError(message)
    try:
        return array.astype(np.float64)
    except (OverflowError, ValueError) as error:
        message = f"{name} must hold numbers that fit a float64: {error}."
        raise InputError(message) from error


def _is_missing(value: object) -> bool:
    return value is None or type(value).__name__ in {"NAType", "NaTType"}


def _votes(n_votes: npt.ArrayLike, name: str, size: int) -> Column:
    if isinstance(n_votes, int | np.integer) and not isinstance(n_votes, bool):
        return np.broadcast_to(column([n_votes], name), (size,))
    return column(n_votes, name)


def group_numbers(groups: npt.ArrayLike, data: Rows) -> npt.NDArray[np.intp]:
    """Give each row the number of its group, from 0; groups may be named by anything."""
    array = groups if isinstance(groups, np.ndarray) else _to_array(groups, "groups")
    _refuse_other_shapes(array, "groups")
    if array.size != data.y_true.size:
        message = (
            f"{data.names.y_true} and groups must have the same length: {data.names.y_true} has "
            f"{data.y_true.size} rows, groups has {array.size}."
        )
        raise InputError(message)
    if array.dtype.kind in "fc":
        missing = np.isnan(array)
    elif array.dtype.kind == "O":
        missing = np.array([_is_missing(name) or name != name for name in array])
    else:
        missing = np.zeros(1, dtype=bool)
    if missing.any():
        _refuse_missing(missing, "groups")
    if array.dtype.kind == "O":  # of which NumPy cannot sort a mixture
        numbers: dict[object, int] = {}
        return np.array([numbers.setdefault(name, len(numbers)) for name in array], dtype=np.intp)
    return np.unique(array, return_inverse=True)[1].astype(np.intp)


def _refuse_misaligned(*columns: tuple[Any, str]) -> None:
    """Refuse pandas columns whose indexes differ: their rows may not belong together."""
    indexed = [(values.index, name) for values, name in columns if hasattr(values, "iloc")]
    for index, name in indexed[1:]:
        first, first_name = indexed[0]
        if not first.equals(index):
            message = (
                f"{first_name} and {name} must have the same pandas index: they differ, so "
                f"their rows may not belong together. Align them (for instance {name} = "
                f"{name}.loc[{first_name}.index]), or pass .to_numpy() to go by position."
            )
            raise InputError(message)


def _refuse_missing(missing: npt.NDArray[np.bool_], name: str) -> NoReturn:
    message = (
        f"{name} must have no missing values: {missing.sum()} of {missing.size} are NaN or "
        f"null, the first at position {missing.argmax()}. Drop or impute those rows first; "
        "softcal never drops rows itself."
    )
    raise InputError(message)


def _refuse_outside_unit(
    array: Column, name: str, from_logits: str = _DEFAULT_NAMES.from_logits
) -> None:
    _refuse_nan(array, name)
    outside = _where(array, lambda part: ~((part >= 0) & (part <= 1)))
    if outside is None:
        return
    hint = _hint(array, name, from_logits.format(name))
    message = f"{name} must be in [0, 1]: {_found(array, outside, name)}. {hint}"
    raise InputError(message)


def _hint(array: Column, name: str, from_logits: str) -> str:
    """Say what such values usually are. A hint only: softcal never converts by itself."""
    low, high = float(array.min()), float(array.max())
    if low >= -1e-6 and high <= 1 + 1e-6:
        return f"If this is rounding noise, pass numpy.clip({name}, 0, 1)."
    if low == -1 and high <= 1 and bool(np.isin(array, (-1, 1)).all()):
        return f"If these are -1/+1 labels, pass ({name} + 1) / 2."
    if low >= 0 and high <= 100:
        return f"If these are percentages, pass {name} / 100; if logits, {from_logits}."
    return f"If these are logits, pass {from_logits}."


def _refuse_bad_weights(array: Column, name: str) -> None:
    _refuse_nan(array, name)
    negative = _where(array, lambda part: part < 0)
    if negative is not None:
        message = (
            f"{name} must be 0 or more: {_found(array, negative, name)}. "
            "A weight of 0 leaves a row out."
        )
        raise InputError(message)
    wild = _where(array, _is_bad_weight)
    if wild is not None:
        message = (
            f"{name} must be 0 or between {SMALLEST_WEIGHT:g} and {LARGEST_WEIGHT:g}: "
            f"{_found(array, wild, name)}. Divide the weights by their mean."
        )
        raise InputError(message)


def _refuse_bad_votes(array: Column, name: str) -> None:
    _refuse_nan(array, name)
    wrong = _where(array, _is_bad_vote)
    if wrong is not None:
        message = (
            f"{name} must be whole numbers of 1 or more: {_found(array, wrong, name)}. "
            "Pass how many votes each label is the share of."
        )
        raise InputError(message)


def _is_bad_weight(w: FloatArray) -> npt.NDArray[np.bool_]:
    bad: npt.NDArray[np.bool_] = ~(((w >= SMALLEST_WEIGHT) & (w <= LARGEST_WEIGHT)) | (w == 0))
    return bad


def _is_bad_vote(m: FloatArray) -> npt.NDArray[np.bool_]:
    bad: npt.NDArray[np.bool_] = ~((m >= 1) & (m < 2**53) & (m == np.floor(m)))
    return bad


def _refuse_nan(array: Column, name: str) -> None:
    missing = _where(array, np.isnan)
    if missing is not None:
        _refuse_missing(missing, name)


def _where(
    array: Column, rule: Callable[[FloatArray], npt.NDArray[np.bool_]]
) -> npt.NDArray[np.bool_] | None:
    """Mark the values for which a rule says so, block by block; None if there are none."""
    marks = np.empty(array.size, dtype=bool)
    for start in range(0, array.size, _ROWS_AT_ONCE):
        part = slice(start, start + _ROWS_AT_ONCE)
        marks[part] = rule(as_float64(array[part]))
    return marks if marks.any() else None


def _found(array: Column, offending: npt.NDArray[np.bool_], name: str) -> str:
    first = int(offending.argmax())
    count = int(offending.sum())
    return (
        f"{count} of {array.size} values {'is' if count == 1 else 'are'} not, "
        f"the first is {name}[{first}] = {float(array[first])!r}"
    )
