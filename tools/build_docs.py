"""Build the documentation into build/site, and check that no page needs the network."""

from __future__ import annotations

import html
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

from pictures import draw_all
from shown_report import write_shown_report

ROOT = Path(__file__).parent.parent
SITE = ROOT / "build" / "site"
# Figures and the report that pages show. They are never committed, so they are never outdated.
MADE = ROOT / "docs" / "made"
# Search in pages opened from disk needs this script, which the theme would fetch.
SHIM = ROOT / "tools" / "iframe-worker.js"
# The changelog is a page of the site; its links are relative to the root of the source.
CHANGELOG = ROOT / "docs" / "changelog.md"
SHIM_ELSEWHERE = "https://unpkg.com/iframe-worker/shim"
_LINK = re.compile(r'<a[^>]+href="([^":#]*)#([^"]+)"')
_FETCHED = re.compile(r"<(?:script|img|link)[^>]+(?:src|href)=.(https?://[^\"' >]+)")


def main() -> None:
    """Draw the figures and build strictly; fail on warnings and on anything a page would fetch."""
    draw_all(MADE)
    write_shown_report(MADE / "report.html")
    text = (ROOT / "CHANGELOG.md").read_text(encoding="utf-8")
    CHANGELOG.write_text(text.replace("](docs/", "]("), encoding="utf-8")
    tool = Path(sys.executable).with_name("zensical")
    command = [str(tool), "build", "--strict", "--clean", "--config-file", "mkdocs.yml"]
    # The extensions are next to this file; they read the docstrings of this source tree.
    path = os.pathsep.join([str(ROOT / "tools"), str(ROOT / "src")])
    environment = os.environ | {"PYTHONPATH": path}
    subprocess.run(command, cwd=ROOT, env=environment, check=True)  # noqa: S603
    shutil.copy(SHIM, SITE / "assets" / SHIM.name)
    fetched = set()
    for page in SITE.glob("*.html"):
        text = page.read_text(encoding="utf-8").replace(SHIM_ELSEWHERE, f"assets/{SHIM.name}")
        page.write_text(text, encoding="utf-8")
        fetched |= {(page.name, address) for address in _FETCHED.findall(text)}
    if fetched:
        sys.exit(f"the site would fetch from the network: {sorted(fetched)}")
    broken = broken_links(SITE)
    if broken:
        sys.exit(f"links to places that do not exist: {sorted(broken)}")


def broken_links(site: Path) -> set[tuple[str, str]]:
    """Return the pages with a link to a place that no page has, and the link."""
    texts = {page.name: page.read_text(encoding="utf-8") for page in site.glob("*.html")}
    places = {name: set(re.findall(r'\bid="([^"]+)"', text)) for name, text in texts.items()}
    return {
        (name, f"{page}#{place}")
        for name, text in texts.items()
        for page, place in _LINK.findall(text)
        if html.unescape(place) not in places.get(page or name, set())
    }


if __name__ == "__main__":
    main()
