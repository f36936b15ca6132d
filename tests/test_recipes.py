"""The recipes of docs/pipelines.md and docs/watch.md run as they are printed."""

from __future__ import annotations

import re
import shlex
from pathlib import Path
from typing import Any

import duckdb
import pandas as pd
import pytest
import yaml
from command_line import softcal_here

import softcal as sc
from softcal.datasets import lidc_malignancy

DOCS = Path(__file__).parent.parent / "docs"


def blocks(page: str, language: str) -> list[str]:
    text = (DOCS / page).read_text(encoding="utf-8")
    return re.findall(rf"```{language}\n(.*?)```", text, flags=re.DOTALL)


@pytest.fixture
def preds(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> pd.DataFrame:
    """Write the data of the recipes to an empty folder, and work there."""
    monkeypatch.chdir(tmp_path)
    d = lidc_malignancy()
    rows = pd.DataFrame({
        "share": d["soft_malignant"], "p": d["prob_rf_all"], "readers": d["n_readers"],
        "site": ["a", "b", "c"] * 459,
    })  # fmt: skip
    rows.to_csv("preds.csv", index=False)
    rows.to_parquet("preds.parquet")
    for day, part in enumerate((rows[:700], rows[700:]), 1):
        tables = sc.scan(part, y_true="share", y_prob="p", date=f"2026-03-{day:02d}")
        tables.save(f"days/{day}.softcal")
    return rows


@pytest.mark.parametrize("page", ["pipelines.md", "watch.md"])
def test_workflow_steps_run(preds: pd.DataFrame, page: str) -> None:
    steps = [step for block in blocks(page, "yaml") for step in yaml.safe_load(block)]
    assert steps
    for step in steps:
        command, *arguments = shlex.split(step["run"])
        assert command == "softcal"
        done = softcal_here(*arguments)
        failing = "--max-smece 0.03" in step["run"] or "watch" in step["run"]
        assert done.returncode == int(failing), done.stderr
        assert len(preds) == 1377
    assert page != "pipelines.md" or "Alarm on" in Path("watch.html").read_text(encoding="utf-8")


def test_dbt_model_runs_in_duckdb_and_its_result_is_the_set_of_the_rows(preds: Any) -> None:
    (line,) = re.findall(
        r"^    (softcal sql .*) > models/calibration\.sql$",
        (DOCS / "pipelines.md").read_text(encoding="utf-8").replace("\\\n", ""),
        flags=re.MULTILINE,
    )  # fmt: skip
    model = softcal_here(*shlex.split(line)[1:]).stdout
    assert "{{ ref('predictions') }}" in model
    with duckdb.connect("warehouse.duckdb") as warehouse:
        warehouse.register("rows", preds)
        warehouse.sql("CREATE TABLE predictions AS SELECT * FROM rows")
        query = model.replace("{{ ref('predictions') }}", '"predictions"')  # as dbt does
        warehouse.sql(f"CREATE TABLE calibration AS {query}")
    (code,) = [each for each in blocks("pipelines.md", "python") if "tables_from_query" in each]
    exec(code, {})  # noqa: S102 - code of our own documentation
    found = sc.load("days/2026-03-01.softcal")
    rows = sc.scan(preds, y_true=sc.Shares("share", "readers"), y_prob="p", by="site")
    assert found.about.date == "2026-03-01"
    assert found.by_names == ("site",)
    assert found["p"].smece == pytest.approx(rows["p"].smece, abs=1e-12)
