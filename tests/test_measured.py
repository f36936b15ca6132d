"""No page cites a table that is older than the code it describes."""

from __future__ import annotations

import re
from collections import Counter
from pathlib import Path

import pytest

import measured
from simulations.page import page

ROOT = Path(__file__).parent.parent
ENTRIES = measured.read()
# These name script and commit on the page they write, which one quiet run makes as a whole.
PAGES_OF_THEIR_OWN = {"benchmarks.evidence", "benchmarks.performance"}


@pytest.mark.parametrize("name", ENTRIES)
def test_table_was_measured_with_the_code_of_today(name: str) -> None:
    changed = measured.changed_since(ENTRIES[name])
    assert not changed, (
        f"{', '.join(ENTRIES[name]['writes'])} was measured at {ENTRIES[name]['commit']}, and "
        f"{', '.join(changed)} changed since: run `python tools/measured.py run {name}`"
    )


def test_every_table_is_recorded_once() -> None:
    tables = sorted(f"docs/{path.name}" for path in (ROOT / "docs").glob("*.csv"))
    printed = sorted(f"benchmarks/printed/{path.name}" for path in measured.PRINTED.glob("*.txt"))
    recorded = Counter(path for entry in ENTRIES.values() for path in entry["writes"])
    assert recorded == Counter([*tables, *printed])


def test_every_script_on_a_page_is_recorded() -> None:
    recorded = {measured.script_of(entry["command"]) for entry in ENTRIES.values()}
    for path in (ROOT / "docs").glob("*.md"):
        cited = re.findall(r"\bbenchmarks[./](\w+)(?:\.py)?\b", path.read_text(encoding="utf-8"))
        # References are values of other programs, which the tests compare with softcal's.
        scripts = {f"benchmarks.{name}" for name in cited if not name.endswith("_reference")}
        assert not scripts - recorded - PAGES_OF_THEIR_OWN, path.name


def test_a_page_shows_what_a_script_printed() -> None:
    pages = [path.read_text(encoding="utf-8") for path in (ROOT / "docs").glob("*.md")]
    for path in measured.PRINTED.glob("*.txt"):
        text = path.read_text(encoding="utf-8").rstrip()
        assert any(text in page for page in pages), path.name


def test_words_do_not_change_the_hash_of_a_module_and_numbers_do() -> None:
    code = 'def half(x: float) -> float:\n    """Halve."""\n    {check}\n    return x / {by}\n'
    first = measured.hash_of(code.format(check='raise ValueError("no")', by=2))
    assert measured.hash_of(code.format(check='raise ValueError("never")', by=2)) == first
    assert measured.hash_of(code.format(check='raise ValueError("no")', by=3)) != first
    assert measured.hash_of(code.replace("Halve", "Divide").format(check="pass", by=2)) == first


def test_modules_behind_a_script_include_those_of_its_functions() -> None:
    behind = measured.modules_behind("benchmarks.segments")
    assert {"benchmarks.segments", "softcal.inference.segments"} <= set(behind)
    assert not [name for name in behind if ".cli" in name or ".plot" in name]


def test_page_of_simulations_is_written_from_the_tables() -> None:
    written = (ROOT / "docs" / "simulations.md").read_text(encoding="utf-8")
    assert written == page(), "run `python -m simulations` in tools"
