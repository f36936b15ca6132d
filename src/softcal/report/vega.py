"""Vega as one script: made once per version of vl-convert, and kept in the user's cache."""

from __future__ import annotations

import os
import sys
from contextlib import suppress
from importlib.metadata import version
from pathlib import Path

from softcal._io import written_whole
from softcal.exceptions import InputError

_NEEDED = "window.vegaEmbed = vegaEmbed;"
_USUAL = {"win32": "AppData/Local", "darwin": "Library/Caches"}.get(sys.platform, ".cache")


def vega_script() -> str:
    """Return the script that draws the charts, for a page that needs no network.

    vl-convert takes three seconds to make it, far more than the rest of a report.
    """
    import vl_convert

    with suppress(OSError, UnicodeError, RuntimeError):  # RuntimeError where there is no home
        return _cached().read_text(encoding="utf-8")
    script: str = vl_convert.javascript_bundle(_NEEDED)
    # Where it cannot be kept, it is made again for the next report.
    with suppress(InputError, RuntimeError), written_whole(_cached()) as path:
        path.write_text(script, encoding="utf-8")
    return script


def _cached() -> Path:
    """Name the file, where programs of this user keep what they can make again."""
    cache = os.environ.get("XDG_CACHE_HOME") or Path("~").expanduser() / _USUAL
    return Path(cache) / "softcal" / f"vega-embed-{version('vl-convert-python')}.js"
