"""softcal: calibration of probabilistic predictions when the label is itself a probability."""

from typing import Any

import lazy_loader

from softcal._optional import naming_the_extra

__version__ = "0.2.0.dev0"

# The public names are listed once, in the stub. Each is loaded when it is first used, so that
# `import softcal`, which `softcal --help` does too, costs next to nothing.
_load, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)


def __getattr__(name: str) -> Any:
    """Load a public name when it is first used; name the extra it needs, where one is missing."""
    with naming_the_extra():
        return _load(name)
