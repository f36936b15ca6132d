"""Errors that softcal raises. All are subclasses of `SoftcalError`."""

from __future__ import annotations


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


class BinMismatchError(SoftcalError, ValueError):
    """Raised when the bins of two tables differ, or do not coarsen to the requested bins."""
