"""`read_rows` returns all rows in order, and raises if a value breaks a rule."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import softcal as sc
from softcal.sources.collect import read_rows
from softcal.sources.columns import Named, Roles

if TYPE_CHECKING:
    from pathlib import Path

ROLES = Roles("y", ("p", "q"), "w", "m", group="g")


@pytest.fixture
def columns(rng: np.random.Generator) -> dict[str, Any]:
    n = 3000
    p, m = rng.random(n), rng.integers(1, 9, n)
    return {
        "y": rng.binomial(m, p) / m, "p": p, "q": p**2, "w": rng.random(n),
        "m": m.astype(float), "g": rng.choice(np.array(["a", "b"]), n),
    }  # fmt: skip


def written(folder: Path, columns: dict[str, Any]) -> Path:
    """Write the rows as two files with several row groups each."""
    for k, part in enumerate((slice(0, 1700), slice(1700, None))):
        table = pa.table({name: values[part] for name, values in columns.items()})
        pq.write_table(table, folder / f"{k}.parquet", row_group_size=400)
    return folder


def test_all_rows_are_read_in_order(tmp_path: Path, columns: dict[str, Any]) -> None:
    found, dropped, *_ = read_rows(written(tmp_path, columns), ROLES)
    assert dropped == 0
    for name in ("y", "p", "q", "w", "m"):
        np.testing.assert_array_equal(found[name], columns[name])
    assert found[Named("g")].to_pylist() == columns["g"].tolist()


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
        ("g", None, "g must have no missing values: 2 of 3000 are NaN or null, the first in {}"),
    ],
)
def test_a_bad_value_is_counted_over_all_files(
    tmp_path: Path, columns: dict[str, Any], name: str, bad: float | None, words: str
) -> None:
    columns["g"] = columns["g"].astype(object)
    columns[name][[2000, 2500]] = bad
    folder = written(tmp_path, columns)
    with pytest.raises(sc.InputError) as caught:
        read_rows(folder, ROLES)
    assert words.format(folder / "1.parquet") in str(caught.value)


def test_empty_data_is_refused(tmp_path: Path, columns: dict[str, Any]) -> None:
    empty = tmp_path / "empty.csv"
    empty.write_text("y,p,q,w,m,g\n")
    with pytest.raises(sc.InputError, match="no rows"):
        read_rows(empty, ROLES)
    empty.unlink()
    columns["w"][:] = 0
    with pytest.raises(sc.InputError, match="w must have a positive value somewhere"):
        read_rows(written(tmp_path, columns), ROLES)
