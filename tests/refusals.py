"""Read the parts of a message that refuses values: rule, count, first offender, and remedy."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import pytest

import softcal as sc

if TYPE_CHECKING:
    from collections.abc import Callable

_PARTS = re.compile(
    r"(?P<name>.+?) (?P<must>must .+?): (?P<count>[\d,]+) of (?P<total>[\d,]+) .*?"
    r"(, the first (?P<first>.+?))?\. (?P<remedy>[A-Z].+)",
    re.DOTALL,
)


@dataclass(frozen=True)
class Refusal:
    """The parts of a message about values that break a rule."""

    name: str
    must: str
    count: int
    total: int
    first: str
    remedy: str


def refusal(call: Callable[..., Any], *args: Any, **options: Any) -> Refusal:
    """Call a function that must refuse values, and return the parts of its message."""
    with pytest.raises(sc.InputError) as caught:
        call(*args, **options)
    found = _PARTS.fullmatch(str(caught.value))
    assert found is not None, f"no rule, count, or remedy in: {caught.value}"
    count, total = (int(found[part].replace(",", "")) for part in ("count", "total"))
    return Refusal(
        found["name"], found["must"], count, total, found["first"] or "", found["remedy"]
    )
