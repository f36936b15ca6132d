"""Errors softcal raises; all are `SoftcalError`."""

from __future__ import annotations


class SoftcalError(Exception):
    """Base of every error softcal raises about what it was given.

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
    """A value breaks a rule: outside [0, 1], missing, of another length, empty."""


class InputTypeError(SoftcalError, TypeError):
    """A thing of the wrong kind: text, complex numbers, a tensor on a GPU."""


class BinMismatchError(SoftcalError, ValueError):
    """Two tables whose bins do not fit each other."""
