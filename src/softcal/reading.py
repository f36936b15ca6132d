"""What may go wrong while a file is read becomes one line about that file."""

from __future__ import annotations

import re
import sys
from contextlib import contextmanager
from typing import TYPE_CHECKING

from softcal.errors import InputError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

_OF_ARROW = {".parquet", ".pq", ".arrow", ".feather", ".ipc"}


@contextmanager
def readable(path: Path) -> Iterator[Callable[[], None]]:
    """Refuse what cannot be read, with the name of the file and the reason.

    What it gives is to be called after rows were read: it refuses those of a file that something
    else has written to meanwhile, for they may be neither of the old file nor of the new.
    """

    def unchanged() -> None:
        if _stamp(path) != before:
            message = (
                f"cannot read {path}: it changed while it was being read. Try again when nothing "
                "writes to it, or on a copy."
            )
            raise InputError(message)

    try:
        refuse_elsewhere(path)
        if path.exists() and not path.is_file():
            message = f"cannot read {path}: it is not a file. Save what it gives as a file first."
            raise InputError(message)
        before = _stamp(path)
        yield unchanged
    except FileNotFoundError as error:
        message = f"no such file: {path}"
        raise InputError(message) from error
    except _troubles() as error:
        message = f"cannot read {path}: {_reason(error, path):.300}"
        raise InputError(message) from error


def refuse_elsewhere(path: Path) -> None:
    """Refuse what is no file of this machine, before anybody looks for it here."""
    name = path.as_posix()
    if name in {"-", "/dev/stdin"}:
        message = "standard input is not read: save it as a file first."
        raise InputError(message)
    if re.match(r"[A-Za-z][\w+.-]+:/", name) and not path.exists():
        message = (
            f"cannot read {name.replace(':/', '://', 1)}: only files of this machine are read. "
            "Copy it here first; in Python, a frame of DuckDB, Arrow or Spark may hold it instead."
        )
        raise InputError(message)


def _troubles() -> tuple[type[Exception], ...]:
    """Give what reading may raise; Arrow's errors only where somebody has loaded Arrow."""
    arrow = sys.modules.get("pyarrow")
    return (OSError, UnicodeError, *(() if arrow is None else (arrow.ArrowException,)))


def _stamp(path: Path) -> tuple[int, int, int]:
    found = path.stat()
    return found.st_ino, found.st_size, found.st_mtime_ns


def _reason(error: Exception, path: Path) -> str:
    if isinstance(error, UnicodeEncodeError):  # of the name, when it is handed to Arrow
        return "its name is not UTF-8. Rename it first."
    # Arrow has no error of its own for it. Text in its own formats is UTF-8, or damaged.
    other_text = "UTF8" in str(error) and path.suffix.lower() not in _OF_ARROW
    if other_text or isinstance(error, UnicodeDecodeError):
        return not_utf_8("LATIN1")
    return " ".join(str(error).split())


def not_utf_8(guess: str) -> str:
    """Say that text is in another encoding, and how to change it."""
    return (
        f"it must be text in UTF-8, and looks like {guess}. Save it again as UTF-8 (in a shell, "
        f"iconv -f {guess} -t UTF-8)."
    )
