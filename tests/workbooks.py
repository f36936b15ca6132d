"""Workbooks of Excel written by hand: openpyxl rounds numbers to 16 digits, and Excel does not."""

from __future__ import annotations

import zipfile
from typing import TYPE_CHECKING, Any
from xml.sax.saxutils import escape

from openpyxl.utils import get_column_letter  # type: ignore[import-untyped]

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence
    from pathlib import Path

_MAIN = 'xmlns="http://schemas.openxmlformats.org/spreadsheetml/2006/main"'
_OF_FILES = "http://schemas.openxmlformats.org/officeDocument/2006/relationships"
_OF_PACKAGE = "http://schemas.openxmlformats.org/package/2006"
_KIND = "application/vnd.openxmlformats-officedocument.spreadsheetml"


def write_workbook(path: Path, sheets: Mapping[str, Iterable[Sequence[Any]]]) -> None:
    """Write sheets of rows; a cell of None is left out."""
    with zipfile.ZipFile(path, "w") as file:
        named = list(enumerate(sheets, 1))
        parts = "".join(
            f'<Override PartName="/xl/worksheets/sheet{k}.xml" ContentType="{_KIND}.worksheet+xml"/>'
            for k, _ in named
        )
        file.writestr(
            "[Content_Types].xml",
            f'<Types xmlns="{_OF_PACKAGE}/content-types">'
            f'<Default Extension="rels" ContentType="{_OF_PACKAGE.replace("http://schemas.", "")}"/>'
            f'<Override PartName="/xl/workbook.xml" ContentType="{_KIND}.sheet.main+xml"/>{parts}'
            "</Types>",
        )
        file.writestr("_rels/.rels", _links([("officeDocument", "xl/workbook.xml")]))
        listed = "".join(
            f'<sheet name="{escape(name)}" sheetId="{k}" r:id="r{k}"/>' for k, name in named
        )
        file.writestr(
            "xl/workbook.xml",
            f'<workbook {_MAIN} xmlns:r="{_OF_FILES}"><sheets>{listed}</sheets></workbook>',
        )
        links = [("worksheet", f"worksheets/sheet{k}.xml") for k, _ in named]
        file.writestr("xl/_rels/workbook.xml.rels", _links(links))
        for k, name in named:
            rows = "".join(_row(number, row) for number, row in enumerate(sheets[name], 1))
            text = f"<worksheet {_MAIN}><sheetData>{rows}</sheetData></worksheet>"
            file.writestr(f"xl/worksheets/sheet{k}.xml", text)


def _links(links: Sequence[tuple[str, str]]) -> str:
    each = "".join(
        f'<Relationship Id="r{k}" Type="{_OF_FILES}/{kind}" Target="{target}"/>'
        for k, (kind, target) in enumerate(links, 1)
    )
    return f'<Relationships xmlns="{_OF_PACKAGE}/relationships">{each}</Relationships>'


def _row(number: int, cells: Sequence[Any]) -> str:
    found = "".join(
        _cell(f"{get_column_letter(k)}{number}", cell)
        for k, cell in enumerate(cells, 1)
        if cell is not None
    )
    return f'<row r="{number}">{found}</row>'


def _cell(place: str, value: Any) -> str:
    if isinstance(value, str):
        text = f'<is><t xml:space="preserve">{escape(value)}</t></is>'
        return f'<c r="{place}" t="inlineStr">{text}</c>'
    if isinstance(value, bool):
        return f'<c r="{place}" t="b"><v>{int(value)}</v></c>'
    return f'<c r="{place}"><v>{value!r}</v></c>'
