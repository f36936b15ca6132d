"""softcal: calibration of probabilistic predictions when the label is itself a probability."""

from softcal._optional import attach_stub

__version__ = "0.2.0.dev0"

# The public names are listed once, in the stub. Each is loaded when it is first used, so that
# `import softcal`, which `softcal --help` does too, costs next to nothing.
__getattr__, __dir__, __all__ = attach_stub(__name__, __file__)
