"""A module that is not installed, said with the extra that brings it."""

from __future__ import annotations

from contextlib import contextmanager
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator

EXTRAS = {
    "typer": "cli",
    "rich": "cli",
    "narwhals": "frames",
    "pyarrow": "frames",
    "matplotlib": "plot",
    "altair": "report",
    "jinja2": "report",
    "vl_convert": "report",
    "sklearn": "sklearn",
    "torch": "torch",
    "torchmetrics": "torch",
}


class MissingExtraError(ModuleNotFoundError):
    """What was asked for needs an extra that is not installed."""


@contextmanager
def naming_the_extra() -> Iterator[None]:
    """Say which extra to install when one is missing; a decorator, too."""
    try:
        yield
    except ModuleNotFoundError as error:
        module = str(error.name).partition(".")[0]
        if module not in EXTRAS:
            raise
        message = f"this needs {module}: pip install 'softcal[{EXTRAS[module]}]'"
        raise MissingExtraError(message, name=module) from error
