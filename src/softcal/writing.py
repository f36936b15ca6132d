"""Files that are whole or not there, whatever happens while they are written."""

from __future__ import annotations

import os
import stat
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING

from softcal.errors import InputError

if TYPE_CHECKING:
    from collections.abc import Iterator

_unfinished: set[Path] = set()


@contextmanager
def written_whole(path: Path) -> Iterator[Path]:
    """Give a place beside the path to write to; rename it there when all went well.

    Nobody ever sees half a file: an interruption or a full disk leaves what was there before. A
    link stays a link, and what it leads to is written. A file that is there keeps its permissions.

    Raises
    ------
    InputError
        If the file cannot be written.
    """
    with _writable(path):
        _refuse_what_is_no_file(path)
        target = Path(os.path.realpath(path)) if path.is_symlink() else path
        target.parent.mkdir(parents=True, exist_ok=True)
        mode = stat.S_IMODE(target.stat().st_mode) if target.exists() else None
        beside = target.with_name(f".softcal-{os.urandom(8).hex()}{target.suffix}")
    _unfinished.add(beside)  # before it is there: a signal may come between any two lines
    try:
        with _writable(path):
            usual = 0o666 if mode is None else mode | stat.S_IWUSR
            os.close(os.open(beside, os.O_CREAT | os.O_EXCL | os.O_WRONLY, usual))
            yield beside
            if mode is not None:
                beside.chmod(mode)
            beside.replace(target)
    finally:
        _remove(beside)


def remove_unfinished() -> None:
    """Remove every file that is not whole, for a program that stops this instant."""
    for beside in tuple(_unfinished):
        _remove(beside)


def _remove(beside: Path) -> None:
    with suppress(OSError):  # it was renamed, or never made
        beside.unlink()
    _unfinished.discard(beside)


def _refuse_what_is_no_file(path: Path) -> None:
    """Refuse a folder, a pipe or a device, which a file would replace, and what is protected."""
    if path.exists() and not path.is_file():
        message = f"cannot write {path}: it is not a file. Give the name of a file."
        raise InputError(message)
    effective = os.access in os.supports_effective_ids
    if path.exists() and not os.access(path, os.W_OK, effective_ids=effective):
        message = f"cannot write {path}: it is write-protected. Give another name."
        raise InputError(message)


@contextmanager
def _writable(path: Path) -> Iterator[None]:
    """Turn what may go wrong while a file is written into one line about that file."""
    try:
        yield
    except OSError as error:
        reason = os.strerror(error.errno) if error.errno else str(error)  # Arrow's are wordy
        message = f"cannot write {path}: {reason}. Nothing of it was written."
        raise InputError(message) from error
