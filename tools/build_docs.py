"""Build the documentation into build/site, and see that none of its pages needs the network."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

from pictures import draw_all
from pictures.ink import nodules
from softcal.cli.demo import write_nodule_report

ROOT = Path(__file__).parent.parent
SITE = ROOT / "build" / "site"
# What pages show and the build makes: nothing in it is committed, so nothing in it is stale.
MADE = ROOT / "docs" / "made"
# Searching a page opened from disk needs this script, which the theme takes from elsewhere.
SHIM = ROOT / "tools" / "iframe-worker.js"
SHIM_ELSEWHERE = "https://unpkg.com/iframe-worker/shim"
_FETCHED = re.compile(r"<(?:script|img|link)[^>]+(?:src|href)=.(https?://[^\"' >]+)")


def main() -> None:
    """Draw, build strictly; fail on a warning, and on anything a page would fetch."""
    draw_all(MADE)
    write_nodule_report(MADE / "report.html", nodules())
    tool = Path(sys.executable).with_name("zensical")
    command = [str(tool), "build", "--strict", "--clean", "--config-file", "mkdocs.yml"]
    # The formulas' extension lives beside this file.
    environment = os.environ | {"PYTHONPATH": str(ROOT / "tools")}
    subprocess.run(command, cwd=ROOT, env=environment, check=True)  # noqa: S603
    shutil.copy(SHIM, SITE / "assets" / SHIM.name)
    fetched = set()
    for page in SITE.glob("*.html"):
        text = page.read_text(encoding="utf-8").replace(SHIM_ELSEWHERE, f"assets/{SHIM.name}")
        page.write_text(text, encoding="utf-8")
        fetched |= {(page.name, address) for address in _FETCHED.findall(text)}
    if fetched:
        sys.exit(f"the site would fetch from elsewhere: {sorted(fetched)}")


if __name__ == "__main__":
    main()
