"""Apply a calibrator to a file: write a copy with additional calibrated columns.

Files are processed in batches, so that memory is bounded. The new file is written atomically.
"""

from __future__ import annotations

import csv
import io
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, NamedTuple, TypeAlias, TypeVar

import numpy as np

from softcal._display import did_you_mean, keyword
from softcal._io import not_utf_8, place_of, readable, written_whole
from softcal._validation.inputs import has_outside, unlikely_scale
from softcal.exceptions import InputError, InputTypeError, warn
from softcal.scanning.documents import document_rows, json_lines, sheet_rows
from softcal.scanning.files import opened_files
from softcal.scanning.formats import Format, format_of, separator_hint, stream_of
from softcal.scanning.numbers import number_hint, number_of
from softcal.scanning.patterns import ClassColumns
from softcal.scanning.source import Here, Session, opened
from softcal.scanning.stream import numbers

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from softcal._validation.inputs import FloatArray
    from softcal._validation.rules import Scale
    from softcal.calibrators.base import CalibrationMap
    from softcal.scanning.data import Files

_PARQUET = {".parquet", ".pq"}
_ROWS_AT_ONCE = 1 << 16
_BYTE_ORDER_MARK = "\ufeff"  # spreadsheets write it at the start of UTF-8 files

SUFFIX = "_calibrated"

MARKS = {".csv": ",", ".tsv": "\t"}
"""The separator of the cells of a text file, by the end of its name."""

Missing: TypeAlias = Literal["refuse", "drop", "keep"]
"""What becomes of rows without a prediction."""

T = TypeVar("T")


class Written(NamedTuple):
    """The number of rows written, and of rows dropped or kept although a prediction is missing."""

    rows: int
    dropped: int = 0
    missing: int = 0


class _Job(NamedTuple):
    """The conversion of each batch."""

    calibrator: CalibrationMap
    columns: Sequence[str]
    names: Sequence[str]  # of the new columns
    form: Format
    how: Files
    scale: Scale
    missing: Missing
    outside: list[bool]  # for each batch, whether a prediction is outside [0, 1]


def write_calibrated(
    calibrator: CalibrationMap,
    how: Files,
    columns: Sequence[str],
    target: Path,
    *,
    names: Sequence[str] | None = None,
    scale: Scale = "probability",
    missing: Missing = "refuse",
) -> Written:
    """Write a copy of a file with a new column for each of the columns.

    From text to text, every byte of the rows is kept, and cells are added at their ends. From
    Parquet to Parquet, the schema, metadata, and values are kept. Other conversions use Arrow. JSON
    and Excel files are read as a whole.

    Parameters
    ----------
    calibrator : CalibrationMap
        The fitted map.
    how : Files
        The file to read.
    columns : sequence of str
        The columns of predictions: one, or one per class.
    target : Path
        The file to write.
    names : sequence of str, optional
        The names of the new columns; by default `NAME_calibrated`.
    scale : str
        The scale of the predictions. New columns hold probabilities.
    missing : {"refuse", "drop", "keep"}
        What to do with rows without a prediction: raise, leave them out, or keep them without a
        new value.

    Returns
    -------
    Written
        The number of rows written, and how many were dropped or have no prediction.

    Raises
    ------
    InputError
        If a file cannot be read or written, a column is missing, or a new column already exists.
    """
    if target.suffix.lower() not in {*MARKS, *_PARQUET}:
        message = (
            f"cannot tell the format of {target.name!r}: the name must end in .csv, .tsv, or "
            ".parquet."
        )
        raise InputError(message)
    source = Path(how.paths)
    if calibrator.takes_logits and scale in ("percent", "logprob"):
        given = keyword("pred_scale", scale)
        message = f"the calibrator was fitted on logits: pass logits, not {given}."
        raise InputError(message)
    if calibrator.takes_logits:
        scale = "probability"  # leaves logits unchanged
    stated = keyword("pred_scale", scale)
    if calibrator.takes_logits:
        stated = "this calibrator, which was fitted on logits,"
    with readable(source):
        form = format_of(source, how)
    same_text = form.kind == "text" and MARKS.get(target.suffix.lower()) == form.mark
    with written_whole(target) as beside:
        new = [name + SUFFIX for name in columns] if names is None else names
        job = _Job(calibrator, columns, new, form, how, scale, missing, [])
        written = (_text if same_text else _arrow)(job, source, beside)
    other = calibrator.takes_logits or scale in ("percent", "logit")
    if other and written.rows and not any(job.outside):
        warn(unlikely_scale(", ".join(columns), stated))
    return written


def _refuse_other_number(map_: CalibrationMap, found: ClassColumns, option: str) -> None:
    """Raise if the number of columns differs from the fit, where that number is known."""
    fitted = len(map_.classes or map_.columns or ()) or map_.n_classes
    if len(found.columns) not in (fitted, len(map_.columns or ())) and fitted is not None:
        what, each = ("1 column", "") if fitted == 1 else (f"{fitted} classes", " per class")
        message = (
            f"the calibrator was fitted on {what}, but {option} names {len(found.columns)}: "
            f"{', '.join(found.columns):.200}. Name one column{each}."
        )
        raise InputError(message)


def matched_columns(
    map_: CalibrationMap, found: ClassColumns, option: str
) -> tuple[tuple[str, ...], list[str]]:
    """Return the columns in the order of the classes of the fit, and notes.

    `option` names what states the columns, for a message.
    """
    _refuse_other_number(map_, found, option)
    fitted, columns = map_.columns, found.columns
    if len(columns) == 1:
        (one,), (other,) = columns, fitted or columns
        text = f"the calibrator was fitted on {other!r}, and is applied to {one!r}."
        return columns, [text] * (one != other)
    known = [ClassColumns(names, None) for names in (fitted, map_.classes) if names is not None]
    if known:
        if sorted(known[0].columns) == sorted(columns):
            return known[0].columns, []
        order = next(filter(None, map(found.by_class, known)), None)
        if order is None:
            message = (
                "the columns must be of the classes that the calibrator was fitted on, "
                f"{', '.join(map_.classes or known[0].columns)}: got {', '.join(columns)}. Pass a "
                "pattern such as 'prob_*' whose star stands for the classes, or rename the columns."
            )
            raise InputError(message)
        return order, []
    if map_.n_classes is None:  # it maps all classes alike
        return columns, []
    if found.classes is not None:
        message = (
            "the calibrator stores no names of classes, and a pattern lists columns in the order "
            "of the file: pass --pred-columns a,b,c in the order of the fit."
        )
        raise InputError(message)
    text = "the calibrator stores no names of classes, which are taken in the given order"
    return columns, [f"{text}: {', '.join(columns)}."]


def _reading(source: Path, rows: Iterator[T]) -> Iterator[T]:
    """Yield the rows read, with errors of reading separate from errors of writing."""
    with readable(source) as unchanged:
        try:
            yield from rows
        except csv.Error as error:
            message = f"cannot read {source}: {error}"
            raise InputError(message) from error
        unchanged()


def _calibrated(job: _Job, parts: Sequence[Any], first_row: int) -> FloatArray:
    """Map one batch of one column, or of one column per class."""
    given = np.column_stack(parts) if len(parts) > 1 else parts[0]
    if not len(given):
        return np.empty((0, max(len(parts), 1)))
    try:
        found = job.calibrator.predict(_scaled(given, job.scale))
    except (InputError, InputTypeError) as error:
        message = (
            f"{', '.join(job.columns)}, in the batch from row {first_row + 1}: {error}{_hint(job)}"
        )
        raise type(error)(message) from error
    job.outside.append(has_outside(np.asarray(given, dtype=np.float64)))
    return found.reshape(len(found), -1)


def _hint(job: _Job) -> str:
    """Return a hint at options for scales and missing values, if none is given."""
    if job.calibrator.takes_logits or job.scale != "probability" or job.missing != "refuse":
        return ""
    scale, drop = keyword("pred_scale", "percent"), keyword("drop_missing")
    return f" For another scale, pass {scale}, logit, or logprob; {drop} drops rows."


def _refuse_columns(present: Sequence[str], job: _Job, path: Path) -> None:
    hint = separator_hint(present, job.form.mark) if job.form.kind == "text" else ""
    for name, new in zip(job.columns, job.names, strict=True):
        if present.count(name) != 1:
            problem = f"more than one column {name!r}" if name in present else f"no column {name!r}"
            asked = " Rename one." if name in present else did_you_mean(name, present)
            known = ", ".join(map(repr, present))
            message = f"{path.name} has {problem}.{asked} Its columns are: {known:.5000}.{hint}"
            raise InputError(message)
        if new in present or job.names.count(new) > 1:
            message = (
                f"{path.name} already has a column {new!r}: rename or drop it first, or choose "
                "another name (--as NAME); softcal never overwrites a column."
            )
            raise InputError(message)


# Text to text


def _text(job: _Job, source: Path, target: Path) -> Written:
    columns, form, separator = job.columns, job.form, job.form.mark
    with target.open("w", encoding=form.encoding or "utf-8", newline="") as out:
        records = _reading(source, _records(source, job))
        raw, header = next(records, ("", []))
        _refuse_columns(header, job, source)
        wanted = [header.index(name) for name in columns]
        out.write(_with_cells(raw, separator + _quoted(job.names, separator)))
        done = dropped = missing = 0
        while batch := list(islice(records, _ROWS_AT_ONCE)):
            rows = [cells for _, cells in batch if cells]
            _refuse_ragged(rows, len(header), done + dropped, source.name)
            lacking = {
                k for k, (_, cells) in enumerate(batch)
                if job.missing != "refuse" and cells and _lacks(cells, wanted)
            }  # fmt: skip
            if job.missing == "drop":
                dropped += len(lacking)
                batch = [each for k, each in enumerate(batch) if k not in lacking]
                lacking = set()
            missing += len(lacking)
            rows = [cells for k, (_, cells) in enumerate(batch) if cells and k not in lacking]
            parts = [_numbers(rows, k, header[k], done + dropped, job) for k in wanted]
            found = _calibrated(job, parts, done + dropped).tolist()
            cells_of = (separator.join(map(repr, row)) for row in found)
            added = (separator + cells.replace(".", job.how.decimal) for cells in cells_of)
            empty = separator * len(wanted)
            out.writelines(
                _with_cells(raw, empty if k in lacking else next(added) if cells else "")
                for k, (raw, cells) in enumerate(batch)
            )
            done += len(rows) + len(lacking)
        return Written(done, dropped, missing)


_NO_VALUE = {"", "na", "nan", "null", "none", "n/a", "#n/a", "<na>"}


def _lacks(cells: list[str], wanted: list[int]) -> bool:
    """Return whether a prediction of a row of text is missing."""
    return any(cells[k].strip().lower() in _NO_VALUE for k in wanted)


def _records(source: Path, job: _Job) -> Iterator[tuple[str, list[str]]]:
    """Yield the unchanged text of each record, with quotes and line ends, and its cells."""
    taken: list[str] = []
    form = job.form
    _refuse_bad_lines(job)

    def remembered(lines: Iterable[str]) -> Iterator[str]:
        for line in lines:
            taken.append(line)
            yield line.removeprefix(_BYTE_ORDER_MARK)

    with _open_text(source, form) as lines:
        if form.sep_line:
            taken.append(lines.readline())
        for cells in csv.reader(remembered(lines), delimiter=form.mark, strict=True):
            yield "".join(taken), cells
            taken.clear()


def _open_text(source: Path, form: Format) -> io.TextIOWrapper:
    encoding = form.encoding or "utf-8"
    if form.compression is None:
        return source.open(encoding=encoding, newline="")
    return io.TextIOWrapper(stream_of(source, form.compression), encoding=encoding, newline="")


def _refuse_bad_lines(job: _Job) -> None:
    """Raise for quotes out of place, and for rows with another number of cells."""
    source = opened(job.how, Session())
    assert isinstance(source, Here)  # noqa: S101 - of files
    source.refuse_damaged()


def _with_cells(raw: str, added: str) -> str:
    body = raw.rstrip("\r\n")
    return body + added + raw[len(body) :]


def _quoted(names: Sequence[str], separator: str) -> str:
    """Join names with the separator, quoted where necessary."""
    return separator.join(
        '"' + name.replace('"', '""') + '"' if set(name) & {separator, '"', "\n", "\r"} else name
        for name in names
    )


def _refuse_ragged(rows: list[list[str]], n_cells: int, done: int, file: str) -> None:
    for row, cells in enumerate(rows):
        if len(cells) != n_cells:
            message = (
                f"every row must have {n_cells} cells, as the header has: row {done + row + 1} of "
                f"{file} has {len(cells)}. Fix that row, or quote cells that contain the separator."
            )
            raise InputError(message)


def _numbers(rows: list[list[str]], k: int, name: str, done: int, job: _Job) -> FloatArray:
    found, percent = np.empty(len(rows)), job.scale == "percent"
    for row, cells in enumerate(rows):
        number = number_of(cells[k], job.how.decimal, percent=percent)
        if number is None and not cells[k].strip():
            message = (
                f"{name} must have no missing values: it is missing in row {done + row + 1}. "
                f"Impute it first, or pass {keyword('drop_missing')} to leave such rows out."
            )
            raise InputError(message)
        if number is None:
            message = (
                f"{name} must hold numbers: row {done + row + 1} holds the text "
                f"{cells[k]!r:.60}.{number_hint(cells[k], percent=percent, of_labels=False)}"
            )
            raise InputError(message)
        found[row] = number
    return found


# Through Arrow


def _arrow(job: _Job, source: Path, target: Path) -> Written:
    import pyarrow as pa

    columns, form = job.columns, job.form
    with readable(source):
        schema, batches = _opened(source, job)
    _refuse_columns(schema.names, job, source)
    if form.kind == "text" and any(pa.types.is_binary(field.type) for field in schema):
        message = f"cannot read {place_of(source)}: {not_utf_8('latin-1')}"
        raise InputError(message)
    in_lists = any(_is_list(schema.field(name).type) for name in columns)
    if in_lists and len(columns) > 1:
        message = f"name one column of lists, or single columns: got {', '.join(columns)}."
        raise InputError(message)
    _refuse_nested(schema, target)
    kind = pa.list_(pa.float64()) if in_lists else pa.float64()
    for name in job.names:
        schema = schema.append(pa.field(name, kind))
    done = dropped = missing = 0
    with _writer(target, schema) as out:
        for whole in _reading(source, batches):
            gone = _gone(whole, columns)
            batch = whole if job.missing == "refuse" else whole.filter(pa.array(~gone))
            given = [batch.column(name) for name in columns]
            if in_lists:
                found = _calibrated(job, [_matrix(given[0], columns[0], done)], done)
                starts = np.arange(len(found) + 1, dtype=np.int32) * found.shape[1]
                added = [pa.ListArray.from_arrays(starts, found.ravel())]
            else:
                parts = [
                    _plain_numbers(each, name, done + dropped, job)
                    for name, each in zip(columns, given, strict=True)
                ]
                found = _calibrated(job, parts, done + dropped)
                added = [pa.array(each) for each in found.T]
            if job.missing == "keep":
                places = pa.array(np.cumsum(~gone) - 1, mask=gone)
                batch, added = whole, [each.take(places) for each in added]
                missing += int(gone.sum())
            dropped += whole.num_rows - batch.num_rows
            out.write_batch(pa.record_batch([*batch.columns, *added], schema=schema))
            done += batch.num_rows
    return Written(done, dropped, missing)


def _opened(path: Path, job: _Job) -> tuple[Any, Iterator[Any]]:
    """Return the Arrow schema of a file with all its columns, and its record batches.

    JSON and Excel files are read as a whole, because later rows may change the types.
    """
    form = job.form
    if form.kind == "parquet":
        import pyarrow.parquet as pq

        file = pq.ParquetFile(path)
        return file.schema_arrow, file.iter_batches(_ROWS_AT_ONCE)
    if form.kind == "text":
        from pyarrow import csv as arrow_csv

        _refuse_bad_lines(job)
        parsed = arrow_csv.open_csv(
            stream_of(path, form.compression),
            arrow_csv.ReadOptions(skip_rows=int(form.sep_line), encoding=form.encoding or "utf8"),
            arrow_csv.ParseOptions(delimiter=form.mark, newlines_in_values=True),
            arrow_csv.ConvertOptions(decimal_point=job.how.decimal),
        )
        return parsed.schema, iter(parsed)
    if form.kind == "arrow":
        table = opened_files(job.how, Session()).whole()
    elif form.kind == "xlsx":
        names, *cells = sheet_rows(path, job.how.sheet)
        table = _table([dict(zip(names, row, strict=True)) for row in cells])
    elif form.kind == "json":
        table = _table(document_rows(path, form, job.how.records))
    else:
        table = _table([found for _, _, found in json_lines(path, form)])
    return table.schema, iter(table.to_batches(_ROWS_AT_ONCE))


def _table(rows: list[dict[str, Any]]) -> Any:
    """Return objects as an Arrow table; a column of mixed types becomes text."""
    import pyarrow as pa

    found = {}
    for name in dict.fromkeys(name for row in rows for name in row):
        cells = [row.get(name) for row in rows]
        try:
            found[name] = pa.array(cells)
        except (pa.ArrowException, TypeError, OverflowError):
            texts = [None if cell is None else str(cell) for cell in cells]
            found[name] = pa.array(texts, pa.string())
    return pa.table(found)


def _scaled(values: Any, scale: Scale) -> Any:
    """Return numbers of a scale as probabilities; several columns are logits of classes."""
    if scale == "probability":
        return values
    plain = np.asarray(values, dtype=np.float64)
    if scale == "percent":
        return plain / 100
    if scale == "logprob":
        with np.errstate(over="ignore"):  # infinity is refused, as every value above 1 is
            return np.exp(plain)
    from scipy.special import expit, softmax

    return expit(plain) if plain.ndim == 1 else softmax(plain, axis=1)


def _is_text(kind: Any) -> bool:
    from pyarrow import types

    return bool(types.is_string(kind) or types.is_large_string(kind) or types.is_string_view(kind))


def _is_list(kind: Any) -> bool:
    from pyarrow import types

    return bool(types.is_list(kind) or types.is_large_list(kind) or types.is_fixed_size_list(kind))


def _missing(column: Any) -> Any:
    """Return which values of an Arrow column are missing, or lists that miss a value."""
    import pyarrow as pa
    from pyarrow import compute

    marks = column.is_null(nan_is_null=True)
    gone = np.from_dlpack(marks.cast(pa.uint8())).astype(bool)
    if _is_list(column.type):
        inside = np.isnan(numbers(column.flatten()).astype(np.float64))
        gone[compute.list_parent_indices(column).to_numpy()[inside]] = True
    return gone


def _plain_numbers(column: Any, name: str, first_row: int, job: _Job) -> Any:
    """Return an Arrow column as NumPy numbers; text is allowed for percentages."""
    if job.scale != "percent" or not _is_text(column.type):
        return column.to_numpy(zero_copy_only=False)
    return _numbers([[cell or ""] for cell in column.to_pylist()], 0, name, first_row, job)


def _gone(batch: Any, columns: Sequence[str]) -> Any:
    """Return which rows lack a prediction."""
    gone = np.zeros(batch.num_rows, dtype=bool)
    for name in columns:
        column = batch.column(name)
        gone |= _missing(column)
        if _is_text(column.type):
            gone |= np.array([_lacks([cell or ""], [0]) for cell in column.to_pylist()], dtype=bool)
    return gone


def _refuse_nested(schema: Any, target: Path) -> None:
    """Raise if a text file is to store lists or objects."""
    from pyarrow import types

    nested = [field.name for field in schema if types.is_nested(field.type)]
    if nested and target.suffix.lower() in MARKS:
        message = (
            f"{nested[0]} holds lists or objects, which a text file cannot store: write to a "
            ".parquet file."
        )
        raise InputError(message)


def _matrix(lists: Any, name: str, first_row: int) -> FloatArray:
    """Return one column per class."""
    from pyarrow import compute

    lengths = compute.fill_null(compute.list_value_length(lists), 0).to_numpy()
    other = (lengths != lengths[0]) | (lengths < 2)
    if other.any():
        at = int(other.argmax())
        message = (
            f"{name} must hold lists of one length, of two or more numbers: {other.sum()} of "
            f"{other.size} in the batch from row {first_row + 1} are not, the first is row "
            f"{first_row + at + 1}, which has {lengths[at]}. Omit those rows first."
        )
        raise InputError(message)
    values: FloatArray = lists.flatten().to_numpy(zero_copy_only=False)
    return values.reshape(len(lists), -1)


def _writer(target: Path, schema: Any) -> Any:
    mark = MARKS.get(target.suffix.lower())
    if mark is not None:
        from pyarrow import csv as arrow_csv

        options = arrow_csv.WriteOptions(delimiter=mark)
        return arrow_csv.CSVWriter(target, schema, write_options=options)
    import pyarrow.parquet as pq

    return pq.ParquetWriter(target, schema)
