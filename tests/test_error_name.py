"""One word for one thing: with 0/1 labels the error is ECE, with soft labels SMECE, everywhere."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

import matplotlib as mpl
import numpy as np
import pandas as pd
import pytest
from command_line import softcal_here
from matplotlib.text import Text

import softcal as sc
from softcal import plot

if TYPE_CHECKING:
    from pathlib import Path

    from matplotlib.figure import Figure

ECE = re.compile(r"\bECE\b")
# Of soft labels, ECE is only the error against hardened labels.
HARDENED = re.compile(r"usual ECE|ECE against (hardened labels|the majority class)|\w+: ECE")
KINDS = ("hard", "soft")


@pytest.fixture(scope="module")
def data(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a folder with rows and rows of classes, each of hard and soft labels.

    The soft labels of site 0 are all 0 or 1.
    """
    folder, rng, n = tmp_path_factory.mktemp("rows"), np.random.default_rng(5), 1800
    p = rng.uniform(0.05, 0.95, n)
    site, day = np.arange(n) % 3, np.arange(n) // 20
    days = pd.to_datetime("2026-01-05") + pd.to_timedelta(day, unit="D")
    common = {"p": p, "q": p**2, "r": p**3, "site": site, "g": np.arange(n) // 30}
    shares = rng.dirichlet([1, 1, 1], n)
    for kind in KINDS:
        hard = rng.binomial(1, p)
        y = np.where((site == 0) | (kind == "hard"), hard, rng.binomial(4, p) / 4)
        rows = pd.DataFrame(common | {"y": y, "day": days.strftime("%Y-%m-%d")})
        rows.to_csv(folder / f"{kind}.csv", index=False)
        label = rng.multinomial(1 if kind == "hard" else 4, shares) / (1 if kind == "hard" else 4)
        named = {f"p_{k}": shares[:, k] for k in range(3)} | {
            f"y_{k}": label[:, k] for k in range(3)
        }
        pd.DataFrame(named | {"site": site}).to_csv(folder / f"{kind}_classes.csv", index=False)
    return folder


P, Q, R = ("--pred", "p"), ("--pred", "q"), ("--pred", "r")
LABEL = ("--label", "y")
CLASSES = ("--label-columns", "y_*", "--pred-columns", "p_*")
DAYS = ("--day", "day")
COMMANDS: dict[str, tuple[str, ...]] = {
    "score": ("score", *LABEL, *P, *Q),
    "score by segment": ("score", *LABEL, *P, "--by", "site"),
    "score by group": ("score", *LABEL, *P, "--group", "g"),
    "score in many bins": ("score", *LABEL, *P, "--bins", "300"),
    "compare two": ("compare", *LABEL, *P, *Q, "--by", "site"),
    "compare three": ("compare", *LABEL, *P, *Q, *R),
    "check": ("check", *LABEL, *P, *Q, "--by", "site", "--max-smece", "0.05", "--max-gap", "0.2"),
    "watch": ("watch", *LABEL, *P, *DAYS, "--by", "site"),
    "watch with an alarm": ("watch", *LABEL, *R, *Q, *DAYS),
    "decide": ("decide", *LABEL, *P, *Q, "--threshold", "0.3"),
    "audit": ("audit", *LABEL, *P, "--by", "site"),
    "inspect": ("inspect",),
    "plan": ("plan", *LABEL, *Q, "--half-width", "0.02"),
    "plan a difference": ("plan", *LABEL, *Q, "--difference", "0.02", "--correlation", "0.5"),
    "score classes": ("score", *CLASSES, "--by", "site"),
}


def judge(kind: str, text: str) -> None:
    """Assert that a text calls the error by its name only."""
    if kind == "hard":
        assert "SMECE" not in text
    else:
        bare = HARDENED.sub("", text)
        assert len(ECE.findall(bare)) == bare.count("(hard)"), bare


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("named", COMMANDS)
def test_commands_call_the_error_by_its_name(data: Path, kind: str, named: str) -> None:
    command, *options = COMMANDS[named]
    file = f"{kind}_classes.csv" if named.endswith("classes") else f"{kind}.csv"
    done = softcal_here(command, data / file, *options)
    assert done.returncode < 2, done.stderr
    judge(kind, done.stdout)
    if command in ("score", "compare", "check", "watch", "plan"):
        assert ("ECE" if kind == "hard" else "SMECE") in done.stdout


@pytest.mark.parametrize("kind", KINDS)
def test_recalibration_calls_the_error_by_its_name(data: Path, kind: str, tmp_path: Path) -> None:
    map_ = ("-o", tmp_path / "map.json")
    done = softcal_here("recalibrate", data / f"{kind}.csv", *LABEL, *Q, *map_)
    assert done.returncode == 0, done.stderr
    judge(kind, done.stdout)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("command", ["report", "watch"])
def test_pages_call_the_error_by_its_name(
    data: Path, kind: str, command: str, tmp_path: Path
) -> None:
    page = tmp_path / "page.html"
    own = DAYS if command == "watch" else ("--by", "site")
    done = softcal_here(command, data / f"{kind}.csv", *LABEL, *P, *Q, *own, "-o", page)
    assert done.returncode < 2, done.stderr
    html = re.sub(r"<(script|style).*?</\1>", "", page.read_text(encoding="utf-8"), flags=re.DOTALL)
    judge(kind, re.sub(r"<[^>]*>", " ", html))


def words(figure: Figure) -> str:
    return "\n".join(each.get_text() for each in figure.findobj(Text))


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("by", [None, "site"])
@pytest.mark.parametrize("draw", ["reliability", "gaps", "bins"])
def test_figures_call_the_error_by_its_name(
    data: Path, kind: str, by: str | None, draw: str
) -> None:
    mpl.use("agg")
    tables = sc.scan(data / f"{kind}.csv", y_true="y", y_prob=["p", "q"], by="site")
    function: Any = getattr(plot, f"draw_{draw}")
    text = words(
        function(tables, by=by) if draw != "bins" else function(tables.select(["p"]), by=by)
    )
    judge(kind, text)
    if draw != "gaps":
        assert ("ECE" if kind == "hard" else "SMECE") in text


@pytest.mark.parametrize("kind", KINDS)
def test_a_trend_calls_the_error_by_its_name(data: Path, kind: str) -> None:
    watch = sc.Watch(by="site")
    tables = sc.scan(data / f"{kind}.csv", y_true="y", y_prob="r", by=["day", "site"])
    days = sorted(tables.by("day").items(), key=lambda each: str(each[0]))
    states = [watch.update(part, date=day) for day, part in days]
    text = words(plot.draw_watch(states, tolerance=0.02, level=0.95))
    judge(kind, text)
    assert ("ECE" if kind == "hard" else "SMECE") in text
    judge(kind, states[-1].sentence)


def test_names_from_the_data_are_not_changed(data: Path, tmp_path: Path) -> None:
    rows = pd.read_csv(data / "hard.csv").rename(columns={"p": "SMECE", "q": "my SMECE"})
    rows.to_csv(tmp_path / "rows.csv", index=False)
    models = ("--pred", "SMECE", "--pred", "my SMECE")
    for command, *own in (("score",), ("compare",), ("check", "--max-smece", "0.1")):
        done = softcal_here(command, tmp_path / "rows.csv", *LABEL, *models, *own)
        assert "my SMECE" in done.stdout
        assert "my ECE" not in done.stdout
