"""The report that README and the site show: the page of one command, and what a picture shows."""

from __future__ import annotations

import hashlib
import json
import re
import shlex
import shutil
import subprocess
import sys
from html.parser import HTMLParser
from pathlib import Path
from tempfile import TemporaryDirectory

import softcal

COMMAND = (
    "softcal report items.csv --label soft_malignant --votes n_readers --by n_readers "
    "--pred prob_rf_all --pred prob_lr_geometry -o report.html"
)
"""The command beside the pictures, in README.md, docs/index.md, and docs/report.md."""

ITEMS = Path(softcal.__file__).parent / "data" / "lidc_malignancy" / "items.csv"
_BELOW_PICTURES = "where-title"  # the heading of the first section that no picture shows
_OF_ALTAIR = ("$schema", "config")  # parts of a specification that differ between its versions
_LONG = re.compile(r"\d+\.\d{5,}")


def write_shown_report(path: Path) -> None:
    """Write the page of the command."""
    program, *options = shlex.split(COMMAND)
    with TemporaryDirectory() as folder:
        shutil.copy(ITEMS, folder)
        subprocess.run(  # noqa: S603
            [sys.executable, "-m", program, *options], cwd=folder, check=True, capture_output=True
        )
        path.parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(Path(folder) / "report.html", path)


def fingerprint(page: str) -> str:
    """Return the SHA-256 of what a picture of the top of the page shows.

    That is its text, its style sheet, and the specification of the diagram, whose numbers have
    four decimals. Scripts, the rest of the page, the date, and the version are left out: they
    change without changing the picture.
    """
    reader = _Reader()
    reader.feed(page)
    if not reader.is_below:
        message = f"the report has no {_BELOW_PICTURES!r}: state what is below the pictures."
        raise ValueError(message)
    text = " ".join(" ".join(reader.text).split())
    spec = json.loads(reader.charts)["diagram"]
    drawn = {key: part for key, part in spec.items() if key not in _OF_ALTAIR}
    diagram = json.dumps(drawn, sort_keys=True)
    diagram = _LONG.sub(lambda number: f"{float(number[0]):.4f}", diagram)
    return hashlib.sha256("\n".join([text, reader.style, diagram]).encode()).hexdigest()


class _Reader(HTMLParser):
    """Collect the text above `_BELOW_PICTURES`, the style sheet, and the specs of the charts."""

    def __init__(self) -> None:
        super().__init__()
        self.text: list[str] = []
        self.style = self.charts = ""
        self.is_below = False
        self._inside = ""

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.is_below |= ("id", _BELOW_PICTURES) in attrs
        if tag in ("style", "script"):
            self._inside = dict(attrs).get("id") or tag

    def handle_endtag(self, tag: str) -> None:
        if tag in ("style", "script"):
            self._inside = ""

    def handle_data(self, data: str) -> None:
        if self._inside == "style":
            self.style += data
        elif self._inside == "report-charts":
            self.charts += data
        elif not self._inside and not self.is_below:
            self.text.append(data)
