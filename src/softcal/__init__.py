"""softcal: calibration of probabilistic predictions when the label is itself a probability."""

from softcal._optional import attach_stub

__version__ = "0.3.0.dev0"

# The public names are listed once, in the stub. Each is loaded at its first use, so that
# `import softcal`, which `softcal --help` does too, stays fast.
__getattr__, __dir__, __all__ = attach_stub(__name__, __file__)
