"""The commands of docs/evaluation_logs.md run as printed, on logs that the harnesses wrote."""

from __future__ import annotations

import json
import math
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

import softcal as sc

HERE = Path(__file__).parent
LOGS = HERE / "logs"
PAGE = (HERE.parent / "docs" / "evaluation_logs.md").read_text(encoding="utf-8")
BASH = shutil.which("bash")


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Put the logs where the page has them."""
    shutil.copytree(LOGS / "inspect_ai", tmp_path / "logs")
    shutil.copytree(LOGS / "lm_eval", tmp_path / "results")
    shutil.copy(LOGS / "promptfoo" / "output.json", tmp_path)
    (script,) = re.findall(r"```python\n(.*?)```", PAGE, flags=re.DOTALL)
    (tmp_path / "confidence.py").write_text(script, encoding="utf-8")
    for name in ("large", "small"):
        (source,) = (tmp_path / "results" / name).glob("*.jsonl")
        done = subprocess.run(
            [sys.executable, "confidence.py"], input=source.read_bytes(), capture_output=True,
            check=True, cwd=tmp_path,
        )  # fmt: skip
        (tmp_path / f"{name}.jsonl").write_bytes(done.stdout)
    monkeypatch.chdir(tmp_path)
    return tmp_path


def commands() -> list[str]:
    """Return the commands of the page; a backslash continues a line."""
    text = PAGE.replace("\\\n", " ")
    return [
        " ".join(line.split())
        for line in re.findall(r"^    ((?:softcal|python) .*)$", text, re.MULTILINE)
    ]


def test_page_shows_commands_of_each_harness() -> None:
    shown = "\n".join(commands())
    assert len(commands()) >= 9
    assert all(word in shown for word in ("--records samples", "confidence.py", "results.results"))


@pytest.mark.skipif(BASH is None, reason="the commands are written for a shell")
@pytest.mark.parametrize("command", commands())
def test_command_of_the_page_runs(folder: Path, command: str) -> None:
    program, rest = command.split(" ", 1)
    words = f"{sys.executable} {'-m softcal ' if program == 'softcal' else ''}{rest}"
    done = subprocess.run(  # noqa: S603
        [str(BASH), "-c", words], capture_output=True, text=True, encoding="utf-8", cwd=folder,
        check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    if program == "softcal" and " inspect " not in f" {rest}":
        assert "large" in done.stdout


def smece_by_hand(rows: list[tuple[float, float]]) -> float:
    """Return SMECE with ten bins of predictions and labels."""
    gaps: dict[int, float] = {}
    for p, y in rows:
        k = min(int(p * 10 + 1e-9), 9)
        gaps[k] = gaps.get(k, 0) + p - y
    return sum(map(abs, gaps.values())) / len(rows)


def samples_of(name: str) -> list[dict[str, object]]:
    files = sorted((LOGS / "inspect_ai").glob("*.json"))
    found = [json.loads(path.read_text(encoding="utf-8")) for path in files]
    (log,) = [each for each in found if each["eval"]["model"] == f"mockllm/{name}"]
    return log["samples"]  # type: ignore[no-any-return]


SCORES = "scores.with_confidence"


def test_epochs_of_inspect_ai_are_votes() -> None:
    files = sorted(map(str, (LOGS / "inspect_ai").glob("*.json")))
    tables = sc.scan(
        sc.Files(files, records="samples"), y_true=sc.Column(f"{SCORES}.value", positive="C"),
        y_prob=sc.Long("metadata.forecast", item="id", epochs=True),
    )  # fmt: skip
    for model, name in zip(tables, ("large", "small"), strict=True):
        shares: dict[str, list[float]] = {}
        forecast: dict[str, float] = {}
        for sample in samples_of(name):
            grade = sample["scores"]["with_confidence"]["value"]  # type: ignore[index]
            shares.setdefault(str(sample["id"]), []).append(float(grade == "C"))
            forecast[str(sample["id"])] = sample["metadata"]["forecast"]  # type: ignore[index]
        assert {len(votes) for votes in shares.values()} == {2}
        rows = [(forecast[item], sum(votes) / 2) for item, votes in shares.items()]
        assert tables[model].n == 12
        assert tables[model].smece == pytest.approx(smece_by_hand(rows), rel=1e-12)


def test_confidence_of_each_answer_of_inspect_ai() -> None:
    for path, name in zip(
        sorted((LOGS / "inspect_ai").glob("*.json")), ("large", "small"), strict=True
    ):
        tables = sc.scan(
            sc.Files(path, records="samples"), y_true=sc.Column(f"{SCORES}.value", positive="C"),
            y_prob=f"{SCORES}.metadata.confidence", groups="id",
        )  # fmt: skip
        scores = [sample["scores"]["with_confidence"] for sample in samples_of(name)]  # type: ignore[index]
        rows = [(each["metadata"]["confidence"], float(each["value"] == "C")) for each in scores]
        (model,) = tables
        assert tables[model].smece == pytest.approx(smece_by_hand(rows), rel=1e-12)


def test_confidence_that_differs_between_epochs_is_refused_with_a_remedy() -> None:
    files = sorted(map(str, (LOGS / "inspect_ai").glob("*.json")))
    with pytest.raises(sc.SoftcalError, match=r"metadata\.confidence must be the same .*--group"):
        sc.scan(
            sc.Files(files, records="samples"), y_true=sc.Column(f"{SCORES}.value", positive="C"),
            y_prob=sc.Long(f"{SCORES}.metadata.confidence", item="id", epochs=True),
        )  # fmt: skip


def test_promptfoo_providers_are_models() -> None:
    log = json.loads((LOGS / "promptfoo" / "output.json").read_text(encoding="utf-8"))
    tables = sc.scan(
        sc.Files(LOGS / "promptfoo" / "output.json", records="results.results"), y_true="success",
        y_prob=sc.Long("namedScores.confidence", model="provider.label", item="testIdx"),
    )  # fmt: skip
    assert list(tables) == ["large", "small"]
    for model in tables:
        own = [r for r in log["results"]["results"] if r["provider"]["label"] == model]
        rows = [(r["namedScores"]["confidence"], float(r["success"])) for r in own]
        assert tables[model].smece == pytest.approx(smece_by_hand(rows), rel=1e-12)


def test_lm_eval_confidence_is_the_softmax_of_the_chosen_answer(folder: Path) -> None:
    for name in ("large", "small"):
        rows = []
        for line in (folder / f"{name}.jsonl").read_text(encoding="utf-8").splitlines():
            row = json.loads(line)
            weights = [math.exp(float(log)) for log, _ in row["filtered_resps"]]
            best = max(range(4), key=weights.__getitem__)
            assert row["acc"] == float(str(best) == row["target"])
            rows.append((weights[best] / sum(weights), row["acc"]))
        tables = sc.scan(folder / f"{name}.jsonl", y_true="acc", y_prob="confidence")
        assert tables["confidence"].smece == pytest.approx(smece_by_hand(rows), rel=1e-12)
        many = sc.scan(
            folder / f"{name}.jsonl", y_true=sc.Classes("target"),
            y_prob={"m": sc.Classes("logs", scale="logit")},
        )  # fmt: skip
        top = sc.scan(folder / f"{name}.jsonl", y_true="acc", y_prob="confidence")
        assert many["m", "top"].smece == pytest.approx(top["confidence"].smece, rel=1e-9)


def test_models_in_files_are_refused_with_many_classes(folder: Path) -> None:
    line = "score large.jsonl small.jsonl --model-per-file --label target --pred-columns logs"
    done = subprocess.run(  # noqa: S603
        [sys.executable, "-m", "softcal", *line.split(), "--pred-scale", "logit"],
        capture_output=True, text=True, encoding="utf-8", cwd=folder, check=False,
    )  # fmt: skip
    assert done.returncode == 2
    assert "many classes" in done.stderr
