"""Files as rows of DuckDB: text, JSON lines, and Parquet by its readers, others as Arrow tables."""

from __future__ import annotations

import csv
import glob
import io
import os
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from softcal._io import place_of, readable, refuse_elsewhere, spooled
from softcal.exceptions import InputError
from softcal.scanning.documents import document_table, sheet_table
from softcal.scanning.formats import Format, format_of, refuse_set, separator_hint, stream_of
from softcal.scanning.source import Here, Part, quoted_name, quoted_text
from softcal.table.files import is_saved, is_saved_schema

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from softcal.scanning.data import Files

_TEXT = (".csv", ".tsv", ".txt", ".json", ".jsonl", ".ndjson")
_OTHERS = (".parquet", ".arrow", ".feather", ".xlsx")
_COMPRESSED = (".gz", ".bz2", ".zst")
SUFFIXES = ", ".join((*_TEXT, *_OTHERS, *(f".csv{end}" for end in _COMPRESSED)))


def files_of(paths: Any) -> list[Path]:
    """Return the files that a path, a pattern, a folder, or several of these stand for."""
    several = [paths] if isinstance(paths, str | os.PathLike) else list(paths)
    found: dict[Path, Path] = {}  # by resolved path
    for one in several:
        try:
            for path in _files_of_one(Path(one)):
                if path.resolve() in found:
                    message = (
                        f"{path} is named twice, so its rows would count twice. Name each file "
                        "once."
                    )
                    raise InputError(message)
                found[path.resolve()] = path
        except (OSError, UnicodeEncodeError) as error:
            message = f"cannot read {one!s:.100}: {error!s:.100}"
            raise InputError(message) from error
    return list(found.values())


def _files_of_one(path: Path) -> list[Path]:
    path = spooled(path)
    refuse_elsewhere(path)
    if path.is_dir():
        inside = sorted(below for below in path.rglob("*") if _is_data(below, path))
        return inside or _refuse_none(path)
    if glob.has_magic(str(path)) and not path.exists():
        names = glob.glob(str(path), recursive=True)  # noqa: PTH207 - Path has no absolute ones
        found = [Path(name) for name in sorted(names)]
        return [below for one in found for below in _files_of_one(one)] or _refuse_none(path)
    if not path.exists():
        message = f"no such file: {path}"
        raise InputError(message)
    return [path]


def _is_data(path: Path, folder: Path) -> bool:
    """Return whether a file of a folder is data, by its name; Spark adds other files."""
    named = path.relative_to(folder).parts
    *_, before, last = ("", "", *map(str.lower, path.suffixes))
    known = before in _TEXT if last in _COMPRESSED else last in _TEXT + _OTHERS
    if not known or any(part.startswith(("_", ".")) for part in named):
        return False
    return last != ".json" or not is_saved(path)


def _refuse_none(path: Path) -> list[Path]:
    message = f"no data in {path}: it has no file whose name ends in one of {SUFFIXES}."
    raise InputError(message)


def opened_files(how: Files, con: Any) -> Here:
    """Open files. Their columns are those of the first."""
    paths = files_of(how.paths)
    parts, first = [], None
    for path in paths:
        with readable(path):
            form = format_of(path, how)
            names, part = _READERS[form.kind](path, form, how, con)
        if first is None:
            first, mark = names, form.mark
        parts.append(part)
    assert first is not None  # noqa: S101 - there are files
    found = OpenedFiles(con, parts, first, paths[0].name)
    found.decimal = how.decimal
    if len(first) == 1 or format_of(paths[0], how).kind == "text":
        found.hint_ = separator_hint(first, mark)
    return found


class OpenedFiles(Here):
    """Rows of files. JSON lines also have the names of values inside objects, with dots."""


def _parquet(path: Path, _form: Format, _how: Files, con: Any) -> tuple[list[str], Part]:
    import pyarrow.parquet as pq

    schema = pq.read_schema(path)
    if is_saved_schema(schema):
        refuse_set(path)
    relation = partial(_query, con, f"SELECT * FROM read_parquet([{_escaped(path)}])")
    return schema.names, _by_position(relation, schema.names, path)


def _by_position(relation: Callable[[], Any], names: Sequence[str], path: Path) -> Part:
    """Name columns by their positions, because DuckDB renames P beside p."""
    own = dict(zip(names, map(quoted_name, relation().columns), strict=True))
    return Part(relation, own, place_of(path))


def _query(con: Any, sql: str) -> Any:
    return con.sql(sql)


def _escaped(path: Path) -> str:
    """Return a path in SQL in which no character is a pattern."""
    return quoted_text(glob.escape(str(path.absolute())))


def _csv(path: Path, form: Format, _how: Files, con: Any) -> tuple[list[str], Part]:
    here = _as_plain_text(path, form)
    names = _header(here, form)
    columns = ", ".join(f"'c{k}': 'VARCHAR'" for k in range(len(names)))
    compression = {"gzip": "gzip", "zstd": "zstd"}.get(form.compression or "", "none")
    compression = "none" if here != path else compression
    relation = partial(
        _query,
        con,
        f"SELECT * FROM read_csv([{_escaped(here)}], auto_detect = false, header = true, "
        f"delim = {quoted_text(form.mark)}, quote = '\"', escape = '\"', nullstr = [''], "
        f"strict_mode = true, skip = {int(form.sep_line)}, max_line_size = 67108864, "
        f"compression = '{compression}', columns = {{{columns}}})",
    )
    own = {name: f"c{k}" for k, name in enumerate(names)}
    return names, Part(relation, own, place_of(path))


def _as_plain_text(path: Path, form: Format) -> Path:
    """Return a file in UTF-8 that DuckDB can decompress: the file, or a temporary copy."""
    if form.encoding is None and form.compression != "bz2":
        return path
    return spooled_text(path, form)


def spooled_text(path: Path, form: Format) -> Path:
    """Return a temporary copy of a text file, as UTF-8."""
    from softcal._io import temporary

    copy = temporary(path.name)
    with (
        stream_of(path, form.compression) as raw,
        copy.open("w", encoding="utf-8", newline="") as to,
    ):
        text = io.TextIOWrapper(io.BufferedReader(raw), form.encoding or "utf-8", newline="")
        for part in iter(partial(text.read, 1 << 20), ""):
            to.write(part.removeprefix("\ufeff") if not to.tell() else part)
    return copy


def _header(path: Path, form: Format) -> list[str]:
    with _text(path, form) as text:
        if form.sep_line:
            text.readline()
        rows = csv.reader(text, delimiter=form.mark)
        names: list[str] = []
        with suppress(csv.Error):
            names = next((row for row in rows if row), [])
    if not names:
        message = f"cannot read {place_of(path)}: it has no line of column names."
        raise InputError(message)
    return names


def _text(path: Path, form: Format) -> Any:
    compression = form.compression if path.suffix != "" or form.compression != "bz2" else None
    with suppress(OSError):
        with path.open("rb") as file:
            start = file.read(4)
        packed = start.startswith((b"\x1f\x8b", b"BZh", b"\x28\xb5\x2f\xfd"))
        compression = form.compression if packed else None
    return io.TextIOWrapper(
        io.BufferedReader(stream_of(path, compression)), "utf-8-sig", newline="", errors="strict"
    )


def _json_lines(path: Path, form: Format, _how: Files, con: Any) -> tuple[list[str], Part]:
    here = _as_plain_text(path, form)
    relation = partial(
        _query,
        con,
        f"SELECT json FROM read_json_objects([{_escaped(here)}], "
        "format = 'newline_delimited', maximum_object_size = 67108864)",
    )
    names = _json_names(relation().limit(_LOOKED_AT))
    own = {name: _json_value(name, kind) for name, kind in names.items()}
    return list(names), Part(relation, own, place_of(path))


_LOOKED_AT = 1000


def _json_names(rows: Any) -> dict[str, str]:
    """Return the paths of single values and lists in objects, each with what it holds."""
    import json

    found: dict[str, str] = {}

    def look(value: Any, path: str) -> None:
        if isinstance(value, dict):
            for key, inner in value.items():
                look(inner, f"{path}.{key}" if path else key)
        elif value is not None or path not in found:
            kind = (
                "list" if isinstance(value, list) else "text" if isinstance(value, str) else "value"
            )
            found[path] = kind if value is not None else found.get(path, "value")

    for (text,) in rows.fetchall():
        look(json.loads(text), "")
    return found


def _json_value(name: str, kind: str) -> str:
    """Return the value of a dotted name in SQL; a name with a dot in an object comes first."""
    whole = quoted_text(f'$."{name}"')
    path = quoted_text("$." + ".".join(f'"{part}"' for part in name.split(".")))
    if kind == "list":
        return f"CAST(json_extract(json, {path}) AS DOUBLE[])"
    value = f"json_extract_string(json, {path})"
    return value if "." not in name else f"coalesce(json_extract_string(json, {whole}), {value})"


def _document(path: Path, form: Format, how: Files, con: Any) -> tuple[list[str], Part]:
    return _of_table(document_table(path, form, how.records), path, con)


def _workbook(path: Path, _form: Format, how: Files, con: Any) -> tuple[list[str], Part]:
    return _of_table(sheet_table(path, how.sheet), path, con)


def _arrow(path: Path, _form: Format, _how: Files, con: Any) -> tuple[list[str], Part]:
    import pyarrow as pa

    source = pa.memory_map(str(path))
    try:
        table = pa.ipc.open_file(source).read_all()
    except pa.ArrowInvalid:
        source.seek(0)
        table = pa.ipc.open_stream(source).read_all()
    table.validate(full=True)  # else DuckDB may read out of bounds in a damaged file
    return _of_table(table, path, con)


def _of_table(table: Any, path: Path, con: Any) -> tuple[list[str], Part]:
    names = table.column_names
    own = {name: f"c{k}" for k, name in enumerate(names)}
    renamed = table.rename_columns([f"c{k}" for k in range(len(names))])
    return names, Part(lambda: con.from_arrow(renamed), own, place_of(path))


_READERS: dict[str, Any] = {
    "parquet": _parquet, "arrow": _arrow, "jsonl": _json_lines, "json": _document,
    "xlsx": _workbook, "text": _csv,
}  # fmt: skip
