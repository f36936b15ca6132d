"""Calibrators for soft labels, classifiers that use them, and a comparison of methods."""

from softcal._optional import attach_stub

__getattr__, __dir__, __all__ = attach_stub(__name__, __file__)
