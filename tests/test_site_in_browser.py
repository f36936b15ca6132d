"""The built documentation in a real browser. `make docs` builds it, before the tests of `make check`."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from playwright.sync_api import Browser

SITE = Path(__file__).parent.parent / "build" / "site"
PAGES = sorted(page for page in SITE.glob("*.html") if page.name != "404.html")
pytestmark = pytest.mark.skipif(not PAGES, reason="the site is not built: run make docs")

# The longest line of text, from the height of each character.
LONGEST = """() => {
  let longest = "";
  for (const block of document.querySelectorAll(".md-content :is(p, li, dd)")) {
    if (block.closest("table, .tree, figure") || block.textContent.length < 90) continue;
    const lines = new Map();
    const texts = document.createTreeWalker(block, NodeFilter.SHOW_TEXT);
    for (let text; (text = texts.nextNode()); ) {
      const parent = text.parentElement;
      if (parent.closest("p, li, dd") !== block || parent.closest("math, pre")) continue;
      const range = document.createRange();
      for (let k = 0; k < text.data.length; k++) {
        range.setStart(text, k);
        range.setEnd(text, k + 1);
        const [box] = range.getClientRects();
        if (!box || !box.width) continue;
        const height = Math.round((box.top + box.bottom) / 12);
        lines.set(height, (lines.get(height) || "") + text.data[k]);
      }
    }
    for (const line of lines.values()) {
      if (line.trim().length > longest.length) longest = line.trim();
    }
  }
  return longest;
}"""


def test_lines_have_at_most_90_characters_and_no_page_scrolls_sideways(browser: Browser) -> None:
    page = browser.new_page(viewport={"width": 1920, "height": 1080})
    longest, wide = {}, []
    for path in PAGES:
        page.goto(path.as_uri(), wait_until="domcontentloaded")
        longest[path.name] = page.evaluate(LONGEST)
        page.set_viewport_size({"width": 390, "height": 844})
        if page.evaluate("document.documentElement.scrollWidth > innerWidth"):
            wide.append(path.name)
        page.set_viewport_size({"width": 1920, "height": 1080})
    assert wide == []
    assert {name: line for name, line in longest.items() if len(line) > 90} == {}
    assert max(map(len, longest.values())) > 80  # the lines were found


def test_tabs_fit_beside_each_other(browser: Browser) -> None:
    page = browser.new_page(viewport={"width": 1280, "height": 900})
    page.goto((SITE / "index.html").as_uri())
    tabs = page.locator(".md-tabs__item")
    boxes = [box for k in range(tabs.count()) if (box := tabs.nth(k).bounding_box())]
    assert 1 < len(boxes) <= 7
    assert len({box["y"] for box in boxes}) == 1
    assert boxes[-1]["x"] + boxes[-1]["width"] <= 1280
