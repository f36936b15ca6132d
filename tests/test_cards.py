"""Laws of all cards: text, JSON, frames, and HTML show the same results."""

from __future__ import annotations

import json
import math
from dataclasses import dataclass, fields, is_dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd
import pytest
from command_line import softcal_here

import softcal as sc
from softcal.cards.card import Card, Column, Grid, Said, plain
from softcal.cli import options

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

N = 120
MODELS = ("<b>p</b>", "q & co")
TWO = "--label y --pred <b>p</b> --pred q~&~co"  # ~ is a space
BY = "--by site"


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Write rows and votes whose models have names that HTML must escape."""
    rng = np.random.default_rng(8)
    path = tmp_path_factory.mktemp("cards")
    p = rng.uniform(0.05, 0.95, N)
    site = np.where(np.arange(N) % 2, "a", "b")
    rows: dict[str, Any] = {
        "id": np.arange(N), "y": rng.binomial(4, p) / 4, MODELS[0]: p, MODELS[1]: p**2,
        "low": p / 2, "high": (1 + p) / 2, "site": site,
        "day": [f"2026-03-0{1 + k % 3}" for k in range(N)],
        **{f"{which}{c}": v for which, first in (("n_", p), ("<i>p_", p), ("q_", p**2))
           for c, v in (("cat", first), ("dog", 1 - first))},
    }  # fmt: skip
    pd.DataFrame(rows).to_csv(path / "rows.csv", index=False)
    votes = [
        {"id": k, "who": f"w{j}", "kind": "ab"[j % 2], "said": int(rng.random() < p[k])}
        for k in range(N)
        for j in rng.choice(8, 3, replace=False)
    ]
    pd.DataFrame(votes).to_csv(path / "votes.csv", index=False)
    calibrator = sc.calibrators.PlattCalibrator().fit(p, rows["y"])
    (path / "platt.json").write_text(json.dumps(calibrator.to_dict()), encoding="utf-8")
    return path


CLASSES = "--label-columns n_* --pred-columns <i>p_* --pred-columns q_*"
OF_CLASSES = ("<i>p_*", "q_*")
RATED = (
    f"{TWO.removeprefix('--label y ')} --votes-file votes.csv --item id --worker who --vote said "
    "--positive 1 --by-rater kind"
)
WHOLE_AND_TWO_SITES = 3
# Each line with its models, and the rows of its frame for each model.
LINES: dict[str, tuple[tuple[str, ...], int]] = {
    f"score rows.csv {TWO} {BY}": (MODELS, WHOLE_AND_TWO_SITES),
    f"score rows.csv {RATED}": (MODELS, 1),
    f"score rows.csv {CLASSES} {BY}": (OF_CLASSES, WHOLE_AND_TWO_SITES),
    f"score rows.csv {TWO.replace('--label y', '--label-low low --label-high high')} {BY}": (
        MODELS, WHOLE_AND_TWO_SITES),
    f"compare rows.csv {TWO} {BY}": (MODELS, WHOLE_AND_TWO_SITES),
    f"compare rows.csv {TWO} --pred high {BY}": ((*MODELS, "high"), WHOLE_AND_TWO_SITES),
    f"compare rows.csv {CLASSES} {BY}": (OF_CLASSES, WHOLE_AND_TWO_SITES),
    f"check rows.csv {TWO} {BY} --max-smece 0.1": (MODELS, WHOLE_AND_TWO_SITES),
    f"watch rows.csv {TWO} {BY} --day day": (MODELS, 3 + 2),  # days, and sites so far
    f"decide rows.csv {TWO} --threshold 0.2 --threshold 0.5": (MODELS, 2),
    f"audit rows.csv {TWO} {BY} --draws 200 --min-rows 5": (MODELS, WHOLE_AND_TWO_SITES),
    "recalibrate rows.csv --label y --pred <b>p</b> --method platt -o cal.json": (MODELS[:1], 2),
    "apply platt.json rows.csv --pred <b>p</b> -o out.csv": (MODELS[:1], 1),
    "plan --smece 0.05 --label-spread 0.2 --half-width 0.01": ((), 1),
    "inspect rows.csv": (MODELS, 7),  # 14 columns
    "paper": ((), 212),
}  # fmt: skip


@pytest.fixture(params=LINES, ids=lambda line: " ".join(line.split()[:1]))
def printed(
    request: pytest.FixtureRequest, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> tuple[str, Card, Any]:
    """Return a line, the card that it prints, and the JSON that it prints."""
    monkeypatch.chdir(folder)
    shown: list[Card] = []
    dumped = options.print_card

    def keep(card: Card, format_: options.Format) -> None:
        shown.append(card)
        dumped(card, format_)

    monkeypatch.setattr(options, "print_card", keep)
    monkeypatch.setattr("softcal.cli.watch.print_card", keep)
    words = [word.replace("~", " ") for word in request.param.split()]
    done = softcal_here(*words, "--format", "json")
    assert done.returncode in (0, 1, 3), done.stderr
    (card,) = shown
    return request.param, card, json.loads(done.stdout)


def test_text_json_frame_and_page_have_every_model(printed: tuple[str, Card, Any]) -> None:
    line, card, found = printed
    models, per_model = LINES[line]
    notes = found.pop("notes")
    own = json.loads(json.dumps(card.to_dict(), allow_nan=False))
    assert notes[: len(own["notes"])] == own.pop("notes")
    assert found == own
    text, page = str(card), card._repr_html_()
    assert [name for name in models if name not in text] == []
    assert "<b>p" not in page
    assert "<i>p" not in page
    assert "&lt;" in page or not models
    assert len(card.to_frame()) == per_model * max(len(models), 1)


def test_every_field_of_a_card_is_printed(printed: tuple[str, Card, Any]) -> None:
    _, card, found = printed
    for part, shown in _parts(card, found):
        assert list(shown) == [field.name for field in fields(part)]


def _parts(part: Any, shown: Any) -> Iterator[tuple[Any, Any]]:
    """Yield each dataclass within a card, and its JSON."""
    if is_dataclass(part):
        yield part, shown
        part = {field.name: getattr(part, field.name) for field in fields(part)}
    if isinstance(part, dict):
        for key, value in part.items():
            yield from _parts(value, shown[key])
    elif isinstance(part, list):
        for each, other in zip(part, shown, strict=True):
            yield from _parts(each, other)


@dataclass(frozen=True)
class _Numbers(Card):
    """A card of numbers that are not all finite."""

    name: str
    values: list[float]
    low: float
    by: dict[str, Any]

    def parts(self) -> Iterator[Grid | Said]:
        yield Grid((Column("", "{name:name}"), Column("low", "{low:.2f}")), [self], "Title")
        yield Said("Sentence.")


@pytest.mark.parametrize("bad", [math.nan, math.inf, -math.inf])
def test_numbers_that_are_not_finite_are_null_and_dashes(bad: float) -> None:
    card = _Numbers("m", [1.0, bad], bad, {"x": np.array([bad, 2.0]), "y": (bad, np.float64(3))})
    expected = {
        "name": "m",
        "values": [1, None],
        "low": None,
        "by": {"x": [None, 2], "y": [None, 3]},
    }
    assert card.to_dict() == expected == plain(card)
    assert "inf" not in str(card)
    assert "nan" not in str(card)
    assert str(_Numbers("m", [], 0.5, {})).split() == ["Title", "low", "m", "0.50", "Sentence."]
