"""Files as rows of DuckDB: text, JSON lines, and Parquet by its readers, others as Arrow tables."""

from __future__ import annotations

import csv
import glob
import os
import re
from collections import Counter
from contextlib import contextmanager
from functools import cached_property, partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from softcal._display import counted
from softcal._io import Remote, place_of, readable, remote_system, spooled, temporary
from softcal.exceptions import InputError, InputTypeError
from softcal.scanning.documents import (
    Places,
    as_lines,
    document_rows,
    first_objects,
    json_lines,
    pointer,
    sheet_rows,
)
from softcal.scanning.formats import (
    LONGEST,
    Format,
    format_of,
    refuse,
    refuse_long,
    refuse_set,
    separator_hint,
    text_of,
)
from softcal.scanning.parquet import parquet_batches
from softcal.scanning.source import (
    ROW_BITS,
    Here,
    Part,
    ReadAgainError,
    quoted_name,
    quoted_text,
)
from softcal.table.files import is_saved, is_saved_schema

if TYPE_CHECKING:
    from collections.abc import Callable, Generator, Iterator, Mapping, Sequence

    from softcal.scanning.data import Files

_TEXT = (".csv", ".tsv", ".txt", ".jsonl", ".ndjson", ".json")
_BINARY = (".parquet", ".pq", ".arrow", ".feather", ".ipc", ".xlsx")
_COMPRESSED = (".gz", ".bz2", ".zst")
SUFFIXES = ", ".join(_TEXT + _BINARY)


def files_of(paths: Any) -> list[Any]:
    """Return the files that a path, a pattern, a folder, or several of these stand for."""
    several = [paths] if isinstance(paths, str | os.PathLike) else list(paths)
    found: dict[Any, Any] = {}  # by resolved path
    for one in several:
        try:
            for path in _files_of_one(one):
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


def _files_of_one(one: Any) -> list[Any]:
    if remote := remote_system(one):
        return _remote_files(*remote)
    path = spooled(Path(one))
    if path.is_dir():
        inside = sorted(below for below in path.rglob("*") if _is_data(below, path))
        return inside or _refuse_none(path)
    if glob.has_magic(str(path)) and not path.exists():
        names = glob.glob(str(path), recursive=True)  # noqa: PTH207 - Path has no absolute ones
        return [below for name in sorted(names) for below in _files_of_one(name)] or _refuse_none(
            path
        )
    if not path.exists():
        message = f"no such file: {path}"
        raise InputError(message)
    return [path]


def _remote_files(address: str, system: Any) -> list[Any]:
    inside = system.find(address) if system.isdir(address) else system.glob(address)
    names = sorted(map(system.unstrip_protocol, inside))
    if system.isdir(address):
        names = [name for name in names if _is_named(name.rpartition("/")[2].lower())]
    return [Remote(name, system) for name in names] or _refuse_none(address)


def _is_named(name: str) -> bool:
    return name.endswith((*_TEXT, *_BINARY, *(text + end for text in _TEXT for end in _COMPRESSED)))


def _is_data(path: Path, folder: Path) -> bool:
    """Return whether a file of a folder is data, by its name; Spark adds other files."""
    hidden = any(part.startswith(("_", ".")) for part in path.relative_to(folder).parts)
    name = path.name.lower()
    return not hidden and _is_named(name) and not (name.endswith(".json") and is_saved(path))


def _refuse_none(path: object) -> list[Any]:
    message = f"no data in {path}: it has no file whose name ends in one of {SUFFIXES}."
    raise InputError(message)


class Scan(NamedTuple):
    """A query on files by a reader of DuckDB. Files that differ in nothing else are one query."""

    con: Any
    select: str
    reader: str
    options: str
    types: Any
    files: tuple[str, ...]

    def __call__(self) -> Any:
        """Return the relation. No character of a name is a pattern."""
        names = ", ".join(quoted_text(glob.escape(name)) for name in self.files)
        sql = f"SELECT {self.select} FROM {self.reader}([{names}]{self.options})"  # noqa: S608
        return self.con.sql(sql)


_FILE, _ROW = '"softcal file"', '"softcal row"'


def _count(part: Part) -> int:
    return len(part.relation.files) if isinstance(part.relation, Scan) else 1


def _numbered(relation: Any) -> Any:
    """Return the query with the names of files and the numbers of rows, if it reads several."""
    if not isinstance(relation, Scan) or len(relation.files) == 1:
        return relation
    return relation._replace(
        select=f"{relation.select}, {_FILE}, row_number() OVER () AS {_ROW}",
        options=f"{relation.options}, filename = 'softcal file'",
    )


class Own(str):
    """A column in SQL, with its type."""

    __slots__ = ("type_",)
    type_: str

    def __new__(cls, sql: str, type_: object) -> Own:
        """Make a column."""
        found = super().__new__(cls, sql)
        found.type_ = str(type_)
        return found


class Opened(NamedTuple):
    """A file: its path, its format, its columns, and a function that raises if it has changed."""

    path: Any
    form: Format
    names: Sequence[str]
    unchanged: Callable[[], None]


def opened_files(how: Files, con: Any) -> Here:
    """Open files. Their columns are those of the first."""
    parts, files = [], []
    for path in files_of(how.paths):
        with readable(path) as unchanged:
            form = format_of(path, how)
            names, part = _READERS[form.kind](path, form, how, con)
        parts.append(part)
        files.append(Opened(path, form, names, unchanged))
    return OpenedFiles(con, parts, files, how.decimal)


class OpenedFiles(Here):
    """Rows of files. Columns of several types become text, or numbers if all are numbers."""

    def __init__(
        self, con: Any, parts: Sequence[Part], files: Sequence[Opened], decimal: str
    ) -> None:
        first = files[0]
        super().__init__(con, parts, first.names, first.path.name)
        self._files = list(files)
        self.decimal = decimal if any(each.form.kind == "text" for each in files) else "."
        if all(each.form.kind == "parquet" and isinstance(each.path, Path) for each in files):
            self.plain = partial(parquet_batches, [each.path for each in files])

    @cached_property
    def _joined(self) -> list[Part]:
        """The parts, with neighbors that differ only in their files joined."""
        found: list[Part] = []
        for part in self._parts:
            one, last = part.relation, found[-1].relation if found else None
            if (
                isinstance(one, Scan) and isinstance(last, Scan)
                and one[:-1] == last[:-1] and part.own == found[-1].own
            ):  # fmt: skip
                found[-1] = _with(found[-1], last._replace(files=last.files + one.files))
            else:
                found.append(part)
        return found

    @property
    def hint(self) -> str:
        """Why a column may be missing."""
        path, form, names, _ = self._files[0]
        if form.kind == "jsonl":
            return Places(first_objects(path, form)).hint
        return separator_hint(names, form.mark) if form.kind == "text" else ""

    def _parts_to_read(self, *, numbered: bool) -> Sequence[Part]:
        if not numbered:
            return self._joined
        return [_with(part, _numbered(part.relation)) for part in self._joined]

    def _at(self, part: Part, number: int) -> str:
        """Return the number of the file and the row of each row in SQL.

        Files that are read together are numbered by their names, because a plan with a thousand
        files takes minutes.
        """
        before = sum(_count(each) for each in self._joined[:number])
        if _count(part) == 1:
            return super()._at(part, before)
        names = ", ".join(map(quoted_text, part.relation.files))  # type: ignore[attr-defined]
        file = f"{before} + enum_code(CAST({_FILE} AS ENUM({names})))"
        first = f"min({_ROW}) OVER (PARTITION BY {_FILE})"
        return f"(({file})::BIGINT << {ROW_BITS}) + {_ROW} - {first} + 1"

    def refuse_unknown(self, name: str) -> None:
        """Raise if no column has a name, or several."""
        if name not in self.names and any(_found_later(part, name) for part in self._parts):
            self.names.append(name)
        super().refuse_unknown(name)

    @cached_property
    def _types(self) -> dict[str, Any]:
        return _Lazy(self._type)

    def _type(self, name: str) -> str:
        """Return the type that the columns of all files have, or are cast to."""
        types = {self._column(part, name).type_ for part in self._joined}
        types = {"VARCHAR" if type_ in ("CSV", "JSON") else type_ for type_ in types}
        lists = {type_.endswith("]") for type_ in types}
        if len(lists) > 1:
            message = f"{name} must hold lists in all files, or in none: it holds both."
            raise InputTypeError(message)
        if len(types) == 1:
            return types.pop()
        numbers = all(type_.endswith("INT") or type_ in _NUMBERS for type_ in types)
        return "DOUBLE[]" if lists == {True} else "DOUBLE" if numbers else "VARCHAR"

    def _column(self, part: Part, name: str) -> Own:
        if name not in part.own and not _found_later(part, name):
            names = next(each.names for each in self._files if place_of(each.path) == part.place)
            Here(self.con, [part], names, part.place).refuse_unknown(name)
        return part.own[name]  # type: ignore[return-value]

    def _own(self, part: Part, name: str, as_: str) -> str:
        own, type_ = self._column(part, name), self._types[name]
        if own.type_ == "CSV":  # an empty text is no number anyway
            return f"nullif({own}, '')" if as_ == "value" else own
        if own.type_ == "JSON":
            found = f"({own} ->> '$')"
        elif type_ == own.type_:
            return own
        else:  # 4.0 of numbers is equal to 4 of text
            found = f"CAST({own} AS {type_})"
            found = rf"regexp_replace({found}, '\.0$', '')" if type_ == "VARCHAR" else found
        as_in_text = self.decimal == "," and as_ != "value" and type_ == "VARCHAR"
        return f"replace({found}, '.', ',')" if as_in_text else found

    def explain(self, error: Exception) -> None:
        """Raise what is wrong with a file, or replace it by a copy and raise to read again."""
        if "Conversion Error" in str(error):  # only lists of JSON are cast, and may fail
            said = " ".join(str(error).partition("LINE 1")[0].split())
            message = f"lists of {self.place} must hold real numbers: {said:.200}"
            raise InputTypeError(message)
        named = [each for each in enumerate(self._files) if str(each[1].path) in str(error)]
        for k, (path, form, names, _) in named or list(enumerate(self._files)):
            scan = self._parts[k].relation
            if not isinstance(scan, Scan):
                continue
            with readable(path):
                if form.kind == "jsonl":
                    for _ in json_lines(path, form):  # raises for the first bad line
                        pass
                if form.kind == "text" and "parallel" not in scan.options:
                    copy = _plain_copy(path, form)
                    plain = _scan_of_csv(self.con, copy, Format("text"), len(names))
                    # Longer lines than usual would need 16 times as much memory in every thread.
                    long = f"{plain.options}, parallel = false, max_line_size = {LONGEST}"
                    plain = plain._replace(options=long)
                    self._parts[k] = _with(self._parts[k], plain)
                    self.__dict__.pop("_joined", None)
                    raise ReadAgainError

    def refuse_changed(self) -> None:
        """Raise if a file has changed since it was opened."""
        for each in self._files:
            with readable(each.path):  # it may be gone
                each.unchanged()


class _Lazy(dict[str, Any]):
    """Values that a function computes when they are first used."""

    def __init__(self, function: Callable[[str], Any]) -> None:
        self._function = function

    def __missing__(self, key: str) -> Any:
        self[key] = self._function(key)
        return self[key]


_NUMBERS = ("DOUBLE", "FLOAT", "INTEGER", "UINTEGER", "BOOLEAN")


def _with(part: Part, relation: Any) -> Part:
    return part._replace(relation=relation)


def _part(relation: Any, names: Sequence[str], own: Sequence[Own], path: Any) -> Part:
    """Return a part without the columns whose names occur twice."""
    number = Counter(names)
    columns = {name: sql for name, sql in zip(names, own, strict=True) if number[name] == 1}
    return Part(relation, columns, place_of(path))


def _parquet(path: Any, _form: Format, _how: Files, con: Any) -> tuple[list[str], Part]:
    import pyarrow.parquet as pq

    with path.open("rb") as file:
        schema = pq.read_schema(file)
    if is_saved_schema(schema):
        refuse_set(path)
    # A folder named day=1 is a column, as Spark writes it, unless the file has a column day.
    folders = [each.partition("=") for each in str(path).split("/")[:-1]]
    keys = {key for key, equals, _ in folders if equals}
    hive = str(bool(keys) and keys.isdisjoint(schema.names)).lower()
    options = f", hive_partitioning = {hive}, hive_types_autocast = false"
    scan = Scan(con, "*", "read_parquet", options, schema.remove_metadata(), (_address(path, con),))
    found = scan()
    names = schema.names + found.columns[len(schema.names) :]
    return names, _part(scan, names, _columns(found), path)


def _columns(relation: Any) -> list[Own]:
    """Return columns by position, because DuckDB renames P beside p."""
    pairs = zip(relation.columns, relation.types, strict=True)
    return [Own(quoted_name(name), type_) for name, type_ in pairs]


def _address(path: Any, con: Any) -> str:
    """Return how DuckDB finds a file, and let it know an object store."""
    if not isinstance(path, Remote):
        return str(path.absolute())
    scheme = path.address.partition(":")[0]
    if scheme not in con.list_filesystems():
        con.register_filesystem(path.system)
    return path.address


def _csv(path: Any, form: Format, _how: Files, con: Any) -> tuple[list[str], Part]:
    rows = _text_rows(path, form)
    names, lines_before = next(rows, ([], 0))
    rows.close()
    if not names:
        refuse(path, "Empty CSV file: it has no line of column names.")
    here = path
    # DuckDB would read a blank line of one column as a missing value, and would take a line end
    # inside a name for that of the lines, and then find no row.
    if len(names) == 1 or re.search("[\r\n]", "".join(names)):
        here, form = _plain_copy(path, form), Format("text")
    elif form.encoding or form.compression or lines_before:
        here, form = _utf_8_copy(path, form), form._replace(compression=None)
    scan = _scan_of_csv(con, here, form, len(names))
    own = [Own(f"c{k}", "CSV") for k in range(len(names))]
    return names, _part(scan, names, own, path)


_NEVER = "\uffff"  # not "", because DuckDB ignores a cell too many that is missing


def _scan_of_csv(con: Any, path: Any, form: Format, columns: int) -> Scan:
    each = ", ".join(f"'c{k}': 'VARCHAR'" for k in range(columns))
    options = (
        f", auto_detect = false, header = true, delim = {quoted_text(form.mark)}, quote = '\"', "
        f"escape = '\"', nullstr = ['{_NEVER}'], strict_mode = true, "
        f"compression = '{form.compression or 'none'}', columns = {{{each}}}"
    )
    return Scan(con, "*", "read_csv", options, None, (_address(path, con),))


def _text_rows(path: Any, form: Format) -> Generator[tuple[list[str], int], None, None]:
    """Yield the rows of a text file that are not blank, each with the number of lines before it."""
    with text_of(path, form) as lines, _long_cells():
        before = int(form.sep_line and bool(next(lines)))
        skipped, rows = before, csv.reader(lines, delimiter=form.mark, strict=True)
        try:
            for row in rows:
                if row:
                    yield row, before
                before = skipped + rows.line_num
        except csv.Error as error:
            if "field limit" in str(error):
                refuse_long(path, before + 1)
            refuse(
                path,
                f"a cell that opens with a quote must end with one, "
                "and a quote inside it must be doubled: the cell that opens in line "
                f"{before + 1} does not. Fix that line.",
            )


@contextmanager
def _long_cells() -> Iterator[None]:
    """Let `csv` read cells as long as a line may be. It has only a limit for the whole process."""
    before = csv.field_size_limit(LONGEST)
    try:
        yield
    finally:
        csv.field_size_limit(before)


def _plain_copy(path: Any, form: Format) -> Path:
    """Copy a text file as CSV that DuckDB reads, and raise for what is wrong with it."""
    copy = temporary(path.name)
    with copy.open("w", encoding="utf-8", newline="") as to:
        write, columns = csv.writer(to, quoting=csv.QUOTE_ALL, lineterminator="\n").writerow, 0
        for number, (row, _) in enumerate(_text_rows(path, form)):
            if not number:
                columns, hint = len(row), separator_hint(row, form.mark)
            if len(row) != columns:
                fix = " Fix that row, or quote cells that contain the separator."
                message = (
                    f"every row of {path.name} must have {counted(columns, 'cell')}, as its header "
                    f"has: row {number} has {counted(len(row), 'cell')}."
                    + (f" The column names contain another separator.{hint}" if hint else fix)
                )
                raise InputError(message)
            write(row if number else range(columns))  # a name may have a line end
    return copy


def _utf_8_copy(path: Any, form: Format) -> Path:
    """Copy a text file as UTF-8, without compression and without lines before the first row.

    DuckDB would read the rows of a truncated compressed file without an error.
    """
    copy, started = temporary(path.name), False
    with text_of(path, form) as lines, copy.open("w", encoding="utf-8", newline="") as to:
        if form.sep_line:
            next(lines)
        for line in lines:
            started = started or bool(line.strip("\r\n"))
            to.write(line if started else "")
    return copy


def _json_lines(path: Any, form: Format, _how: Files, con: Any) -> tuple[list[str], Part]:
    here = path
    with path.open("rb") as file:
        marked = file.read(3) == b"\xef\xbb\xbf"
    if form.encoding or form.compression or marked:
        here, form = _utf_8_copy(path, form), Format("jsonl")
    return _of_lines(here, form, Places(first_objects(here, form)), path, con)


def _of_lines(
    here: Any, form: Format, places: Places, path: Any, con: Any
) -> tuple[list[str], Part]:
    scan = Scan(
        con,
        "CASE WHEN starts_with(json, '{') THEN json ELSE error('not an object') END AS json",
        "read_json_objects",
        f", format = 'newline_delimited', maximum_object_size = {LONGEST}, "
        f"compression = '{form.compression or 'none'}'",
        None,
        (_address(here, con),),
    )
    own = [_in_json(keys, is_list=name in places.lists) for name, keys in places.keys.items()]
    return list(places.keys), _part(scan, list(places.keys), own, path)


def _in_json(places: Sequence[Sequence[str]], *, is_list: bool) -> Own:
    each = [f"json_extract(json, {quoted_text(pointer(keys))})" for keys in places]
    found = each[0] if len(each) == 1 else f"coalesce({', '.join(each)})"
    return Own(f"CAST({found} AS DOUBLE[])", "DOUBLE[]") if is_list else Own(found, "JSON")


def _found_later(part: Part, name: str) -> bool:
    """Look for a name in all lines of JSON, and add it to the columns of a part if it exists."""
    if not isinstance(part.relation, Scan) or part.relation.reader != "read_json_objects":
        return False
    for keys in dict.fromkeys([(name,), tuple(name.split("."))]):
        own = _in_json([keys], is_list=False)
        kinds = {
            kind for (kind,) in part.relation().project(f"json_type({own})").distinct().fetchall()
        }
        if kinds - {None, "OBJECT"}:
            part.own[name] = _in_json([keys], is_list="ARRAY" in kinds)  # type: ignore[index]
            return True
    return False


def _document(path: Any, form: Format, how: Files, con: Any) -> tuple[list[str], Part]:
    rows = document_rows(path, form, how.records)
    return _of_lines(as_lines(rows, path), Format("jsonl"), Places(rows), path, con)


def _workbook(path: Any, _form: Format, how: Files, con: Any) -> tuple[list[str], Part]:
    rows = sheet_rows(path, how.sheet)
    names = next(rows)
    cells = ({str(k): cell for k, cell in enumerate(row) if cell is not None} for row in rows)
    _, part = _of_lines(as_lines(cells, path), Format("jsonl"), Places([]), path, con)
    own = [_in_json([(str(k),)], is_list=False) for k in range(len(names))]
    return names, _part(part.relation, names, own, path)


def _arrow(path: Any, _form: Format, _how: Files, con: Any) -> tuple[list[str], Part]:
    import pyarrow as pa

    remote = isinstance(path, Remote)
    file = pa.BufferReader(path.open().read()) if remote else pa.memory_map(str(path))
    in_file = file.read(6) == b"ARROW1"
    file.seek(0)
    table = pa.ipc.open_file(file).read_all() if in_file else _streamed(file)
    table.validate(full=True)  # else DuckDB may read out of bounds in a damaged file
    renamed = table.rename_columns([f"c{k}" for k in range(table.num_columns)])
    relation = partial(con.from_arrow, renamed)
    return table.column_names, _part(relation, table.column_names, _columns(relation()), path)


def _streamed(file: Any) -> Any:
    """Read an Arrow stream; raise if it lacks its end mark or goes on after it."""
    import pyarrow as pa

    table = pa.ipc.open_stream(file).read_all()
    read = file.tell()
    file.seek(file.size() - len(_END))
    if read != file.size() or file.read() != _END:
        message = "a stream must end with its end mark, or rows may be missing: close its writer."
        raise pa.ArrowInvalid(message)
    return table


_END = b"\xff\xff\xff\xff\0\0\0\0"
_READERS: Mapping[str, Callable[..., tuple[list[str], Part]]] = {
    "parquet": _parquet, "arrow": _arrow, "jsonl": _json_lines, "json": _document,
    "xlsx": _workbook, "text": _csv,
}  # fmt: skip
