"""The examples run, and docs/studies.md shows their output."""

from __future__ import annotations

import importlib.util
import os
from pathlib import Path
from typing import TYPE_CHECKING, Any

import matplotlib as mpl
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
