"""Convert what the caller passes to NumPy arrays of numbers or names, without checking values."""

from __future__ import annotations

from numbers import Real
from typing import TYPE_CHECKING, Any, NoReturn, Protocol, TypeAlias, TypeGuard

import numpy as np
import numpy.typing as npt

from softcal._validation.rules import MISSING, NOWHERE
from softcal.exceptions import InputError, InputTypeError

if TYPE_CHECKING:
    from collections.abc import Sequence

Column: TypeAlias = npt.NDArray[Any]
"""One-dimensional array of any real dtype, not copied where NumPy can read the caller's data."""

REAL = "fiub"
"""Kinds of dtype that hold real numbers."""


class VoteLabels(Protocol):
    """Labels that have their numbers of votes, as `softcal.Votes` has."""

    @property
    def classes(self) -> tuple[Any, ...]: ...
    @property
    def n_classes(self) -> int: ...
    @property
    def shares(self) -> npt.NDArray[np.float64]: ...
    @property
    def effective_totals(self) -> npt.NDArray[Any]: ...
    @property
    def index(self) -> Any: ...


def have_votes(labels: object) -> TypeGuard[VoteLabels]:
    """Return whether labels have their numbers of votes."""
    return hasattr(labels, "effective_totals")


def column(values: Any, name: str) -> Column:
    """Return an array-like as a one-dimensional array of real numbers, without a copy."""
    array = to_array(values, name)
    _refuse_other_shapes(array, name)
    return real_numbers(array, name)


def matrix(values: Any, name: str, hint: str) -> Column:
    """Return a table or array-like as a two-dimensional array of real numbers.

    The error for a single column ends with the hint.
    """
    array = to_array(values, name)
    if array.ndim != 2 or array.shape[1] < 2:
        single = array.ndim == 1 or (array.ndim == 2 and array.shape[1] == 1)
        message = (
            f"{name} must have one row per item and one column per class: it has shape "
            f"{array.shape}.{' ' + hint if single else ''}"
        )
        raise InputError(message)
    if not array.shape[0]:
        message = f"{name} is empty: pass at least one row."
        raise InputError(message)
    return real_numbers(array, name)


def column_names(table: Any) -> list[Any] | None:
    """Return the column names of a frame, an Arrow table, or a dict; otherwise None."""
    names = getattr(table, "column_names", None)  # Arrow, whose `columns` hold the data
    if names is None:
        names = list(table) if isinstance(table, dict) else getattr(table, "columns", None)
    return None if names is None else list(names)


def numbered(values: Any, name: str) -> tuple[list[Any], npt.NDArray[np.intp]]:
    """Return the distinct names in a column of any type, and the index of each row's name.

    The names are sorted, or in order of appearance where they cannot be compared.
    """
    array = to_array(values, name)
    _refuse_other_shapes(array, name)
    _refuse_missing_names(array, name)
    if array.dtype.kind != "O":
        names, numbers = np.unique(array, return_inverse=True)
        return names.tolist(), numbers.astype(np.intp)
    place: dict[Any, int] = {}
    try:
        numbers = np.array([place.setdefault(key, len(place)) for key in array], dtype=np.intp)
    except TypeError:
        _refuse_unhashable(array, name)
    try:
        ordered = sorted(place)
    except TypeError:  # names of types that cannot be compared
        return list(place), numbers
    rank = np.empty(len(place), dtype=np.intp)
    rank[[place[key] for key in ordered]] = np.arange(len(place))
    return ordered, rank[numbers]


def _refuse_unhashable(array: Column, name: str) -> NoReturn:
    """Refuse the first name that cannot be looked up, such as a list or a dict."""
    row = next(k for k, key in enumerate(array) if not _is_hashable(key))
    message = f"{name}[{row}] must be text or a number: got a {type(array[row]).__name__}."
    raise InputTypeError(message)


def _is_hashable(key: Any) -> bool:
    try:
        hash(key)
    except TypeError:
        return False
    return True


def listed(names: Sequence[Any]) -> str:
    """Format names for a message, at most the first twenty."""
    shown = ", ".join(f"{name!r:.60}" for name in names[:20])
    return shown if len(names) <= 20 else f"{shown}, ... ({len(names)} in all)"


def different_names(names: Sequence[Any], size: int, what: str) -> tuple[Any, ...]:
    """Validate names the caller passed: `size` of them, all different."""
    try:
        given = tuple(names)
        set(given)
    except TypeError as error:
        message = f"{what} must be a list of names, such as text or numbers: {error}."
        raise InputTypeError(message) from error
    if len(given) != size or len(set(given)) != size:
        message = (
            f"{what} must be {size} different names: got {len(given)}, of which "
            f"{len(set(given))} are different."
        )
        raise InputError(message)
    return given


def _refuse_missing_names(array: Column, name: str) -> None:
    if array.dtype.kind in "fc":
        missing = np.isnan(array)
    elif array.dtype.kind == "O":
        missing = np.array([_is_missing(key) or key != key for key in array])
    else:
        return
    if missing.any():
        refuse_missing(missing, name)


def _refuse_other_shapes(array: Column, name: str) -> None:
    if array.ndim != 1:
        hint = "Pass a list, an array, or a column, with one value per row."
        if array.ndim == 2 and 1 in array.shape:
            hint = f"Pass that column itself (of an array, {name}.ravel())."
        elif array.ndim == 2:
            hint = f"Pass the column of one class (of an array, {name}[:, 1])."
        message = f"{name} must be one column: it has shape {array.shape}. {hint}"
        raise InputError(message)
    if not array.size:
        message = f"{name} is empty: pass at least one row."
        raise InputError(message)


def to_array(values: Any, name: str) -> Column:
    """Convert an array-like of any shape and type to a NumPy array."""
    if type(values) is np.ndarray:
        return values
    if isinstance(values, np.ma.MaskedArray):
        missing = np.ma.getmaskarray(values)
        if missing.any():
            refuse_missing(missing.ravel(), name)
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
    """Convert nullable numbers of pandas without an object per value."""
    if series.dtype.kind in REAL:
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


def real_numbers(array: Column, name: str) -> Column:
    """Return the array, of any shape; refuse anything except real numbers."""
    kind = array.dtype.kind
    if kind == "O":
        return _from_objects(array, name)
    if kind not in REAL:
        what = {"c": "complex numbers", "U": "text", "S": "text", "T": "text"}
        message = (
            f"{name} must hold real numbers: it holds {what.get(kind, str(array.dtype))} "
            f"(dtype {array.dtype}). Convert it to float first."
        )
        raise InputTypeError(message)
    return array


def _from_objects(array: Column, name: str) -> Column:
    """Convert objects one by one: accept numbers, refuse text, and treat None as missing."""
    from decimal import Decimal  # here, because it is slow to import and rarely needed

    flat = array.ravel()
    missing = np.array([_is_missing(value) for value in flat], dtype=bool)
    if missing.any():
        refuse_missing(missing, name)
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


def refuse_missing(missing: npt.NDArray[np.bool_], name: str) -> NoReturn:
    """Raise the error for missing values."""
    first = f", the first at position {missing.argmax()}"
    raise InputError(MISSING.message(name, int(missing.sum()), missing.size, first, NOWHERE))
