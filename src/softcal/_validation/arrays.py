"""What the caller holds becomes NumPy arrays: of numbers, or of names. Values are not judged."""

from __future__ import annotations

from numbers import Real
from typing import TYPE_CHECKING, Any, NoReturn, TypeAlias

import numpy as np
import numpy.typing as npt

from softcal._validation.rules import MISSING, Spread
from softcal.exceptions import InputError, InputTypeError

if TYPE_CHECKING:
    from collections.abc import Sequence

Column: TypeAlias = npt.NDArray[Any]
"""One-dimensional array of any real dtype, as the caller holds it where NumPy can read that."""

REAL = "fiub"
"""Kinds of dtype that hold real numbers."""


def column(values: Any, name: str) -> Column:
    """Turn any array-like into a one-dimensional array of real numbers, without a copy."""
    array = to_array(values, name)
    _refuse_other_shapes(array, name)
    return real_numbers(array, name)


def matrix(values: Any, name: str, hint: str) -> Column:
    """Turn any table or array-like into a two-dimensional array of real numbers.

    The hint says what to do about a single column.
    """
    array = to_array(values, name)
    if array.ndim != 2 or array.shape[1] < 2:
        single = array.ndim == 1 or (array.ndim == 2 and array.shape[1] == 1)
        message = (
            f"{name} must have one row per item and a column for each of two or more classes: it "
            f"has shape {array.shape}.{' ' + hint if single else ''}"
        )
        raise InputError(message)
    if not array.shape[0]:
        message = f"{name} is empty: pass at least one row."
        raise InputError(message)
    return real_numbers(array, name)


def column_names(table: Any) -> list[Any] | None:
    """Give the names of a table's columns: a frame's, an Arrow table's, a dict's; else None."""
    names = getattr(table, "column_names", None)  # Arrow, whose `columns` are the data
    if names is None:
        names = list(table) if isinstance(table, dict) else getattr(table, "columns", None)
    return None if names is None else list(names)


def numbered(values: Any, name: str) -> tuple[list[Any], npt.NDArray[np.intp]]:
    """Read a column of names, of any kind: give the names, and the number of each row's name.

    The names are in sorted order, or in order of appearance where they cannot be compared.
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
    except TypeError:  # a mixture of kinds
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
    """List names in a message, the first twenty of them."""
    shown = ", ".join(f"{name!r:.60}" for name in names[:20])
    return shown if len(names) <= 20 else f"{shown}, ... ({len(names)} in all)"


def different_names(names: Sequence[Any], size: int, what: str) -> tuple[Any, ...]:
    """Check names the caller gave: as many as asked for, no two alike."""
    try:
        given = tuple(names)
        set(given)
    except TypeError as error:
        message = f"{what} must be a list of names, such as text or numbers: {error}."
        raise InputTypeError(message) from error
    if len(given) != size or len(set(given)) != size:
        message = (
            f"{what} must be {size} different names, one for each of them: got {len(given)}, of "
            f"which {len(set(given))} are different."
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


def to_array(values: Any, name: str) -> Column:
    """Read any array-like, of any shape and kind, as NumPy sees it."""
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
    """Read pandas' nullable numbers without making an object of each."""
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
    """Refuse an array, of any shape, that holds anything but real numbers."""
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
    """Read objects one by one: numbers pass, None and NA are missing, text is refused."""
    from decimal import Decimal  # here, since few ever need it and it is slow to import

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
    """Raise because some of the values are missing."""
    first = f", the first at position {missing.argmax()}"
    nothing = Spread(0, 0, signs=False)
    raise InputError(MISSING.message(name, int(missing.sum()), missing.size, first, nothing))
