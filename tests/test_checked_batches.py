"""Report and compare on files: bounded batches, and refusals that count over all of them."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import softcal as sc
from softcal import cli
from softcal.sources.collect import checked_batches
from softcal.sources.columns import SLICES, Roles

if TYPE_CHECKING:
    from pathlib import Path

ROLES = Roles("y", ("p", "q"), "w", "m", "s")


@pytest.fixture
def columns(rng: np.random.Generator) -> dict[str, Any]:
    n = 3000
    p = rng.random(n)
    return {
        "y": rng.random(n), "p": p, "q": p**2, "w": rng.random(n),
        "m": rng.integers(1, 9, n).astype(float), "s": rng.choice(np.array(["a", "b", None]), n),
    }  # fmt: skip


def written(folder: Path, columns: dict[str, Any]) -> Path:
    """Write the rows as two files, of several row groups each."""
    for k, part in enumerate((slice(0, 1700), slice(1700, None))):
        table = pa.table({name: values[part] for name, values in columns.items()})
        pq.write_table(table, folder / f"{k}.parquet", row_group_size=400)
    return folder


def test_batches_hold_all_rows_in_order(tmp_path: Path, columns: dict[str, Any]) -> None:
    found = list(checked_batches(written(tmp_path, columns), ROLES))
    for name in ("y", "p", "q", "w", "m"):
        np.testing.assert_array_equal(np.concatenate([b[name] for b in found]), columns[name])
    slices = [value for batch in found for value in batch[SLICES].to_pylist()]
    assert slices == columns["s"].tolist()


@pytest.mark.parametrize(
    ("name", "bad", "words"),
    [
        (
            "q",
            1.5,
            "q must be in [0, 1]: 2 of 3000 values are not, the first is 1.5 in {}, row 301",
        ),
        ("y", np.nan, "y must have no missing values: 2 of 3000"),
        ("w", -1.0, "2 of 3000"),
        ("m", 0.5, "2 of 3000"),
    ],
)
def test_a_bad_value_is_counted_over_all_files(
    tmp_path: Path, columns: dict[str, Any], name: str, bad: float, words: str
) -> None:
    columns[name][[2000, 2500]] = bad
    folder = written(tmp_path, columns)
    with pytest.raises(sc.InputError) as caught:
        list(checked_batches(folder, ROLES))
    assert words.format(folder / "1.parquet") in str(caught.value)


def test_compare_adds_up_the_batches(
    tmp_path: Path, columns: dict[str, Any], capsys: pytest.CaptureFixture[str]
) -> None:
    folder = written(tmp_path, columns)
    options = ["--label", "y", "--pred", "p", "--pred", "q", "--weight", "w", "--votes", "m"]
    assert cli.run(["compare", str(folder), *options, "--format", "json"]) == 0
    found = json.loads(capsys.readouterr().out)
    whole = sc.compare(
        columns["y"],
        {"a": columns["p"], "b": columns["q"]},
        sample_weight=columns["w"],
        n_votes=columns["m"],
    )
    assert found["n"] == 3000
    for key in ("difference", "low", "high"):
        assert found[key] == pytest.approx(getattr(whole, key), abs=1e-12)
    empty = tmp_path / "empty.csv"
    empty.write_text("y,p,q,w,m\n")
    assert cli.run(["compare", str(empty), *options]) == 2
    assert "no rows" in capsys.readouterr().err


def test_report_reads_several_files(tmp_path: Path, columns: dict[str, Any]) -> None:
    folder = written(tmp_path, columns)
    page = tmp_path / "report.html"
    options = ["--label", "y", "--pred", "p", "--weight", "w", "--by", "s", "-o", str(page)]
    files = [str(path) for path in sorted(folder.glob("*.parquet"))]
    assert cli.run(["report", *files, *options]) == 0
    text = page.read_text(encoding="utf-8")
    assert "2 sources" in text
    assert "(no value)" in text
    rel = sc.reliability(columns["y"], columns["p"], sample_weight=columns["w"])
    assert f"{rel.smece:.3f}" in text


def test_groups_are_the_same_in_files_of_any_kind(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    rows: dict[str, list[Any]] = {
        "y": [0.5, 0.1, 0.9, 0.2],
        "p": [0.4, 0.3, 0.7, 0.2],
        "g": [1, 2, 2, 10],
    }
    for name in ("a", "b"):
        pq.write_table(pa.table(rows), tmp_path / f"{name}.parquet")
    lines = [",".join(map(str, row)) for row in zip(*rows.values(), strict=True)]
    (tmp_path / "c.csv").write_text("\n".join(["y,p,g", *lines]))

    def scored(*names: str) -> Any:
        files = [str(tmp_path / name) for name in names]
        options = ["--label", "y", "--pred", "p", "--group", "g", "--format", "json"]
        assert cli.run(["score", *files, *options]) == 0
        return json.loads(capsys.readouterr().out)

    assert scored("a.parquet", "c.csv") == scored("a.parquet", "b.parquet")


def test_a_row_without_a_group_is_refused_by_its_name_and_place(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "a.csv"
    path.write_text("y,p,q,who\n0.5,0.4,0.3,x\n0.2,0.1,0.3,\n")
    for command in (["score"], ["compare", "--pred", "q"], ["recalibrate", "-o", "cal.json"]):
        options = ["--label", "y", "--pred", "p", "--group", "who"]
        assert cli.run([*command, str(path), *options]) == 2
        said = capsys.readouterr().err
        assert (
            f"who must have no missing values: 1 of 2 are NaN or null, the first in {path}, row 2"
            in said
        )
