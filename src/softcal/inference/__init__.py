"""Intervals, tests, and comparisons. The functions are in the `softcal` namespace."""

from softcal._optional import attach_stub

__getattr__, __dir__, __all__ = attach_stub(__name__, __file__)
