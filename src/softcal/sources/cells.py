"""Convert the Python values of JSON documents and Excel workbooks to Arrow tables."""

from __future__ import annotations

import json
import zipfile
from itertools import islice
from typing import TYPE_CHECKING, Any

from softcal._display import did_you_mean, keyword
from softcal._io import place_of, with_different_keys
from softcal._optional import naming_the_extra
from softcal.exceptions import InputError
from softcal.sources.columns import is_text, refuse_type, refuse_wide, text_of

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from pathlib import Path

    from softcal.sources.columns import Wanted


_LARGEST = 10**300  # of integers, which are unbounded in Python


class NotANumberError(Exception):
    """Raised for a cell of text in a column of numbers, with its row within the piece."""

    def __init__(self, name: str, row: int, text: str) -> None:
        super().__init__(name, row, text)
        self.name, self.row, self.text = name, row, text


class RaggedRowError(Exception):
    """Raised for a row of text with too few or too many cells; its row is that within the piece."""

    def __init__(self, row: int, columns: int, cells: int) -> None:
        super().__init__(row, columns, cells)
        self.row, self.columns, self.cells = row, columns, cells


def table_of(columns: dict[str, list[Any]], wanted: Wanted) -> Any:
    """Return an Arrow table of columns of Python values: numbers, names as text, and lists."""
    import pyarrow as pa

    found: dict[str, Any] = {}
    for name, cells in columns.items():
        if name in wanted.lists:
            found[name] = _lists(cells, name)
        elif name in wanted.named:
            found[name] = pa.array([text_of(cell) for cell in cells], pa.string())
        else:
            found[name] = numbers_of(cells, name, percent=name in wanted.percents)
    for name in {*wanted.numbers} & {*wanted.named}:
        numbers_of(columns[name], name)  # raises for text if the column is also read as numbers
    return pa.table(found)


def number_of(text: str, decimal: str = ".", *, percent: bool = False) -> float | None:
    """Return the number that a text holds; None if it is not a number.

    >>> number_of("50,5 %", ",", percent=True)
    50.5
    """
    if percent:
        text = text.rstrip().removesuffix("%")
    if "_" in text or (decimal == "," and "." in text):  # Python would read 1_0 as 10
        return None
    try:
        return float(text.replace(decimal, "."))
    except ValueError:
        return None


def numbers_of(cells: list[Any], name: str, *, percent: bool = False) -> Any:
    """Return numbers and Booleans as floats; None and empty text are missing, other text raises.

    If `percent`, texts such as "50%" are numbers too.
    """
    import pyarrow as pa

    numbers: list[float | None] = []
    for row, cell in enumerate(cells):
        if cell is None or (isinstance(cell, str) and not cell.strip()):
            numbers.append(None)
        elif isinstance(cell, float) or (isinstance(cell, int) and abs(cell) < _LARGEST):
            numbers.append(float(cell))
        else:
            found = number_of(cell, percent=True) if percent and isinstance(cell, str) else None
            if found is None:
                raise NotANumberError(name, row, str(cell)) from None
            numbers.append(found)
    return pa.array(numbers, pa.float64())


def without_signs(table: Any, wanted: Wanted) -> Any:
    """Return an Arrow table whose columns of percentages are numbers, where they are text."""
    for name in wanted.signed:
        column = table.column(name)
        if is_text(column.type):
            found = numbers_of(column.to_pylist(), name, percent=True)
            table = table.set_column(table.schema.get_field_index(name), name, found)
    return table


def _lists(cells: list[Any], name: str) -> Any:
    import pyarrow as pa

    try:
        return pa.array(cells, pa.list_(pa.float64()))
    except (pa.ArrowException, TypeError):
        return refuse_type(name, "other values too", "the file", "lists of real numbers")


def json_columns(content: bytes) -> dict[str, list[Any]]:
    """Read a JSON document as columns: an array of objects, or an object of arrays.

    >>> json_columns(b'[{"y": 1, "p": 0.5}, {"y": 0}]')
    {'y': [1, 0], 'p': [0.5, None]}

    Raises
    ------
    ValueError
        If it is something else.
    """
    found = json.loads(content.decode("utf-8-sig"), object_pairs_hook=with_different_keys)
    if isinstance(found, list) and all(isinstance(row, dict) for row in found):
        names = dict.fromkeys(name for row in found for name in row)
        refuse_wide(len(names), len(found))
        return {name: [row.get(name) for row in found] for name in names}
    if isinstance(found, dict) and all(isinstance(cells, list) for cells in found.values()):
        lengths = {name: len(cells) for name, cells in found.items()}
        if len(set(lengths.values())) > 1:
            (a, n), (b, m) = min(lengths.items(), key=_second), max(lengths.items(), key=_second)
            message = f"its arrays must have one length: {a!r:.60} has {n}, {b!r:.60} has {m}."
            raise ValueError(message)
        return found
    message = "JSON must be an array of objects, an object of arrays, or one object per line."
    raise ValueError(message)


def _second(pair: tuple[str, int]) -> int:
    return pair[1]


def sheet_rows(path: Path, sheet: str | None) -> Iterator[Sequence[Any]]:
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
        message = f"cannot read {place_of(path)}: the sheet is empty. Its first row must be names."
        raise InputError(message)
    names = ["" if name is None else str(name) for name in header]
    yield names
    for row in rows:
        yield [*islice(row, len(names)), *[None] * (len(names) - len(row))]


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
        message = f"cannot read {place_of(path)}: not an Excel workbook ({error!s:.100})."
        raise InputError(message) from error
    try:
        found = _chosen(book, path, sheet)
        found.reset_dimensions()  # some programs write wrong dimensions
        # Rows that are not in the file are yielded too, up to the number of the last one.
        rows = found.iter_rows(max_row=_SHEET_ROWS + 1, values_only=True)
        yield from islice(rows, _SHEET_ROWS)
        _refuse_more(rows, path)
    except InputError:
        raise
    except (ValueError, KeyError, TypeError, AttributeError, SyntaxError) as error:
        message = f"cannot read {place_of(path)}: the sheet is damaged ({error!s:.100})."
        raise InputError(message) from error
    finally:
        book.close()
        file.close()


_SHEET_ROWS = 1 << 20
_PACKED = 50  # times smaller than the part itself; sheets are about ten times smaller


def _refuse_more(rows: Iterator[Any], path: Path) -> None:
    if next(rows, None) is not None:
        message = f"cannot read {place_of(path)}: a sheet has at most {_SHEET_ROWS:,} rows."
        raise InputError(message)


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
