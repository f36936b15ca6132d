"""The command line: output and exit codes, the same in a subprocess as in this process."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from command_line import assert_same_card
from command_line import softcal as softcal_process
from command_line import softcal_here as softcal

import softcal as sc
from softcal import cli
from softcal.datasets import lidc_malignancy

DATA = Path(sc.__file__).parent / "data" / "lidc_malignancy" / "items.csv"
FOREST, REGRESSION = "prob_rf_all", "prob_lr_geometry"


def card(path: Path, *arguments: object) -> dict[str, Any]:
    result = softcal("score", path, *arguments, "--format", "json")
    assert result.returncode == 0, result.stderr
    loaded: dict[str, Any] = json.loads(result.stdout)
    return loaded


@pytest.fixture
def columns(rng: np.random.Generator) -> dict[str, Any]:
    p = rng.random(300)
    return {"y": rng.random(300), "p": p, "q": p**2, "w": rng.random(300)}


@pytest.fixture(params=["csv", "tsv", "parquet"])
def file(request: pytest.FixtureRequest, tmp_path: Path, columns: dict[str, Any]) -> Path:
    path = tmp_path / f"data.{request.param}"
    table = pa.table(columns)
    if request.param == "parquet":
        pq.write_table(table, path)
    else:
        mark = "," if request.param == "csv" else "\t"
        rows = zip(*(column.tolist() for column in columns.values()), strict=True)
        lines = [mark.join(columns), *(mark.join(map(repr, row)) for row in rows)]
        path.write_text("\n".join(lines) + "\n")
    return path


@pytest.mark.parametrize(
    "arguments",
    [
        (),
        ("score", "--help"),
        ("score", DATA, "--label", "soft_malignant", "--pred", FOREST),
        ("compare", DATA, "--label", "soft_malignant", "--pred", FOREST, "--pred", REGRESSION, "--format", "json"),
        ("score", "absent.csv", "--label", "y", "--pred", "p"),
        ("score", DATA, "--label", "soft_malignant", "--pred", FOREST, "--bins", "ten"),
    ],
)  # fmt: skip
def test_subprocess_prints_the_same_as_run_in_process(
    arguments: tuple[object, ...],
) -> None:
    own, here = softcal_process(*arguments), softcal(*arguments)
    assert (own.returncode, own.stdout, own.stderr) == (here.returncode, here.stdout, here.stderr)


def test_score_matches_library(file: Path, columns: dict[str, Any]) -> None:
    found = card(file, "--label", "y", "--pred", "p", "--pred", "q", "--bins", 7, "--weight", "w")
    assert (found["n"], found["bins"], found["label"]) == (300, 7, "y")
    assert [model["pred"] for model in found["models"]] == ["p", "q"]
    for model in found["models"]:
        y, p, w = columns["y"], columns[model["pred"]], columns["w"]
        rel = sc.reliability(y, p, bins=7, sample_weight=w)
        for key in ("smece", "max_gap", "rms_gap", "bias", "brier"):
            assert model[key] == pytest.approx(getattr(rel, key), rel=1e-12)
        interval = sc.smece_interval(rel)
        assert (model["low"], model["high"]) == pytest.approx(
            (interval.low, interval.high), rel=1e-12
        )
        assert model["debiased"] == pytest.approx(interval.debiased, rel=1e-12)
        assert model["level"] == 0.95
        assert model["pvalue"] == pytest.approx(sc.calibration_test(rel).pvalue, rel=1e-9)
        hardened = sc.ece(y, p, bins=7, sample_weight=w, threshold=0.5)
        assert model["ece_hardened"] == pytest.approx(hardened, rel=1e-12)
        assert len(model["table"]) == 7
        assert [row["gap"] for row in model["table"]] == pytest.approx(rel.gap.tolist(), rel=1e-12)


def test_score_of_bundled_dataset() -> None:
    found = card(DATA, "--label", "soft_malignant", "--pred", FOREST, "--pred", REGRESSION)
    forest, regression = found["models"]
    assert found["n"] == 1377
    assert (round(forest["smece"], 4), round(forest["ece_hardened"], 4)) == (0.0952, 0.0222)
    assert (round(regression["smece"], 4), round(regression["ece_hardened"], 4)) == (0.1067, 0.0328)


def test_empty_bins_are_null_in_json(tmp_path: Path) -> None:
    path = tmp_path / "one.csv"
    path.write_text("y,p\n0.5,0.75\n")
    table = card(path, "--label", "y", "--pred", "p", "--bins", 2)["models"][0]["table"]
    assert table[0] == {
        "low": 0.0, "high": 0.5, "count": 0, "mean_prob": None, "mean_label": None, "gap": None,
    }  # fmt: skip
    assert table[1]["gap"] == 0.25


def test_table_fits_80_columns_and_has_no_color_when_piped() -> None:
    shown = softcal("score", DATA, "--label", "soft_malignant", "--pred", FOREST)
    assert shown.returncode == 0
    assert max(map(len, shown.stdout.splitlines())) <= 80
    assert "\x1b" not in shown.stdout
    assert "0.0952" in shown.stdout
    assert "0.0222" in shown.stdout


def test_names_from_the_data_are_not_markup(tmp_path: Path) -> None:
    path = tmp_path / "odd.csv"
    path.write_text("[red]y[/red],[bold]p\n0.5,0.75\n")
    shown = softcal("score", path, "--label", "[red]y[/red]", "--pred", "[bold]p")
    assert "[bold]p" in shown.stdout
    assert "[red]y[/red]" in shown.stdout


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("score", DATA, "--label", "nope", "--pred", FOREST), "no column 'nope'. Its columns are: "
         "'nodule', 'patient', 'n_readers'"),
        (("score", DATA, "--label", "soft_malignant", "--pred", "patient"), "patient must hold "
         "numbers: 1377 of 1377 values are not, the first is the text 'LIDC-IDRI-0078'"),
        (("score", DATA, "--label", "soft_malignant", "--pred", "n_readers"), "n_readers must be in "
         "[0, 1]: 1377 of 1377 values are not, the first is 4.0 in "),
        (("score", "absent.csv", "--label", "y", "--pred", "p"), "no such file: absent.csv"),
        (("score", DATA, "--label", "y", "--pred", "p"), "items.csv has no column 'p'"),
        (("score", "absent.softcal"), "no such file: absent.softcal"),
        (("score", DATA, "--pred", "p"), "Missing option '--label'. The columns of items.csv are: 'nodule'"),
        (("score", DATA, "--label", "soft_malignant", "--pred", FOREST, "--bins", "0"), "between 1 "
         "and 1000000: got 0"),
        (("score", DATA, "--label", "soft_malignant", "--pred", FOREST, "--bins", "ten"), "Invalid "
         "value for '--bins'"),
        (("score", DATA, "--label", "soft_malignant", "--pred", FOREST, "--weight", "fold",
          "--format", "xml"), "'xml' is not one of"),
        (("score", DATA, "--label", "soft_malignant", "--pred", "soft_malignant"), "must be different "
         "columns"),
        (("score", DATA, "--label", "soft_malignant", "--pred", FOREST, "--weight", ""), "no column ''"),
        (("advise",), "No such command 'advise'"),
    ],
)  # fmt: skip
def test_error_is_one_line_on_stderr_with_exit_code_2(
    arguments: tuple[object, ...], message: str
) -> None:
    result = softcal(*arguments)
    assert result.returncode == 2
    assert result.stdout == ""
    assert result.stderr.startswith("softcal: error: ")
    assert result.stderr.count("\n") == 1
    assert message in result.stderr


@pytest.mark.parametrize(
    ("name", "content"),
    [
        ("cut.parquet", b"PAR1 and then nothing"),
        ("empty.parquet", b""),
        ("empty.csv", b""),
        ("ragged.csv", b"y,p\n0.5\n0.5,0.5,0.5\n"),
        ("binary.csv", b"\xff\xfe\x00\x01\n\x00\x00"),
        ("twice.csv", b"y,p,p\n0.5,0.5,0.5\n"),
        ("rowless.csv", b"y,p\n"),
        ("hole.csv", b"y,p\n0.5,\n0.5,0.5\n"),
    ],
)
def test_corrupted_file_is_refused_in_one_line(tmp_path: Path, name: str, content: bytes) -> None:
    path = tmp_path / name
    path.write_bytes(content)
    result = softcal("score", path, "--label", "y", "--pred", "p")
    assert result.returncode == 2, result.stdout
    assert result.stderr.startswith("softcal: error: ")
    assert result.stderr.count("\n") == 1


def test_a_folder_without_data_is_refused(tmp_path: Path) -> None:
    folder = tmp_path / "data.csv"
    folder.mkdir()
    result = softcal("score", folder, "--label", "y", "--pred", "p")
    assert result.returncode == 2
    assert "no data in" in result.stderr


def test_demo_prints_scores_and_writes_report(tmp_path: Path) -> None:
    shown = softcal("demo", "-o", tmp_path)
    assert shown.returncode == 0
    assert "report.html" in shown.stdout
    page = (tmp_path / "report.html").read_text(encoding="utf-8")
    assert "random forest" in page
    assert 'By <span class="name">number of radiologists</span>' in page
    shown = without("altair", "demo", "-o", tmp_path)
    assert "pip install altair jinja2 vl-convert-python" in " ".join(shown.stdout.split())
    for number in ("1,377", "0.0222", "0.0952", "0.0328", "0.1067"):
        assert number in shown.stdout
    assert max(map(len, shown.stdout.splitlines())) <= 80


def test_report_writes_page_and_prints_verdicts(tmp_path: Path) -> None:
    path = tmp_path / "report.html"
    options = ("--label", "soft_malignant", "--pred", FOREST, "--votes", "n_readers")
    shown = softcal("report", DATA, *options, "--by", "patient", "-o", path)
    assert shown.returncode == 2
    assert "at most 200 segments per column" in shown.stderr
    assert not path.exists()
    shown = softcal("report", DATA, *options, "--by", "fold", "-o", path)
    assert shown.returncode == 0, shown.stderr
    assert "prob_rf_all: material, too low." in shown.stdout
    assert "SMECE 0.095, 95% interval 0.081 to 0.106" in " ".join(shown.stdout.split())
    page = path.read_text(encoding="utf-8")
    assert f"<title>Calibration of {FOREST}</title>" in page
    assert "items.csv" in page
    shown = softcal("report", DATA, *options, "--pred", REGRESSION, "-o", path)
    assert f"<title>Calibration of {FOREST} and {REGRESSION}</title>" in path.read_text("utf-8")


def test_report_on_many_classes(tmp_path: Path) -> None:
    rows = ["a_x,a_y,v_x,v_y,s", "0.8,0.2,4,1,u", "0.3,0.7,2,2,w", "0.6,0.4,5,0,u"]
    path, page = tmp_path / "classes.csv", tmp_path / "r.html"
    path.write_text("\n".join(rows) + "\n")
    options = ("--vote-columns", "v_*", "--pred-columns", "a_*", "-o", page)
    shown = softcal("report", path, *options, "--by", "s")
    assert shown.returncode == 0, shown.stderr
    assert "the share of v_* on that class" in page.read_text(encoding="utf-8")
    assert softcal("report", path, *options).returncode == 0
    refused = softcal("report", path, *options, "--votes", "v_x")
    assert refused.returncode == 2
    assert (
        "--votes needs a label that is a share of votes: pass --label COL, or leave it out."
        in refused.stderr
    )


def without(module: str, *arguments: object) -> subprocess.CompletedProcess[str]:
    """Run softcal in a real interpreter in which one module cannot be imported."""
    code = f"import sys; sys.modules[{module!r}] = None; from softcal.__main__ import main; main()"
    return subprocess.run(  # noqa: S603
        [sys.executable, "-c", code, *map(str, arguments)],
        capture_output=True,
        text=True,
        check=False,
    )


def test_missing_extra_names_what_to_install() -> None:
    score = ("score", DATA, "--label", "soft_malignant", "--pred", FOREST)
    for libraries, result in (
        ("typer rich msgspec narwhals duckdb pyarrow", without("typer")),
        ("typer rich msgspec narwhals duckdb pyarrow", without("rich")),
        ("narwhals duckdb pyarrow", without("pyarrow", *score)),
    ):
        assert result.returncode == 2
        assert result.stderr.endswith(f"pip install {libraries}\n")
        assert result.stderr.count("\n") == 1


def test_paper_fails_early_without_matplotlib(tmp_path: Path) -> None:
    result = without("matplotlib", "paper", "-o", tmp_path / "paper")
    assert result.returncode == 2
    assert result.stderr == "softcal: error: this needs matplotlib: pip install matplotlib\n"


def test_broken_installation_is_not_reported_as_missing_extra() -> None:
    assert "Traceback" in without("json").stderr


def test_version_prints_version_and_loops(capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.run(["--version"]) == 0
    assert re.fullmatch(
        rf"softcal {re.escape(sc.__version__)} \(C\+\+ loops, .+\)\n", capsys.readouterr().out
    )


def test_help_of_every_command_names_its_options() -> None:
    shown = softcal("score", "--help").stdout
    for option in ("--label", "--pred", "--bins", "--by", "--format"):
        assert option in shown


def test_no_arguments_prints_help() -> None:
    shown = softcal()
    assert shown.returncode == 0
    assert "score" in shown.stdout
    assert shown.stderr == ""


def test_first_non_numeric_cell_is_named(tmp_path: Path) -> None:
    path = tmp_path / "late.csv"
    path.write_text("y,p\n0.5,0.5\n0.25,\noops,0.5\n")
    result = softcal("score", path, "--label", "y", "--pred", "p")
    assert (
        "y must hold numbers: 1 of 3 values is not, the first is the text 'oops' in"
        in result.stderr
    )
    assert "late.csv, row 3." in result.stderr


def test_quoted_cells_may_hold_newlines(tmp_path: Path) -> None:
    path = tmp_path / "notes.csv"
    path.write_text("y,note,p\n" + '0.5,"two\nlines",0.75\n' * 60_000)
    assert card(path, "--label", "y", "--pred", "p")["n"] == 60_000


def test_long_model_names_are_not_truncated(tmp_path: Path) -> None:
    path = tmp_path / "long.csv"
    first, second = "m" * 90 + "_a", "m" * 90 + "_b"
    path.write_text(f"y,{first},{second}\n0.5,0.75,0.25\n")
    shown = softcal("score", path, "--label", "y", "--pred", first, "--pred", second).stdout
    joined = "".join(line.split()[0] for line in shown.splitlines() if line.strip())
    assert first in joined
    assert second in joined


def test_unencodable_names_are_escaped(tmp_path: Path) -> None:
    path = tmp_path / "names.csv"
    path.write_text("y,模型\n0.5,0.75\n", encoding="utf-8")
    result = subprocess.run(  # noqa: S603
        [sys.executable, "-m", "softcal", "score", path, "--label", "y", "--pred", "模型"],
        capture_output=True, check=False, env=os.environ | {"PYTHONIOENCODING": "cp1252"},
    )  # fmt: skip
    assert result.returncode == 0
    assert rb"\u6a21\u578b" in result.stdout


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="needs /dev/full of Linux")
def test_unwritable_output_is_an_error_in_one_line() -> None:
    with Path("/dev/full").open("w") as full:
        result = subprocess.run(
            [sys.executable, "-m", "softcal", "score", "--help"],
            stdout=full, stderr=subprocess.PIPE, text=True, check=False,
        )  # fmt: skip
    assert result.returncode == 2
    assert result.stderr.startswith("softcal: error: ")
    assert result.stderr.count("\n") == 1


@pytest.mark.skipif(sys.platform == "win32", reason="sends a POSIX signal")
def test_interrupt_exits_with_an_error_code() -> None:
    """An interrupt during a command exits with 130 and prints no result."""
    code = (
        "import os, signal, sys\n"
        "from softcal.scanning import scan\n"
        "scan.collect = lambda *a, **k: os.kill(os.getpid(), signal.SIGINT)\n"
        "from softcal.__main__ import main\n"
        "main()\n"
    )
    result = subprocess.run(  # noqa: S603
        [sys.executable, "-c", code, "score", DATA, "--label", "soft_malignant", "--pred", FOREST],
        capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert result.returncode == 130
    assert result.stdout == ""
    assert "Traceback" not in result.stderr


def test_interrupt_during_startup_exits_with_an_error_code() -> None:
    code = (
        "from softcal import cli\n"
        "def interrupted(_): raise KeyboardInterrupt\n"
        "cli.run = interrupted\n"
        "from softcal.__main__ import main\n"
        "main()\n"
    )
    result = subprocess.run(  # noqa: S603
        [sys.executable, "-c", code], capture_output=True, text=True, check=False
    )
    assert (result.returncode, result.stdout, result.stderr) == (130, "", "")


def test_numbers_stored_as_text_are_parsed(tmp_path: Path) -> None:
    path = tmp_path / "text.parquet"
    pq.write_table(pa.table({"y": ["0.5", "1"], "p": [0.5, 0.5]}), path)
    assert card(path, "--label", "y", "--pred", "p")["models"][0]["smece"] == 0.25


def test_a_value_above_its_interval_is_explained_where_it_happens(tmp_path: Path) -> None:
    rng = np.random.default_rng(0)
    p = rng.random(1000)
    y = (rng.random(1000) < p).astype(float)
    path, names = tmp_path / "a.csv", ("--label", "y", "--pred", "p")
    rows = zip(y, p, 1 - y, 1 - p, strict=True)
    path.write_text(
        "y,p,ny,np\n" + "".join(f"{a:g},{b:.17g},{c:g},{d:.17g}\n" for a, b, c, d in rows)
    )
    classes = ("--label-columns", "ny,y", "--pred-columns", "np,p")
    for options, bins in ((names, "100"), (classes, "200")):
        few, many = (softcal("score", path, *options, "--bins", n) for n in ("10", bins))
        assert "The error is above its interval" not in " ".join(few.stdout.split())
        assert "The error is above its interval" in " ".join(many.stdout.split())
    found = sc.smece_interval(sc.reliability(y, p, bins=100))
    assert found.value > found.high
    assert found.note.startswith("The error is above its interval, because noise increases it")


def test_votes_and_groups_change_only_the_uncertainty() -> None:
    plain = card(DATA, "--label", "soft_malignant", "--pred", FOREST)["models"][0]
    options = ("--votes", "n_readers", "--group", "patient", "--level", "0.9")
    grouped = card(DATA, "--label", "soft_malignant", "--pred", FOREST, *options)["models"][0]
    assert grouped["smece"] == pytest.approx(plain["smece"], rel=1e-14)
    assert grouped["level"] == 0.9
    nodules = lidc_malignancy()
    rel = sc.reliability(
        nodules["soft_malignant"], nodules[FOREST],
        n_votes=nodules["n_readers"], groups=nodules["patient"],
    )  # fmt: skip
    found = sc.smece_interval(rel, level=0.9)
    assert (grouped["low"], grouped["high"]) == pytest.approx((found.low, found.high), rel=1e-12)
    assert grouped["pvalue"] == pytest.approx(sc.calibration_test(rel).pvalue, rel=1e-9)
    shown = softcal("score", DATA, "--label", "soft_malignant", "--pred", FOREST, *options).stdout
    assert "90%" in shown
    assert max(map(len, shown.splitlines())) <= 80


def comparison(*arguments: object) -> dict[str, Any]:
    result = softcal("compare", DATA, "--label", "soft_malignant", *arguments, "--format", "json")
    assert result.returncode == 0, result.stderr
    loaded: dict[str, Any] = json.loads(result.stdout)
    return loaded


def test_compare_matches_library() -> None:
    found = comparison("--pred", FOREST, "--pred", REGRESSION, "--votes", "n_readers")
    nodules = lidc_malignancy()
    expected = sc.compare(
        nodules["soft_malignant"], {"a": nodules[FOREST], "b": nodules[REGRESSION]},
        n_votes=nodules["n_readers"],
    )  # fmt: skip
    (pair,) = found["pairs"]
    assert (found["n"], pair["a"], pair["b"]) == (1377, FOREST, REGRESSION)
    assert pair["level"] == expected.level
    smece = pair["smece"]
    assert (smece["a"], smece["b"]) == pytest.approx((expected.smece_a, expected.smece_b), rel=1e-9)
    for key in ("difference", "low", "high", "pvalue"):
        assert smece[key] == pytest.approx(getattr(expected, key), rel=1e-9)
        assert pair["brier"][key] == pytest.approx(getattr(expected.brier, key), rel=1e-9)


def test_compare_takes_groups() -> None:
    found = comparison("--pred", FOREST, "--pred", REGRESSION, "--group", "patient")
    nodules = lidc_malignancy()
    labels, patient = nodules["soft_malignant"], nodules["patient"]
    expected = sc.compare(labels, {"a": nodules[FOREST], "b": nodules[REGRESSION]}, groups=patient)
    for key in ("difference", "low", "high", "pvalue"):
        assert found["pairs"][0]["smece"][key] == pytest.approx(getattr(expected, key), rel=1e-9)


def test_compare_names_better_model_or_reports_no_difference(tmp_path: Path) -> None:
    both = ("compare", DATA, "--label", "soft_malignant", "--pred", FOREST, "--pred", REGRESSION)
    shown = softcal(*both, "--votes", "n_readers").stdout
    assert f"{FOREST} is better calibrated than {REGRESSION}" in " ".join(shown.split())
    assert max(map(len, shown.splitlines())) <= 80
    turned = softcal(
        *both[:4], "--pred", REGRESSION, "--pred", FOREST, "--votes", "n_readers"
    ).stdout
    assert f"{FOREST} is better calibrated than {REGRESSION}" in " ".join(turned.split())
    path = tmp_path / "few.csv"
    path.write_text("y,w,p,q\n0.5,1,0.4,0.6\n1,2,0.9,0\n")
    few = softcal("compare", path, "--label", "y", "--pred", "p", "--pred", "q", "--weight", "w")
    assert "These data do not show whether p or q is better calibrated" in " ".join(
        few.stdout.split()
    )
    unknown = softcal(
        "compare", path, "--label", "y", "--pred", "p", "--pred", "q", "--format", "json"
    )
    assert json.loads(unknown.stdout)["pairs"][0]["log_loss"]["difference"] is None


@pytest.mark.parametrize("names", [[FOREST], [FOREST, FOREST], [FOREST, REGRESSION, FOREST]])
def test_compare_refuses_one_model_or_the_same_twice(names: list[str]) -> None:
    preds = [part for name in names for part in ("--pred", name)]
    result = softcal("compare", DATA, "--label", "soft_malignant", *preds)
    assert result.returncode == 2
    one = "a comparison needs two models: pass --pred two or more times."
    twice = f"each model must be named once: '{FOREST}' is given twice."
    assert (one if len(names) == 1 else twice) in result.stderr


@pytest.mark.parametrize("closed", [1, 2])
def test_closed_stream_is_not_an_error(closed: int) -> None:
    command = f'exec "$0" -m softcal --version {closed}>&-'
    found = subprocess.run(  # noqa: S603
        ["/bin/sh", "-c", command, sys.executable], capture_output=True, text=True, check=False
    )
    assert (found.returncode, found.stderr) == (0, "")
    printed = "" if closed == 1 else f"softcal {sc.__version__}"
    assert found.stdout.partition(" (")[0] == printed


def test_output_never_overwrites_the_data(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "d.csv"
    path.write_text("y,p\n" + "0.5,0.4\n" * 20)
    before = path.read_text()
    options = [str(path), "--label", "y", "--pred", "p"]
    for command in (["report", "-o"], ["scan", "-o"], ["score", "--save"], ["recalibrate", "-o"]):
        assert cli.run([command[0], *options, command[1], str(path)]) == 2
        assert "must not be a file that the command reads" in capsys.readouterr().err
    assert path.read_text() == before


def test_compare_prints_names_without_markup(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "m.csv"
    path.write_text("y,[red]a[/red],b\n" + "0.5,0.4,0.3\n" * 20)
    options = ["--label", "y", "--pred", "[red]a[/red]", "--pred", "b"]
    assert cli.run(["compare", str(path), *options]) == 0
    assert "[red]a[/red]" in capsys.readouterr().out.splitlines()[2]


def test_compare_explains_an_infinite_log_loss(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "a.csv"
    path.write_text("y,p,q\n0.5,0,0.4\n0.2,0.1,0.3\n0.9,0.8,1\n")
    options = ["compare", str(path), "--label", "y", "--pred", "p", "--pred", "q"]
    assert cli.run([*options, "--format", "json"]) == 0
    card = json.loads(capsys.readouterr().out)
    assert set(card["pairs"][0]["log_loss"].values()) == {None}
    assert [model["rows_of_infinite_log_loss"] for model in card["models"]] == [1, 1]
    assert cli.run(options) == 0
    shown = capsys.readouterr().out
    for name in "pq":
        assert f"In 1 of 3 rows, {name} predicts exactly 0 or 1 and the label differs" in shown


def test_file_of_zero_weights_changes_nothing(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    for name, w in (("a", 0), ("b", 1)):
        (tmp_path / f"{name}.csv").write_text("y,p,None,w\n" + f"0.5,0.4,0.3,{w}\n" * 200)
    options = ["--label", "y", "--pred", "p", "--pred", "None", "--weight", "w"]
    assert cli.run(["compare", str(tmp_path), *options, "--format", "json"]) == 0
    (pair,) = json.loads(capsys.readouterr().out)["pairs"]
    assert pair["smece"]["difference"] == pytest.approx(-0.1)
    assert cli.run(["report", str(tmp_path), *options, "-o", str(tmp_path / "r.html")]) == 0
    assert cli.run(["compare", str(tmp_path / "a.csv"), *options]) == 2
    assert "w must have a positive value somewhere" in capsys.readouterr().err


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

    assert_same_card(scored("a.parquet", "c.csv"), scored("a.parquet", "b.parquet"))


def test_missing_group_is_refused_with_column_and_row(
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


def test_report_reads_several_files(tmp_path: Path, columns: dict[str, Any]) -> None:
    for k, part in enumerate((slice(0, 200), slice(200, None))):
        table = pa.table({name: values[part] for name, values in columns.items()})
        table = table.append_column("s", pa.array(["a", None] * (table.num_rows // 2)))
        pq.write_table(table, tmp_path / f"{k}.parquet")
    page = tmp_path / "report.html"
    options = ["--label", "y", "--pred", "p", "--weight", "w", "--by", "s", "-o", str(page)]
    paths = [str(path) for path in sorted(tmp_path.glob("*.parquet"))]
    assert cli.run(["report", *paths, *options]) == 0
    text = page.read_text(encoding="utf-8")
    assert "2 sources" in text
    assert "(missing)" in text
    rel = sc.reliability(columns["y"], columns["p"], sample_weight=columns["w"])
    assert f"{rel.smece:.3f}" in text
