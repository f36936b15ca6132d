"""Intervals, tests, and comparisons; the functions are at the top of softcal."""

from softcal._optional import attach_stub

__getattr__, __dir__, __all__ = attach_stub(__name__, __file__)
