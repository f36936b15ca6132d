"""Load public names at their first use, and name the missing libraries in errors."""

from __future__ import annotations

import sys
from contextlib import contextmanager
from functools import wraps
from typing import TYPE_CHECKING, Any

import lazy_loader  # type: ignore[import-untyped]

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

_FRAMES = "narwhals duckdb pyarrow"
_CLI = f"typer rich msgspec {_FRAMES}"
_REPORT = "altair jinja2 vl-convert-python"
EXTRAS = {
    "typer": _CLI,
    "rich": _CLI,
    "msgspec": _CLI,
    "narwhals": _FRAMES,
    "duckdb": _FRAMES,
    "pyarrow": _FRAMES,
    "sqlglot": "sqlglot",
    "openpyxl": "openpyxl",
    "matplotlib": "matplotlib",
    "altair": _REPORT,
    "jinja2": _REPORT,
    "vl_convert": _REPORT,
    "sklearn": "scikit-learn",
    "torch": "torch torchmetrics",
    "torchmetrics": "torch torchmetrics",
}
"""What to install if a module is missing: all libraries of the extra that brings it."""


class MissingExtraError(ModuleNotFoundError):
    """Raised when a feature needs a library that is not installed."""


@contextmanager
def naming_the_extra() -> Iterator[None]:
    """Name what to install when a module is missing. Also works as a decorator."""
    try:
        yield
    except ModuleNotFoundError as error:
        module = str(error.name).partition(".")[0]
        if module not in EXTRAS:
            raise
        message = f"this needs {module}: pip install {EXTRAS[module]}"
        raise MissingExtraError(message, name=module) from error


def attach_stub(package: str, file: str) -> tuple[Any, Any, list[str]]:
    """Return a package's `__getattr__`, `__dir__`, and `__all__` for the names in its stub.

    Each name is loaded at its first use. Where a library is missing, the error names it.
    """
    load, list_names, names = lazy_loader.attach_stub(package, file)

    def named(name: str) -> Any:
        found = load(name)
        code = getattr(getattr(found, "__wrapped__", found), "__code__", None)
        if (
            code is not None
            and "bins" in code.co_varnames[: code.co_argcount + code.co_kwonlyargcount]
        ):
            found = _naming_bins(found)
            for module in (package, found.__module__):  # one function, also for pickle
                setattr(sys.modules[module], name, found)
        return found

    return naming_the_extra()(named), list_names, names


def _naming_bins(function: Callable[..., Any]) -> Callable[..., Any]:
    """Return a function that explains the names of `bins=` in other libraries."""

    @wraps(function)
    def explained(*args: Any, **given: Any) -> Any:
        refuse_other_bins(given)
        return function(*args, **given)

    return explained


def refuse_other_bins(given: Mapping[str, Any]) -> None:
    """Raise if a keyword is the name of `bins=` in another library."""
    for name in ("n_bins", "num_bins"):
        if name in given:
            from softcal.exceptions import InputTypeError

            message = f"pass bins={given[name]!r:.60}: softcal has no {name}=."
            raise InputTypeError(message)
