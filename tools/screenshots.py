"""Take the two screenshots of the report, docs/figures/report*.png, in a browser.

Run it after `make docs`, which writes the report.
"""

from __future__ import annotations

import shutil
from pathlib import Path

from playwright.sync_api import sync_playwright

DOCS = Path(__file__).parent.parent / "docs"


def main() -> None:
    """Open the report at desktop width, and at phone width in dark mode."""
    program = shutil.which("chromium") or shutil.which("google-chrome")
    with sync_playwright() as play:
        # As root, Chromium only runs without its sandbox.
        browser = play.chromium.launch(executable_path=program, args=["--no-sandbox"])
        for name, width, height, phone in (
            ("report", 1100, 1500, False),
            ("report_phone", 390, 1100, True),
        ):
            page = browser.new_page(
                viewport={"width": width, "height": height},
                device_scale_factor=1.5,
                color_scheme="dark" if phone else "light",
            )
            page.goto((DOCS / "made" / "report.html").as_uri())
            page.wait_for_timeout(2000)  # until the charts are drawn
            if phone:
                diagram = page.get_by_role("heading", name="reliability diagram").first
                diagram.scroll_into_view_if_needed()
                page.evaluate("window.scrollBy(0, 640)")
            page.screenshot(path=DOCS / "figures" / f"{name}.png")


if __name__ == "__main__":
    main()
