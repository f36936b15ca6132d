"""Take the two screenshots of the report, docs/figures/report*.png, in a browser.

They show the page of the command that README and the site show beside them. The file
docs/figures/screenshots.json says which page that was, so that a test fails once the pictures are
outdated.
"""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from tempfile import TemporaryDirectory

from playwright.sync_api import Page, sync_playwright

from shown_report import COMMAND, fingerprint, write_shown_report

FIGURES = Path(__file__).parent.parent / "docs" / "figures"
# Name, width, height, and whether it is a phone in dark mode.
PICTURES = (("report", 1100, 1500, False), ("report_phone", 390, 1100, True))


def main() -> None:
    """Write the page, and open it at desktop width, and at phone width in dark mode."""
    with TemporaryDirectory() as folder:
        page = Path(folder) / "report.html"
        write_shown_report(page)
        _take(page)
        shown = {"command": COMMAND, "page": fingerprint(page.read_text(encoding="utf-8"))}
    record = {f"{name}.png": shown for name, *_ in PICTURES}
    text = json.dumps(record, indent=1) + "\n"
    (FIGURES / "screenshots.json").write_text(text, encoding="utf-8")


def _take(report: Path) -> None:
    program = shutil.which("chromium") or shutil.which("google-chrome")
    with sync_playwright() as play:
        # As root, Chromium only runs without its sandbox.
        browser = play.chromium.launch(executable_path=program, args=["--no-sandbox"])
        for name, width, height, phone in PICTURES:
            page = browser.new_page(
                viewport={"width": width, "height": height},
                device_scale_factor=1.5,
                color_scheme="dark" if phone else "light",
            )
            page.goto(report.as_uri())
            page.wait_for_timeout(2000)  # until the charts are drawn
            if phone:
                _show_diagram(page)
            page.screenshot(path=FIGURES / f"{name}.png")


def _show_diagram(page: Page) -> None:
    """Scroll to the choice of bins and to the diagram."""
    page.evaluate("document.querySelector('fieldset').scrollIntoView()")
    page.evaluate("window.scrollBy(0, -24)")


if __name__ == "__main__":
    main()
