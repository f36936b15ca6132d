"""The examples run, and docs/studies.md shows their output."""

from __future__ import annotations

import importlib.util
import os
from pathlib import Path
from typing import TYPE_CHECKING, Any

import matplotlib as mpl
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

if TYPE_CHECKING:
    from types import ModuleType

ROOT = Path(__file__).parent.parent
DATA = Path(os.environ.get("SOFTCAL_SHARED_DATA", ROOT.parent / "shared" / "data"))
STUDIES: dict[str, tuple[Path, ...]] = {
    "radiologists": (),
    "image_votes": (DATA / "cifar10h_vgg16" / "items.parquet",),
    "hate_speech": (DATA / "davidson_hate" / "items.parquet",),
    "distillation": (),
    "ratings": (),
    "irony": (DATA / "multipico" / "items.parquet", DATA / "multipico" / "votes.parquet"),
}


def loaded(name: str) -> ModuleType:
    spec = importlib.util.spec_from_file_location(name, ROOT / "examples" / f"{name}.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.mark.parametrize("name", STUDIES)
def test_example_prints_what_its_page_shows(
    name: str, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: Any
) -> None:
    for path in STUDIES[name]:
        if not path.exists():
            pytest.skip(f"{path.name} of {path.parent.name} is not here: set SOFTCAL_SHARED_DATA")
    monkeypatch.setitem(mpl.rcParams, "backend", "agg")
    loaded(name).main(*STUDIES[name], tmp_path)
    page = (ROOT / "docs" / "studies.md").read_text(encoding="utf-8")
    assert f"```text\n{capsys.readouterr().out.rstrip()}\n```" in page
    assert (tmp_path / f"{name}.png").stat().st_size > 10_000


def test_irony_study_of_few_raters_finds_an_error_with_the_same_raters_only(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: Any
) -> None:
    """The data of the study is not shipped, so its script also runs on simulated votes."""
    rng = np.random.default_rng(1)
    rate, lean = rng.beta(2, 4, 400), rng.normal(0, 0.2, 24)
    item, who = np.repeat(np.arange(400), 4), rng.random((400, 12)).argsort(axis=1)[:, :4].ravel()
    annotator = who + 12 * (item % 2)  # each language has its own annotators
    vote = (rng.random(item.size) < rate[item] + lean[annotator]).astype(int)
    rows = {"item": np.arange(400), "lang": ["en", "fr"] * 200, "prob_ironic_lr": rate}
    pq.write_table(pa.table(rows), tmp_path / "items.parquet")
    votes = {"item": item, "annotator": annotator, "vote": vote}
    pq.write_table(pa.table(votes), tmp_path / "votes.parquet")
    monkeypatch.setitem(mpl.rcParams, "backend", "agg")
    loaded("irony").main(tmp_path / "items.parquet", tmp_path / "votes.parquet", tmp_path)
    lines = [line.split() for line in capsys.readouterr().out.splitlines()[-2:]]
    assert [line[:3] for line in lines] == [["en", "200", "12"], ["fr", "200", "12"]]
    assert any(float(same) < 0.05 < float(new) for *_, same, new in lines)
    assert (tmp_path / "irony.png").stat().st_size > 10_000
