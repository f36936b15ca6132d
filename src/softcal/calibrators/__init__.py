"""Calibrators and classifiers for soft labels, and a comparison of calibration methods."""

from softcal._optional import attach_stub

__getattr__, __dir__, __all__ = attach_stub(__name__, __file__)
