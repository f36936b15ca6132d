"""The pages that teach: every number is described, and those of the figures are right."""

from __future__ import annotations

import ast
import re
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

import softcal as sc
from pictures import explained
from softcal.cards.decide import _NAMES
from softcal.cli.schema import schema_names, schema_of

if TYPE_CHECKING:
    from collections.abc import Iterator

ROOT = Path(__file__).parent.parent
PAGE = (ROOT / "docs" / "readings.md").read_text(encoding="utf-8")
OTHERS = {"paper", "calibrator", "tables"}  # tables of the paper, and saved files
WORDS = {"model", "segment", "class", "column", "type", "examples", "could be", "because"}
WORDS |= {"calibration", "value", "method"}  # columns of words, or of numbers with names


def _is_number(schema: dict[str, Any]) -> bool:
    kinds = [schema, *schema.get("anyOf", ()), schema.get("additionalProperties", {})]
    return any(
        isinstance(each, dict) and each.get("type") in ("number", "integer") for each in kinds
    )


def _numbers(schema: Any) -> Iterator[str]:
    """Yield the names of fields that hold a number."""
    if isinstance(schema, dict):
        properties = schema.get("properties", {}).items()
        yield from (name for name, each in properties if _is_number(each))
        for each in schema.values():
            yield from _numbers(each)


@pytest.mark.parametrize("command", sorted(set(schema_names()) - OTHERS))
def test_page_describes_every_number_in_json(command: str) -> None:
    found = set(_numbers(schema_of(command)))
    assert found
    assert {name for name in found if f"`{name}`" not in PAGE} == set()


def _titles(path: Path) -> Iterator[str]:
    """Yield the titles of columns in a file of cards, in one line and without the level."""
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Call) and getattr(node.func, "id", "") == "Column":
            title = node.args[0]
            if isinstance(title, ast.Constant) and isinstance(title.value, str):
                text = re.sub(r"\{level:%\}\s", "", title.value).replace("-\n", "")
                yield text.replace("\n", " ").strip()


def test_page_describes_every_column_of_the_cards() -> None:
    cards = [
        path
        for path in (ROOT / "src/softcal/cards").glob("*.py")
        if path.stem not in ("paper", "demo")
    ]
    titles = {title for path in cards for title in _titles(path)} - WORDS - {""}
    assert len(titles) > 40
    bold = " ".join(re.findall(r"\*\*(.+?)\*\*", PAGE)).lower()
    assert {title for title in titles if title.lower() not in bold} == set()


def test_page_describes_the_numbers_of_results_in_python() -> None:
    packages = (sc.inference, sc.metrics, sc.planning)
    names = {
        name
        for package in packages
        for result in package.__all__
        if result not in ("Assumptions", "CorpCurve")  # inputs of a plan, and steps of a curve
        for name, kind in getattr(getattr(package, result), "__annotations__", {}).items()
        if isinstance(getattr(package, result), type)
        and re.search("float|int|Estimate", str(kind))
        and not name.startswith("_")
    } - {"edges", "logistic"}
    assert len(names) > 40
    assert {name for name in {*names, *_NAMES} if f"`{name}`" not in PAGE} == set()


def test_page_states_the_numbers_of_its_figures() -> None:
    page = " ".join((ROOT / "docs" / "calibration.md").read_text(encoding="utf-8").split())
    rel = explained.overconfident()
    low, high = ((rel.mean_prob[k], rel.mean_label[k]) for k in (1, 8))
    assert f"here {low[0]:.0%} predicted and {low[1]:.0%} happened" in page
    assert f"here {high[0]:.0%} and {high[1]:.0%}" in page
    p = np.linspace(0.0005, 0.9995, 2000)
    labels = {name: explained.mean_label(p, *of) for name, of in explained.SHAPES.items()}
    assert f"bias {sc.bias(labels['too high'], p):+.2f}, slope 1" in page
    for name, (_, slope) in explained.SHAPES.items():
        assert sc.calibration_summary(labels[name], p).slope.value == pytest.approx(slope)
