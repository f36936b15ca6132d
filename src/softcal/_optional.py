"""Load public names at their first use, and name the missing extra in errors."""

from __future__ import annotations

from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import lazy_loader  # type: ignore[import-untyped]

if TYPE_CHECKING:
    from collections.abc import Iterator

EXTRAS = {
    "typer": "cli",
    "rich": "cli",
    "narwhals": "frames",
    "pyarrow": "frames",
    "openpyxl": "excel",
    "matplotlib": "plot",
    "altair": "report",
    "jinja2": "report",
    "vl_convert": "report",
    "sklearn": "sklearn",
    "torch": "torch",
    "torchmetrics": "torch",
}


class MissingExtraError(ModuleNotFoundError):
    """Raised when a feature needs an extra that is not installed."""


@contextmanager
def naming_the_extra() -> Iterator[None]:
    """Name the extra to install when a module is missing. Also works as a decorator."""
    try:
        yield
    except ModuleNotFoundError as error:
        module = str(error.name).partition(".")[0]
        if module not in EXTRAS:
            raise
        message = f"this needs {module}: pip install 'softcal[{EXTRAS[module]}]'"
        raise MissingExtraError(message, name=module) from error


def attach_stub(package: str, file: str) -> tuple[Any, Any, list[str]]:
    """Return a package's `__getattr__`, `__dir__`, and `__all__` for the names in its stub.

    Each name is loaded at its first use. Where an extra is missing, the error names it.
    """
    load, list_names, names = lazy_loader.attach_stub(package, file)
    return naming_the_extra()(load), list_names, names
