"""Build the documentation into build/site, and check that no page needs the network."""

from __future__ import annotations

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
SHIM_ELSEWHERE = "https://unpkg.com/iframe-worker/shim"
_FETCHED = re.compile(r"<(?:script|img|link)[^>]+(?:src|href)=.(https?://[^\"' >]+)")


def main() -> None:
    """Draw the figures and build strictly; fail on warnings and on anything a page would fetch."""
    draw_all(MADE)
    write_shown_report(MADE / "report.html")
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


if __name__ == "__main__":
    main()
