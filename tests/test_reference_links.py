"""Names of functions and commands in the guide are links to the reference."""

from __future__ import annotations

from pathlib import Path

import markdown
import pytest

import api_page
from api_links import address_of, entries
from build_docs import broken_links

DOCS = Path(__file__).parent.parent / "docs"
SMECE = "api_metrics.html#softcal.metrics.binned.smece"


def linked(text: str) -> str:
    extensions = ["api_links", "tables", "attr_list", "md_in_html", "pymdownx.superfences"]
    return str(markdown.markdown(text, extensions=extensions))


def test_overview_is_what_the_generator_writes() -> None:
    written = api_page.PAGE.read_text(encoding="utf-8")
    assert written == api_page.page(), "run python tools/api_page.py"


@pytest.mark.parametrize(
    ("code", "address"),
    [
        ("smece", SMECE),
        ("sc.smece", SMECE),
        ("softcal.metrics.smece", SMECE),
        ("sc.smece(y, p, bins=f(p))", SMECE),
        ("planning.plan", "api_planning.html#softcal.planning.plans.plan"),
        ("TableSet.save", "api_tables.html#softcal.table.tableset.TableSet.save"),
        ("softcal score --format json", "command_line.html#score"),
        ("decide --group COL", "command_line.html#decide"),
        ("scan", "api_tables.html#softcal.scanning.scan.scan"),
        ("score", None),
        ("report", None),
        ("smece(y, p) - smece(z, p)", None),
        ("relplot.smece(y, p)", None),
        ("TableSet.nothing", None),
        ("softcal nothing", None),
    ],
)
def test_inline_code_has_the_address_of_its_entry(code: str, address: str | None) -> None:
    assert address_of(code) == address


def test_only_inline_code_of_text_and_tables_becomes_a_link() -> None:
    link = f'<a href="{SMECE}"><code class="short">smece</code></a>'
    assert linked("Use `smece`, or not.") == f"<p>Use {link}, or not.</p>"
    assert linked("| a |\n|---|\n| `smece` |").count(link) == 1
    for text in ("# `smece`", "[`smece`](x.md)", "    smece", "```\nsmece\n```",
                 "A <code>smece</code>"):  # fmt: skip
        assert SMECE not in linked(text)


def test_words_beside_names_of_commands_are_commands() -> None:
    assert "href" in linked("`compare` returns the difference.")
    assert "href" not in linked("`compare` and `merge` take saved files.")


@pytest.mark.parametrize(("page", "least"), [("metrics", 15), ("choose", 30), ("watch", 5)])
def test_pages_of_the_guide_link_to_the_reference(page: str, least: int) -> None:
    text = linked((DOCS / f"{page}.md").read_text(encoding="utf-8"))
    assert text.count('<a href="api_') + text.count('<a href="command_line') >= least


def test_every_public_name_has_an_address() -> None:
    names = [name for page in api_page.PAGES for name in api_page.names_on(page)]
    assert [name for name in names if not entries()[name.rpartition(".")[2]].endswith(name)] == []
    assert set(api_page.PAGES) == {page.name for page in DOCS.glob("api_*.md")}


def test_links_to_missing_places_are_found(tmp_path: Path) -> None:
    (tmp_path / "a.html").write_text(
        '<p id="x"><a href="#x">1</a> <a href="b.html#y">2</a> <a href="b.html#z">3</a>'
        '<a class="k" href="#w">4</a> <a href="c.html#x">5</a> <a href="https://x.org/#q">6</a>',
        encoding="utf-8",
    )
    (tmp_path / "b.html").write_text('<p class="k" id="y">', encoding="utf-8")
    expected = {("a.html", "b.html#z"), ("a.html", "#w"), ("a.html", "c.html#x")}
    assert broken_links(tmp_path) == expected
