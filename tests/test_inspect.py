"""`softcal inspect` describes columns, and the commands that it suggests run as printed."""

from __future__ import annotations

import csv
import json
import os
import random
import re
import shutil
import subprocess
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pandas as pd
import pytest
from command_line import softcal_here

from softcal.datasets import lidc_malignancy

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

SHARED = Path(os.environ.get("SOFTCAL_SHARED_DATA", "/no shared data"))
BASH = shutil.which("bash")
UGLY = ["--y outcome", "p 'risk' $HOME \"x\"", "p\u202emodel", "line\nbreak", "[b]group[/b] id"]


def made(rows: int = 200) -> dict[str, list[Any]]:
    rng = random.Random(0)  # noqa: S311
    p = [round(rng.random(), 3) for _ in range(rows)]
    return {"p": p, "y": [int(rng.random() < x) for x in p], "k": list(range(rows))}


def write(path: Path, columns: Mapping[str, Sequence[Any]], sep: str = ",") -> Path:
    with path.open("w", newline="", encoding="utf-8") as file:
        writer = csv.writer(file, delimiter=sep)
        writer.writerow(columns)
        writer.writerows(zip(*columns.values(), strict=True))
    return path


def inspected(*arguments: object) -> dict[str, Any]:
    done = softcal_here("inspect", *arguments, "--format", "json")
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)  # type: ignore[no-any-return]


def commands(*arguments: object) -> list[str]:
    return [each["command"] for each in inspected(*arguments)["suggestions"]]


def run_in_shell(command: str) -> subprocess.CompletedProcess[str]:
    """Let bash split a command into words, and run it in this process, which is faster."""
    line = f"softcal() {{ printf '%s\\0' \"$@\"; }}\n{command}\n"
    done = subprocess.run(  # noqa: S603
        [str(BASH), "-c", line], capture_output=True, text=True, encoding="utf-8", check=True
    )
    return softcal_here(*done.stdout.split("\0")[:-1])


def printed_commands(text: str) -> list[str]:
    """Return the commands on a screen, which may take several lines."""
    return [line.strip() for line in re.findall(r"^  (softcal (?:.*\\\n)*.*)$", text, re.MULTILINE)]


def shapes(folder: Path) -> dict[str, tuple[Path, list[str]]]:
    """Write tables of many shapes, each with the options that the first suggestion must have."""
    rows = made()
    p, y = rows["p"], rows["y"]
    words = ["Yes" if each else "No" for each in y]
    half = [round(x / 2, 4) for x in p]
    rest = [round(1 - x - z, 4) for x, z in zip(p, half, strict=True)]
    total = [x + z + abs(r) for x, z, r in zip(p, half, rest, strict=True)]
    classes = {
        f"prob_{name}": [abs(x) / t for x, t in zip(each, total, strict=True)]
        for name, each in (("cat", p), ("dog", half), ("fox", rest))
    }
    counts = {f"votes_{name}": [1 + (k % (3 + j)) for k in rows["k"]]
              for j, name in enumerate(("cat", "dog", "fox"))}  # fmt: skip
    tables: dict[str, tuple[dict[str, Sequence[Any]], list[str]]] = {
        "plain": ({"y": y, "p": p}, ["--label y", "--pred p"]),
        "words": ({"answer_label": words, "conf": p}, ["--label answer_label", "--positive Yes"]),
        "percent": ({"y": y, "pred": [f"{100 * x:.1f} %" for x in p]}, ["--pred-scale percent"]),
        "logit": ({"y": y, "logit": [8 * x - 4 for x in p]}, ["--pred-scale logit"]),
        "logprob": ({"y": y, "logprob": [-5 * x - 0.01 for x in p]}, ["--pred-scale logprob"]),
        "votes": (
            {"share": [k % 5 / 4 for k in rows["k"]], "n_votes": [4, 8] * 100, "p": p},
            ["--label share", "--votes n_votes"],
        ),
        "missing": ({"y": y, "p": ["", *p[1:]]}, ["--drop-missing"]),
        "days": ({"y": y, "p": p, "date": [f"2026-03-{1 + k % 9:02d}" for k in rows["k"]]}, []),
        "classes": ({**classes, **counts}, ["--vote-columns 'votes_*'", "--pred-columns 'prob_*'"]),
        "models": (
            {"id": [k // 2 for k in rows["k"]], "model": ["a", "b"] * 100, "correct": y,
             "confidence": p},
            ["--model model", "--item id", "--pred confidence"],
        ),
        "epochs": (
            {"id": [k // 4 for k in rows["k"]], "model": ["a", "b"] * 100, "correct": y,
             "forecast": [p[k // 4] for k in rows["k"]]},
            ["--item id", "--epochs"],
        ),
        "answers": (
            {"id": [k // 4 for k in rows["k"]], "model": ["a", "b"] * 100, "correct": y,
             "confidence": p},
            ["--model model", "--group id"],
        ),
        "segments": (
            {"y": y, "p": p, "site": ["n", "s"] * 100, "patient": [f"i{k % 50}" for k in rows["k"]]},
            ["--label y"],
        ),
        "ugly names": (
            dict(zip(UGLY, (y, p, p[::-1], words, [f"g{k % 40}" for k in rows["k"]]), strict=True)),
            ["--label '--y outcome'"],
        ),
    }  # fmt: skip
    return {
        name: (write(folder / f"{name}.csv", columns), options)
        for name, (columns, options) in tables.items()
    }


SHAPES = (
    "plain", "words", "percent", "logit", "logprob", "votes", "missing", "days", "classes",
    "models", "epochs", "answers", "segments", "ugly names",
)  # fmt: skip


@pytest.mark.skipif(BASH is None, reason="the commands are written for a shell")
@pytest.mark.parametrize("name", SHAPES)
def test_suggested_commands_run_as_printed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    monkeypatch.chdir(tmp_path)
    path, options = shapes(tmp_path)[name]
    found = commands(path.name)
    assert 1 <= len(found) <= 3
    for option in options:
        assert option in found[0]
    shown = printed_commands(softcal_here("inspect", path.name).stdout)
    assert [" ".join(re.sub(r"\\\n", "", each).split()) for each in shown] == [
        " ".join(each.split()) for each in found
    ]
    for command in shown:
        done = run_in_shell(command)
        alarm = command.startswith("softcal watch") and done.returncode == 1
        assert done.returncode == 0 or alarm, (command, done.stderr)


@pytest.mark.skipif(not SHARED.exists(), reason="the shared data are not here")
@pytest.mark.skipif(BASH is None, reason="the commands are written for a shell")
@pytest.mark.parametrize(
    ("file", "first"),
    [
        ("lidc_malignancy/items", "--label soft_malignant --pred prob_lr_geometry --pred prob_rf_all --votes n_readers"),
        ("cifar10h_vgg16/items", "--vote-columns 'votes_*' --pred-columns 'prob_*'"),
        ("davidson_hate/items", "--vote-columns 'votes_*' --pred-columns 'prob_*_lr' --pred-columns 'prob_*_nb'"),
        ("fivethirtyeight/games", "--label y --pred p"),
        ("fivethirtyeight/governors", "--label y_share --pred p_share"),
        ("fivethirtyeight/world_cup_matches", "--label-columns '*_outcome' --pred-columns prob1,probtie,prob2"),
        ("gusto_clinical/patients", "--label y --pred p_full --pred p_small_sample --pred p_age"),
        ("pandalm_judges/items", "--label human_first --pred p_bt"),
        ("sleep_dod/epochs", "--label-columns 'share_*' --pred-columns 'prob_*'"),
    ],
)  # fmt: skip
def test_suggestions_for_real_tables_run(file: str, first: str) -> None:
    path = SHARED / f"{file}.parquet"
    found = commands(path)
    assert found[0] == f"softcal score {path} {first}"
    for command in found:
        done = run_in_shell(command)
        assert done.returncode == 0 or " watch " in command, (command, done.stderr)


def test_columns_are_described(tmp_path: Path) -> None:
    rows = made()
    path = tmp_path / "rows.parquet"
    pd.DataFrame({
        "p": [None, *rows["p"][1:]], "flag": [bool(each) for each in rows["y"]],
        "code": [f"{k:03d}" for k in rows["k"]], "site": ["a", "b", None, ""] * 50,
        "day": pd.date_range("2026-03-01", periods=200), "one": 1.0,
    }).to_parquet(path)  # fmt: skip
    card = inspected(path)
    assert card["n"] == 200
    found = {each["name"]: each for each in card["columns"]}
    assert found["p"]["kind"] == "number"
    assert found["p"]["missing"] == 1
    assert found["p"]["high"] == max(rows["p"][1:])
    assert set(found["p"]["roles"]) == {"--label", "--pred"}
    assert found["flag"]["kind"] == "true/false"
    assert found["flag"]["roles"]["--label"] == "only 0 and 1"
    assert found["code"]["kind"] == "numbers as text"
    assert (found["site"]["different"], found["site"]["missing"]) == (2, 100)
    assert "--by" in found["site"]["roles"]
    assert found["day"]["roles"] == {"--day": "dates"}
    assert found["one"]["roles"] == {}


def test_screen_fits_80_columns_and_escapes_names(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "80")
    monkeypatch.chdir(tmp_path)
    rows = made()
    columns = dict.fromkeys((*UGLY, "a" * 150, "\x1b[31mred"), rows["p"])
    write(tmp_path / "rows.csv", columns | {"y": rows["y"]})
    text = softcal_here("inspect", "rows.csv").stdout
    assert all(c.isprintable() for c in text.replace("\n", ""))
    screen, _, _ = text.partition("To try next")
    assert max(map(len, screen.splitlines())) <= 80


def test_semicolons_and_decimal_commas_are_found_and_stated(tmp_path: Path) -> None:
    rows = made()
    commas = [str(x).replace(".", ",") for x in rows["p"]]
    path = write(tmp_path / "rows.csv", {"y": rows["y"], "p": commas}, ";")
    assert "read with --sep ';' --decimal ," in softcal_here("inspect", path).stdout.replace(
        "\n", " "
    )
    (command,) = commands(path)
    assert command.endswith("--label y --pred p --sep ';' --decimal ,")


def test_toml_of_the_first_suggestion_gives_the_same_scores(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "made").mkdir()
    for path, _ in shapes(tmp_path).values():
        softcal_here("inspect", path.name, "-o", "made/data.toml")
        assert "\u202e" not in Path("made/data.toml").read_text(encoding="utf-8")
        done = softcal_here("score", "--data", "made/data.toml", "--format", "json")
        assert done.returncode == 0, (path, done.stderr)
        first = commands(path.name)[0]
        same = run_in_shell(f"{first} --format json")
        assert json.loads(done.stdout) == json.loads(same.stdout)


def test_other_suggestions_are_comments_of_the_toml(tmp_path: Path) -> None:
    path, _ = shapes(tmp_path)["segments"]
    softcal_here("inspect", path, "-o", tmp_path / "data.toml")
    text = (tmp_path / "data.toml").read_text(encoding="utf-8")
    assert '\n# by = ["site"]\n' in text
    assert '\n# group = "patient"\n' in text
    assert '\nlabel = "y"\n' in text


def test_score_without_options_ends_with_the_same_commands(tmp_path: Path) -> None:
    path, _ = shapes(tmp_path)["segments"]
    done = softcal_here("score", path)
    assert done.returncode == 2
    assert done.stderr.startswith("softcal: error: Missing option '--pred'.")
    expected = commands(path)
    assert [line.strip() for line in done.stderr.splitlines()[-len(expected) :]] == expected


def test_score_with_a_label_only_lists_no_commands(tmp_path: Path) -> None:
    path, _ = shapes(tmp_path)["plain"]
    done = softcal_here("score", path, "--label", "y")
    assert len(done.stderr.splitlines()) == 1


def test_nothing_is_suggested_without_a_label_or_predictions(tmp_path: Path) -> None:
    rows = made()
    path = write(tmp_path / "rows.csv", {"name": [f"n{k}" for k in rows["k"]], "p": rows["p"]})
    assert commands(path) == []
    done = softcal_here("inspect", path)
    assert "No command to suggest" in done.stdout
    assert done.returncode == 0


def test_empty_table_is_described(tmp_path: Path) -> None:
    path = tmp_path / "rows.csv"
    path.write_text("y,p\n", encoding="utf-8")
    assert inspected(path)["n"] == 0
    assert softcal_here("inspect", path).returncode == 0


def test_bundled_data_set_is_scored_with_its_votes(tmp_path: Path) -> None:
    path = tmp_path / "lidc.parquet"
    pd.DataFrame(lidc_malignancy()).to_parquet(path)
    assert "--label soft_malignant" in commands(path)[0]
    assert "--votes n_readers" in commands(path)[0]


def test_several_files_are_counted_in_the_first_line(tmp_path: Path) -> None:
    paths = [tmp_path / "a.csv", tmp_path / "b.csv"]
    for path in paths:
        path.write_text("y,p\n0,0.25\n1,0.75\n", encoding="utf-8")
    both = softcal_here("inspect", *map(str, paths)).stdout
    assert both.startswith("2 sources: 4 rows, 2 columns\n")
    assert softcal_here("inspect", str(paths[0])).stdout.startswith("a.csv: 2 rows")


def test_missing_file_is_an_error() -> None:
    done = softcal_here("inspect", "no such file.csv")
    assert done.returncode == 2
    assert "no such file" in done.stderr


def test_inspect_is_the_first_command() -> None:
    from softcal import cli

    assert cli.COMMANDS[0] == "inspect"
