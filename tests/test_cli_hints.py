"""Error messages of the command line name remedies at the command line, not in Python."""

from __future__ import annotations

import json
import re
from typing import TYPE_CHECKING

import numpy as np
import pytest

import softcal as sc
from softcal import cli
from softcal.datasets import lidc_malignancy

if TYPE_CHECKING:
    from pathlib import Path

DATA = """\
y,p,q,percent,logit,log,signs,almost,group,w,m,a,b,va,vb,half,la,lb
0.5,0.4,0.3,40,-0.4,-0.4,-1,1.0000001,x,1,2,0.5,0.5,2,1,0.5,-0.1,-2.4
0.2,0.3,0.2,30,0.8,-0.8,1,0.3,,-1,2.5,0.2,0.9,0,3,1.5,-0.7,-0.7
"""
ONE = ("--label", "y", "--pred")
PYTHON = re.compile(
    r"numpy|scipy|expit|[a-z]=|y_true|y_prob|sample_weight|n_votes|groups|Bins|\.\w+\("
)

REFUSED = [
    (("score", *ONE, "percent"), "pass --pred-scale percent"),
    (("score", *ONE, "logit"), "pass --pred-scale logit"),
    (("score", *ONE, "log"), "log-probabilities, pass --pred-scale logprob; if logits, pass"),
    (("score", *ONE, "log", "--pred-scale", "percent"), "log-probabilities, pass --pred-scale logprob"),
    (("score", *ONE, "logit", "--pred-scale", "percent"), "If these are logits, pass --pred-scale logit."),
    (("score", *ONE, "logit", "--pred-scale", "logprob"), "If these are logits, pass --pred-scale logit."),
    (("score", *ONE, "p", "--pred-scale", "logprob"), "If these are probabilities, leave out --pred-scale logprob."),
    (("score", *ONE, "percent", "--pred-scale", "logprob"), "pass --pred-scale percent"),
    (("score", "--vote-columns", "va,vb", "--pred-columns", "la,lb"), "--pred-scale logprob"),
    (("recalibrate", *ONE, "log", "-o", "out.json"), "pass --pred-scale logprob"),
    (("score", *ONE, "almost"), "clip almost to [0, 1]"),
    (("score", "--label", "signs", "--pred", "p"), "(signs + 1) / 2"),
    (("score", *ONE, "p", "--weight", "w"), "A weight of 0 leaves a row out"),
    (("score", *ONE, "p", "--votes", "m"), "Pass the number of votes"),
    (("score", *ONE, "percent", "--group", "group"), "row 1"),
    (("compare", *ONE, "percent", "--pred", "q", "--group", "group"), "pass --pred-scale percent"),
    (("compare", *ONE, "p", "--pred", "q", "--weight", "w", "--group", "group"), "w must be"),
    (("report", *ONE, "logit"), "pass --pred-scale logit"),
    (("recalibrate", *ONE, "logit", "-o", "out.json"), "pass --pred-scale logit"),
    (("score", "--label-low", "y", "--label-high", "percent", "--pred", "p"), "--label-scale percent"),
    (("score", "--label-columns", "a,b", "--pred-columns", "p,q"), "divide each row by its sum"),
    (("score", "--label-columns", "va,vb", "--pred-columns", "a,b"), "--vote-columns"),
    (("score", "--vote-columns", "va,half", "--pred-columns", "a,b"), "--label-columns"),
]  # fmt: skip


@pytest.mark.parametrize(("arguments", "remedy"), REFUSED)
def test_remedy_names_options_not_python(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], arguments: tuple[str, ...], remedy: str
) -> None:
    path = tmp_path / "data.csv"
    path.write_text(DATA)
    command, *options = arguments
    assert cli.run([command, str(path), *options]) == 2
    said = capsys.readouterr().err
    assert remedy in said
    # In parentheses, the message names the same remedy for Python users.
    assert not PYTHON.search(said.replace("(softcal.Votes, ", "(").replace("(y_true, ", "("))


PLANS = [
    (("--difference", "0.1"), "--correlation: `softcal compare`"),
    (("--budget", "100", "--vote-cost", "0"), "a cost per vote above 0"),
    (("--budget", "100", "--vote-cost", "0", "--votes-per-item", "1"), "must be above 0"),
]  # fmt: skip


@pytest.mark.parametrize(("aim", "remedy"), PLANS)
def test_remedy_of_plan_names_options_not_python(
    capsys: pytest.CaptureFixture[str], aim: tuple[str, ...], remedy: str
) -> None:
    assert cli.run(["plan", "--smece", "0.05", "--label-spread", "0.1", *aim]) == 2
    said = capsys.readouterr().err
    assert remedy in said
    assert not PYTHON.search(said)


def test_compare_prints_the_correlation_for_plan(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    data = lidc_malignancy()
    names = ["soft_malignant", "prob_rf_all", "prob_lr_geometry"]
    path = tmp_path / "pilot.csv"
    rows = np.column_stack([data[name] for name in names]).tolist()
    path.write_text("\n".join([",".join(names), *(",".join(map(repr, row)) for row in rows)]))
    models = [option for name in names[1:] for option in ("--pred", name)]
    call = ["compare", str(path), "--label", names[0], *models]
    expected = sc.planning.pilot_correlation(
        data[names[0]], {name: data[name] for name in names[1:]}
    )

    def correlation(*options: str) -> float | None:
        assert cli.run([*call, *options, "--format", "json"]) == 0
        (pair,) = json.loads(capsys.readouterr().out)["pairs"]
        found: float | None = pair["residual_correlation"]
        return found

    assert correlation() == pytest.approx(expected, abs=1e-12)
    assert correlation("--weight", names[0]) is None  # because plans support no weights or groups
    assert correlation("--group", names[0]) is None
    assert cli.run(call) == 0
    assert f"--correlation {expected:.2f}" in capsys.readouterr().out


SLIPS = [
    (("score", *ONE, "p", "--pred-scale", "percent"), "every value of p is in [0, 1]: leave out --pred-scale percent if"),
    (("score", *ONE, "p", "--pred-scale", "logit"), "every value of p is in [0, 1]: leave out --pred-scale logit if"),
    (("score", *ONE, "p", "--label-scale", "logit"), "every value of y is in [0, 1]: leave out --label-scale logit if"),
    (("recalibrate", *ONE, "p", "--pred-scale", "logit", "--folds", "2", "-o", "cal.json"), "leave out --pred-scale logit if"),
    (("recalibrate", "--label", "p", "--pred", "hard", "--folds", "2", "-o", "cal.json"), "are not swapped"),
    (("score", "--label", "p", "--pred", "hard"), "every value of hard is 0 or 1, but p has values between 0 and 1"),
    (("report", "--label", "p", "--pred", "hard", "-o", "r.html"), "check that labels and predictions are not swapped"),
]  # fmt: skip


@pytest.mark.parametrize(("arguments", "note"), SLIPS)
def test_slips_that_values_give_away_are_noted(
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
    arguments: tuple[str, ...],
    note: str,
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "data.csv").write_text("y,p,hard\n" + "0.5,0.4,0\n0.2,0.3,1\n1,0.9,1\n" * 5)
    command, *options = arguments
    assert cli.run([command, "data.csv", *options]) == 0
    said = capsys.readouterr().err
    assert said.startswith("softcal: note: ")
    assert note in said


def test_apply_notes_probabilities_that_are_taken_as_logits(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path, cal = tmp_path / "data.csv", tmp_path / "cal.json"
    path.write_text("y,z,p\n" + "0.5,-0.5,0.4\n0.2,-1,0.3\n1,2,0.9\n" * 5)
    fit = ["recalibrate", str(path), "--label", "y", "--folds", "2", "-o", str(cal)]
    for how, stated in (
        (["--pred", "z", "--pred-scale", "logit"], "this calibrator, which was fitted on logits,"),
        (["--pred", "p"], "--pred-scale logit"),
    ):
        assert cli.run([*fit, *how]) == 0
        for pred, noted in (("p", True), ("z", False)):
            line = ["apply", str(cal), str(path), "--pred", pred, "--pred-scale", "logit"]
            capsys.readouterr()
            assert cli.run([*line, "-o", str(tmp_path / "out.csv")]) == 0
            note = f"every value of p is in [0, 1]: leave out {stated} if these are probabilities."
            assert (f"softcal: note: {note}\n" in capsys.readouterr().err) is noted


def test_votes_that_shares_contradict_are_refused(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "data.csv"
    path.write_text("y,p,m\n0,0.1,3\n0.2,0.4,3\n0.4,0.4,3\n1,0.9,3\n")
    for command in ("score", "recalibrate"):
        output = ["-o", str(tmp_path / "x.json")] if command == "recalibrate" else []
        assert (
            cli.run([command, str(path), "--label", "y", "--pred", "p", "--votes", "m", *output])
            == 2
        )
        said = capsys.readouterr().err
        assert "y times m must be whole numbers of votes" in said
        assert "2 of 4 values are not, the first is 0.2 times m in" in said
