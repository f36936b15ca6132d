"""Errors that softcal raises. All are subclasses of `SoftcalError`."""

from __future__ import annotations

import sys
import warnings


class SoftcalError(Exception):
    """Base class of every error softcal raises about its input.

    Examples
    --------
    >>> import softcal as sc
    >>> try:
    ...     sc.smece([0.5], [1.5])
    ... except sc.SoftcalError as error:
    ...     print(type(error).__name__)
    InputError
    """


class InputError(SoftcalError, ValueError):
    """Raised for an invalid value: outside [0, 1], missing, of the wrong length, or empty."""


class InputTypeError(SoftcalError, TypeError):
    """Raised for input of the wrong type: text, complex numbers, or a tensor on a GPU."""


class SoftcalWarning(UserWarning):
    """Shown for input that can be right but looks like a slip, such as swapped columns.

    Turn it into an error with `warnings.simplefilter("error", softcal.SoftcalWarning)`.
    """


class BinMismatchError(SoftcalError, ValueError):
    """Raised when the bins of two tables differ, or do not coarsen to the requested bins."""


def warn(note: str) -> None:
    """Show a `SoftcalWarning` at the line that called softcal."""
    frame, level = sys._getframe(1), 2  # noqa: SLF001 - `inspect` is slow to import
    while frame.f_back and frame.f_globals["__name__"].partition(".")[0] in _OURS:
        frame, level = frame.f_back, level + 1
    warnings.warn(note, SoftcalWarning, stacklevel=level)


_OURS = ("softcal", "contextlib")  # which calls functions with a decorator
