"""JSON and Excel as lines of JSON: where each column is, and the rows of documents and sheets."""

from __future__ import annotations

import json
import zipfile
from itertools import islice
from typing import TYPE_CHECKING, Any

from softcal._display import did_you_mean, keyword
from softcal._io import place_of, temporary, with_different_keys
from softcal._optional import naming_the_extra
from softcal.exceptions import InputError
from softcal.scanning.formats import LONGEST, refuse, stream_of, text_of

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence
    from pathlib import Path

    from softcal.scanning.formats import Format

_LOOKED_AT = 1 << 22  # characters


class Places:
    """Where values and lists are in objects: the keys that lead to each dotted name.

    A key may have dots itself, so a name can have several places.

    >>> Places([{"id": 1, "results": {"confidence": 0.5}, "a.b": [1]}]).keys
    {'id': [('id',)], 'results.confidence': [('results', 'confidence')], 'a.b': [('a.b',)]}
    """

    def __init__(self, rows: Iterable[Any]) -> None:
        self.keys: dict[str, list[tuple[str, ...]]] = {}
        self.lists: dict[str, bool] = {}  # whether each holds objects
        for row in rows:
            self._look(row, ())

    def _look(self, value: Any, keys: tuple[str, ...]) -> None:
        if isinstance(value, dict) and (value or not keys):
            for key, inner in value.items():
                self._look(inner, (*keys, key))
            return
        name = ".".join(keys)
        places = self.keys.setdefault(name, [])
        if keys not in places:
            places.append(keys)
        if isinstance(value, list):
            self.lists[name] = isinstance((value or [0])[0], dict)

    @property
    def hint(self) -> str:
        """The names of the lists of records inside an object; empty if there is none."""
        known = [name for name, of_objects in self.lists.items() if of_objects and name]
        if not known:
            return ""
        names = ", ".join(repr(name)[:60] for name in known[:10])
        return (
            f" It has lists of records: {names}. To read one, pass {keyword('records', known[0])}."
        )


def pointer(keys: Sequence[str]) -> str:
    """Return keys as a JSON pointer, in which no character but / and ~ has a meaning.

    >>> pointer(["a/b", "c.d"])
    '/a~1b/c.d'
    """
    return "".join("/" + key.replace("~", "~0").replace("/", "~1") for key in keys)


def first_objects(path: Path, form: Format) -> Iterator[dict[str, Any]]:
    """Yield the objects of the first lines of a file; raise if a line is not one."""
    seen = 0
    for _, line, found in json_lines(path, form):
        yield found
        seen += len(line)
        if seen > _LOOKED_AT:
            return


def json_lines(path: Path, form: Format) -> Iterator[tuple[int, str, dict[str, Any]]]:
    """Yield the number, the text, and the object of each line that is not blank."""
    with text_of(path, form) as lines:
        for number, line in enumerate(lines, 1):
            if not line.isspace():
                yield number, line, _object(line, f"{place_of(path)}: line {number}")


def _object(line: str, place: str) -> dict[str, Any]:
    problem = f"it starts with {line.lstrip()[:20]!r}"
    try:
        found = json.loads(line, object_pairs_hook=with_different_keys)
    except RecursionError:
        found, problem = None, "its values are nested too deep"
    except ValueError as error:
        found, problem = None, f"{str(error).rstrip('.'):.200}"
    if not isinstance(found, dict):
        message = f"cannot read {place} must be one object of JSON, {{...}}: {problem}."
        raise InputError(message)
    return found


def document_rows(path: Path, form: Format, records: str | None) -> list[dict[str, Any]]:
    """Return the rows of a JSON document.

    A document is an array of objects, an object of arrays, or an object with a list of records
    inside, whose dotted path is `records`.
    """
    with stream_of(path, form.compression) as stream:
        content = stream.read(LONGEST + 1)
    if len(content) > LONGEST:
        refuse(
            path,
            f"a JSON document must have at most {LONGEST >> 20} MB, "
            "because it is read as a whole. Write one object per line.",
        )
    text = content.decode(form.encoding or "utf-8-sig").removeprefix("\ufeff")
    found = None
    try:
        found = json.loads(text, object_pairs_hook=with_different_keys)
        return _rows(found if records is None else _inside(found, records.split(".")))
    except RecursionError:
        refuse(path, "its values are nested too deep.")
    except LookupError:
        refuse(path, f"it has no list of records at {records!r:.60}.{Places([found]).hint}")
    except ValueError as error:
        refuse(path, f"{str(error).rstrip('.'):.200}.{Places([found]).hint}")


def _rows(found: Any) -> list[dict[str, Any]]:
    if isinstance(found, list) and all(isinstance(row, dict) for row in found):
        return found
    if isinstance(found, dict) and all(isinstance(cells, list) for cells in found.values()):
        lengths = {name: len(cells) for name, cells in found.items()}
        if len({*lengths.values()}) > 1:
            a, b = min(lengths, key=lengths.__getitem__), max(lengths, key=lengths.__getitem__)
            message = (
                f"its arrays must have one length: {a!r:.60} has {lengths[a]}, {b!r:.60} has "
                f"{lengths[b]}."
            )
            raise ValueError(message)
        return [dict(zip(found, row, strict=True)) for row in zip(*found.values(), strict=True)]
    message = "JSON must be an array of objects, an object of arrays, or one object per line."
    raise ValueError(message)


def _inside(found: Any, keys: list[str]) -> Any:
    """Return the value at a dotted path, whose keys may have dots themselves."""
    for k in range(len(keys), 0, -1):
        key = ".".join(keys[:k])
        if isinstance(found, dict) and key in found:
            return _inside(found[key], keys[k:])
    if keys:
        raise LookupError
    return found


def as_lines(rows: Iterable[Mapping[str, Any]], path: Path) -> Path:
    """Write rows as JSON lines to a temporary file; dates become text."""
    copy = temporary(path.name)
    with copy.open("w", encoding="utf-8") as to:
        to.writelines(json.dumps(row, default=str) + "\n" for row in rows)
    return copy


def sheet_rows(path: Path, sheet: str | None) -> Iterator[list[Any]]:
    """Yield the names of a sheet's columns, and then its rows of equal length, without empty rows.

    Raises
    ------
    InputError
        If the workbook cannot be read, or if it has several sheets and `sheet` is not given.
    """
    rows = (row for row in _cells(path, sheet) if any(cell is not None for cell in row))
    header = list(next(rows, ()))
    while header and header[-1] is None:
        header.pop()
    if not header:
        refuse(path, "the sheet is empty. Its first row must be names.")
    yield ["" if name is None else str(name) for name in header]
    for row in rows:
        yield [*islice(row, len(header)), *[None] * (len(header) - len(row))]


def _cells(path: Path, sheet: str | None) -> Iterator[tuple[Any, ...]]:
    with naming_the_extra():
        import openpyxl  # type: ignore[import-untyped]
    file = path.open("rb")  # openpyxl would refuse a name without suffix, such as that of a pipe
    try:
        _refuse_packed(file)
        # Streamed, so that only a few rows are in memory. Formulas have their saved values.
        book = openpyxl.load_workbook(file, read_only=True, data_only=True)
    except Exception as error:  # openpyxl raises any exception for a damaged file
        file.close()
        refuse(path, f"not an Excel workbook ({error!s:.100}).")
    try:
        found = _chosen(book, path, sheet)
        found.reset_dimensions()  # some programs write wrong dimensions
        # Rows that are not in the file are yielded too, up to the number of the last one.
        rows = found.iter_rows(max_row=_SHEET_ROWS + 1, values_only=True)
        yield from islice(rows, _SHEET_ROWS)
        if next(rows, None) is not None:
            refuse(path, f"a sheet has at most {_SHEET_ROWS:,} rows.")
    except InputError:
        raise
    except (ValueError, KeyError, TypeError, AttributeError, SyntaxError) as error:
        refuse(path, f"the sheet is damaged ({error!s:.100}).")
    finally:
        book.close()
        file.close()


_SHEET_ROWS = 1 << 20
_PACKED = 50  # times smaller than the part itself; sheets are about ten times smaller


def _refuse_packed(file: Any) -> None:
    """Raise if a part of a workbook is large and packed so well that it cannot be data."""
    for part in zipfile.ZipFile(file).infolist():
        if part.file_size > max(_PACKED * part.compress_size, 1 << 24):
            message = f"{part.filename!r:.60} is more than {_PACKED} times as large as packed"
            raise ValueError(message)


def _chosen(book: Any, path: Path, sheet: str | None) -> Any:
    names = [found.title for found in book.worksheets]
    if sheet is None and len(names) == 1:
        sheet = names[0]
    if sheet not in names:
        problem = f"has {len(names)} sheets" if sheet is None else f"has no sheet {sheet!r:.60}"
        asked = did_you_mean(sheet or "", names)
        message = (
            f"{path.name} {problem}.{asked} Its sheets are: {', '.join(map(repr, names))}. Choose "
            f"one: {keyword('sheet', names[0] if names else 'Sheet1')}."
        )
        raise InputError(message)
    return book[sheet]
