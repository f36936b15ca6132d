"""Read and write files safely: readable paths, atomic writes, and saved formats."""

from __future__ import annotations

import atexit
import json
import os
import re
import stat
import sys
from contextlib import contextmanager, nullcontext, suppress
from pathlib import Path, PurePosixPath
from typing import TYPE_CHECKING, Any, NamedTuple

from softcal._display import keyword
from softcal.exceptions import InputError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping

_STARTS_OF_ARROW = (b"PAR1", b"ARRO", b"\xff\xff\xff\xff")


@contextmanager
def readable(path: Path | Remote) -> Iterator[Callable[[], None]]:
    """Raise an error with the name of the file and the reason where a file cannot be read.

    Call the yielded function after reading. It raises if another process has written to the file
    in the meantime. The rows could then be a mixture of the old file and the new one.
    """

    def unchanged() -> None:
        if _stamp(path) != before:
            message = (
                f"cannot read {path}: it changed while it was being read. Try again when nothing "
                "writes to it, or on a copy."
            )
            raise InputError(message)

    try:
        if isinstance(path, Path):
            refuse_elsewhere(path)
            if path.exists() and not path.is_file():
                message = f"cannot read {path}: it is not a file."
                raise InputError(message)
        before = _stamp(path)
        yield unchanged
    except FileNotFoundError as error:
        message = f"no such file: {path}"
        raise InputError(message) from error
    except _troubles() as error:
        message = f"cannot read {place_of(path)}: {_reason(error, path):.300}"
        raise InputError(message) from error


class Remote(NamedTuple):
    """A file of an object store, with what readers need of a path."""

    address: str
    system: Any  # of fsspec

    def __str__(self) -> str:
        return self.address

    @property
    def name(self) -> str:
        """The last part of the address."""
        return self.address.rpartition("/")[2]

    @property
    def suffixes(self) -> list[str]:
        """The ends of the name."""
        return PurePosixPath(self.name).suffixes

    def open(self, mode: str = "rb") -> Any:
        """Open the file."""
        return self.system.open(self.address, mode)

    def resolve(self) -> str:
        """Return what identifies the file."""
        return self.address


def remote_system(path: object) -> tuple[str, Any] | None:
    """Return the address of a path that is not on this machine, and what reads it; else None."""
    found = re.fullmatch(r"([A-Za-z][\w+.-]+):/+(.*)", str(path), re.DOTALL)
    if found is None or Path(str(path)).exists():
        return None
    scheme, place = found.groups()
    address = f"{scheme}://{place}"
    try:
        import fsspec  # type: ignore[import-untyped]

        return address, fsspec.filesystem(scheme)
    except (ImportError, ValueError, OSError) as error:
        needs = f" ({error!s:.100})" if "fsspec" in sys.modules else " by fsspec"
        message = (
            f"cannot read {address}: files of other machines are read with extra packages{needs}. "
            "Install them, or copy the file here first."
        )
        raise InputError(message) from error


def refuse_elsewhere(path: Path) -> None:
    """Refuse addresses of other machines, such as s3://, before the file is opened."""
    name = path.as_posix()
    if re.match(r"[A-Za-z][\w+.-]+:/", name) and not path.exists():
        message = (
            f"cannot read {name.replace(':/', '://', 1)}: only files of this machine are read. "
            "Copy it here first, or in Python pass a frame of DuckDB, Arrow, or Spark."
        )
        raise InputError(message)


def _troubles() -> tuple[type[Exception], ...]:
    """Return the errors reading may raise, those of Arrow and DuckDB if loaded."""
    names = (("pyarrow", "ArrowException"), ("duckdb", "Error"))
    loaded = [getattr(sys.modules.get(module), error, None) for module, error in names]
    return (OSError, UnicodeError, MemoryError, *(error for error in loaded if error))


def _stamp(path: Path | Remote) -> tuple[int, ...]:
    if isinstance(path, Remote):
        return ()
    found = path.stat()  # programs can restore the time of writing, but not that of the change
    return found.st_ino, found.st_size, found.st_mtime_ns, found.st_ctime_ns


def _reason(error: Exception, path: Path | Remote) -> str:
    if isinstance(error, UnicodeEncodeError):  # raised for the name, when it is passed to Arrow
        return "its name is not UTF-8. Rename it first."
    if isinstance(error, MemoryError):
        return "there is not enough memory for it."
    # Arrow has no error class for it. Text in Arrow's own formats is UTF-8, or damaged.
    if "UTF8" in str(error) and not _is_of_arrow(path):
        return not_utf_8("latin-1")
    if isinstance(error, UnicodeDecodeError):  # with the encoding of the file
        utf_8 = error.encoding.replace("-", "") == "utf8"
        return not_utf_8("latin-1") if utf_8 else f"it is not text in {error.encoding}."
    return " ".join(str(error).split())


def _is_of_arrow(path: Path | Remote) -> bool:
    with path.open("rb") as file:
        return file.read(4) in _STARTS_OF_ARROW


def not_utf_8(guess: str) -> str:
    """Return the reason for text in another encoding, with the remedy."""
    return (
        f"it must be text in UTF-8, and looks like {guess}. Pass {keyword('encoding', guess)}, or "
        "save it again as UTF-8."
    )


_STANDARD_INPUT = "standard input"
_SPOOLED = "softcal-read-"


def spooled(path: Path) -> Path:
    """Return a temporary copy of a pipe, because files are read more than once.

    Other paths are returned unchanged, and a named pipe is refused later: it may have no writer. A
    pipe is `-` for standard input, or one that the shell opened for `<(...)`. The copy is removed
    when Python ends.
    """
    import shutil  # here, because it is rarely needed

    standard = path.as_posix() in ("-", "/dev/stdin")
    opened = path.as_posix().startswith(("/dev/fd/", "/proc/self/fd/"))
    if not standard and not (opened and (path.is_fifo() or path.is_socket())):
        return path
    copy = temporary(_STANDARD_INPUT if standard else f"pipe {path.name}")
    source = nullcontext(sys.stdin.buffer) if standard else path.open("rb")
    with source as pipe, copy.open("wb") as file:
        shutil.copyfileobj(pipe, file, 1 << 20)
    return copy


def temporary(name: str) -> Path:
    """Return the path of a temporary file of this name, which is removed when Python ends."""
    import tempfile  # here, because it is rarely needed

    copy = Path(tempfile.mkdtemp(prefix=_SPOOLED)) / name
    _unfinished.add(copy)
    atexit.register(_forget, copy)
    return copy


def _forget(file: Path) -> None:
    """Remove a file, and the folder that was created for it."""
    _remove(file)
    if is_copy(file):
        with suppress(OSError):
            file.parent.rmdir()


def place_of(path: Path | Remote) -> str:
    """Return the name of a file for messages; for the copy of a pipe, the name of the pipe."""
    return path.name if isinstance(path, Path) and is_copy(path) else str(path)


def is_copy(path: Path) -> bool:
    """Return whether a file is the temporary copy of a pipe."""
    return path.parent.name.startswith(_SPOOLED)


def stands_for(path: Path, file: os.stat_result) -> bool:
    """Return whether a path is of this file; the copy of standard input, if that is redirected."""
    copied = is_copy(path) and path.name == _STANDARD_INPUT
    return os.path.samestat(os.fstat(0) if copied else path.stat(), file)


_unfinished: set[Path] = set()


@contextmanager
def written_whole(path: Path) -> Iterator[Path]:
    """Write a file atomically: yield a temporary path beside it, and rename it on success.

    An interruption or a full disk leaves the previous file unchanged. A symbolic link stays a
    link, and its target is written. An existing file keeps its permissions.

    Raises
    ------
    InputError
        If the file cannot be written.
    """
    with _writable(path):
        _refuse_unwritable(path)
        target = Path(os.path.realpath(path)) if path.is_symlink() else path
        target.parent.mkdir(parents=True, exist_ok=True)
        mode = stat.S_IMODE(target.stat().st_mode) if target.exists() else None
        beside = target.with_name(f".softcal-{os.urandom(8).hex()}{target.suffix}")
    _unfinished.add(beside)  # before the file exists: a signal may arrive between any two lines
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
    """Remove every unfinished or temporary file, for a program that is about to stop."""
    for beside in tuple(_unfinished):
        _forget(beside)


def _remove(beside: Path) -> None:
    with suppress(OSError):  # it was renamed, or never created
        beside.unlink()
    _unfinished.discard(beside)


def _refuse_unwritable(path: Path) -> None:
    """Refuse a folder, a pipe, or a device, which a file would replace, and protected files."""
    if path.exists() and not path.is_file():
        message = f"cannot write {path}: it is not a file. Pass the name of a file."
        raise InputError(message)
    effective = os.access in os.supports_effective_ids
    if path.exists() and not os.access(path, os.W_OK, effective_ids=effective):
        message = f"cannot write {path}: it is write-protected. Pass another name."
        raise InputError(message)


@contextmanager
def _writable(path: Path) -> Iterator[None]:
    """Convert an `OSError` during writing into an `InputError` that names the file."""
    try:
        yield
    except OSError as error:
        reason = os.strerror(error.errno) if error.errno else str(error)  # shorter than Arrow's
        message = f"cannot write {path}: {reason}. Nothing was written."
        raise InputError(message) from error


def schema_of(saved: object, format_: str, newest: int, name: str) -> int:
    """Return the schema of a saved object; refuse another format, or a newer schema."""
    if not isinstance(saved, dict) or saved.get("format") != format_:
        message = f"not {name}: its 'format' must be {format_!r}."
        raise InputError(message)
    found = saved.get("schema")
    if type(found) is not int or not 1 <= found <= newest:
        message = (
            f"cannot read {name} of schema {found!r:.20}: this softcal reads schemas up to "
            f"{newest}. Upgrade softcal."
        )
        raise InputError(message)
    return found


CHECKSUM = "checksum"


def checksum(saved: Mapping[str, Any], arrays: Iterable[Any] = ()) -> str:
    """Return the SHA-256 of saved content and arrays, whatever the layout of the file."""
    import hashlib  # here, because it is rarely needed

    content = {key: value for key, value in saved.items() if key != CHECKSUM}
    numbers = json.loads(json.dumps(content), parse_int=float)  # 1 and 1.0 are the same number
    digest = hashlib.sha256(json.dumps(numbers, sort_keys=True).encode())
    for array in arrays:
        digest.update(array)
    return digest.hexdigest()


def refuse_other_checksum(saved: Mapping[str, Any], arrays: Iterable[Any] = ()) -> None:
    """Refuse content that does not match its checksum; files of softcal 0.2 have none."""
    if CHECKSUM not in saved:
        return
    with suppress(TypeError, ValueError, RecursionError):  # not what a file of ours contains
        if saved[CHECKSUM] == checksum(saved, arrays):
            return
    message = (
        "the saved content does not match its checksum. The file is damaged, or was edited: use a "
        "copy, or write it again."
    )
    raise InputError(message)


def write_json(path: Path, saved: dict[str, Any]) -> None:
    """Write a JSON file atomically."""
    with written_whole(path) as beside:
        beside.write_text(json.dumps(saved, allow_nan=False) + "\n", encoding="utf-8")


def read_json(path: Path, made_by: str) -> Any:
    """Read a JSON file; the error for other files names what would have written one."""
    with readable(path):
        content = path.read_bytes()
    try:
        return json.loads(content.decode(), object_pairs_hook=with_different_keys)
    except (ValueError, RecursionError) as error:
        message = f"cannot read {path}: it is not JSON, as {made_by} writes it: {error!s:.100}"
        raise InputError(message) from error


def with_different_keys(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    """Return an object of JSON; raise if it has a key twice, because one value would be lost."""
    found = dict(pairs)
    if len(found) < len(pairs):
        twice = next(key for k, (key, _) in enumerate(pairs) if key in dict(pairs[:k]))
        message = f"an object of JSON must have different keys: {twice!r:.60} occurs twice."
        raise ValueError(message)
    return found
