"""Plan the numbers of items and votes of a study."""

from softcal._optional import attach_stub

__getattr__, __dir__, __all__ = attach_stub(__name__, __file__)
