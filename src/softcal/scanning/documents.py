"""JSON documents and Excel workbooks as Arrow tables."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from softcal.scanning.formats import Format, stream_of
from softcal.sources.cells import sheet_rows

if TYPE_CHECKING:
    from pathlib import Path


def document_table(path: Path, form: Format, records: str | None) -> Any:
    """Return the records of a JSON document."""
    with stream_of(path, form.compression) as stream:
        found = json.loads(stream.read().decode("utf-8-sig"))
    for key in records.split(".") if records else ():
        found = found[key]
    if isinstance(found, dict):
        return _table({name: list(cells) for name, cells in found.items()})
    names = dict.fromkeys(name for row in found for name in row)
    return _table({name: [row.get(name) for row in found] for name in names})


def sheet_table(path: Path, sheet: str | None) -> Any:
    """Return a sheet of a workbook."""
    names, *rows = sheet_rows(path, sheet)
    return _table({name: [row[k] for row in rows] for k, name in enumerate(names)})


def _table(columns: dict[str, list[Any]]) -> Any:
    import pyarrow as pa

    found = {}
    for name, cells in columns.items():
        try:
            found[name] = pa.array(cells)
        except (pa.ArrowException, TypeError, OverflowError):
            texts = [None if cell is None else str(cell) for cell in cells]
            found[name] = pa.array(texts, pa.string())
    return pa.table(found)
