"""Help, messages, and tables of the command line are readable in 80 columns."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

import softcal as sc
from softcal import cli

if TYPE_CHECKING:
    from collections.abc import Callable

    import numpy as np

DATA = Path(sc.__file__).parent / "data" / "lidc_malignancy" / "items.csv"
FOREST = ("--label", "soft_malignant", "--pred", "prob_rf_all")
COMMANDS = ["score", "merge", "compare", "report", "plan", "recalibrate", "apply", "demo", "paper"]


@pytest.fixture(autouse=True)
def _eighty_columns(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "80")


def shown(capsys: pytest.CaptureFixture[str], *arguments: object) -> str:
    assert cli.run([str(argument) for argument in arguments]) == 0
    return capsys.readouterr().out


def refused(capsys: pytest.CaptureFixture[str], *arguments: object) -> str:
    assert cli.run([str(argument) for argument in arguments]) == 2
    return capsys.readouterr().err


@pytest.mark.parametrize("command", [[], *([name] for name in COMMANDS)])
def test_help_shows_no_type_names_or_braces(
    capsys: pytest.CaptureFixture[str], command: list[str]
) -> None:
    assert not re.search(r"[<>{}]", shown(capsys, *command, "--help"))


def test_help_does_not_break_method_names(capsys: pytest.CaptureFixture[str]) -> None:
    text = shown(capsys, "recalibrate", "--help")
    for method in ("temperature", "histogram", "isotonic", "dirichlet"):
        assert method in text


def test_each_segment_is_one_line_with_its_row_count(capsys: pytest.CaptureFixture[str]) -> None:
    lines = shown(capsys, "score", DATA, *FOREST, "--by", "n_readers").splitlines()
    start = lines.index("prob_rf_all, by n_readers")
    first = [line.split()[:3] for line in lines[start + 5 : start + 8]]
    assert first == [["all", "1,377", "0.0952"], ["3", "481", "0.0704"], ["4", "896", "0.1097"]]


def test_long_names_wrap_and_numbers_are_not_truncated(capsys: pytest.CaptureFixture[str]) -> None:
    text = shown(capsys, "score", DATA, *FOREST, "--by", "patient")
    assert "0.078 to 0.107" in text
    assert "…" not in text


# Columns


def test_apply_accepts_pred_columns_pattern(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    data, saved = tmp_path / "data.csv", tmp_path / "cal.json"
    data.write_text("y_a,y_b,p_a,p_b\n" + "1,0,0.7,0.3\n0,1,0.4,0.6\n0.5,0.5,0.8,0.2\n" * 20)
    columns = ("--label-columns", "y_*", "--pred-columns", "p_*")
    shown(capsys, "recalibrate", data, *columns, "--method", "temperature", "-o", saved)
    written = []
    for options in (("--pred", "p_a", "--pred", "p_b"), ("--pred-columns", "p_*"), ("--pred-columns", "p_a,p_b")):  # fmt: skip
        out = tmp_path / "out.csv"
        shown(capsys, "apply", saved, data, *options, "-o", out)
        written.append(out.read_text())
    assert written[0] == written[1] == written[2]
    assert "p_a_calibrated,p_b_calibrated" in written[0]
    both = ("--pred", "p_a", "--pred-columns", "p_*")
    assert "not both" in refused(capsys, "apply", saved, data, *both, "-o", tmp_path / "x.csv")
    assert "--pred-columns" in refused(capsys, "apply", saved, data, "-o", tmp_path / "x.csv")


def test_single_column_for_pred_columns_is_refused(capsys: pytest.CaptureFixture[str]) -> None:
    labels = ("--label-columns", "soft_malignant,soft_confidence")
    said = refused(capsys, "score", DATA, *labels, "--pred-columns", "prob_rf_all")
    assert "must hold a list of numbers per row, one per class: it holds single values." in said
    said = refused(capsys, "score", DATA, *labels, "--pred-columns", "nobody_")
    assert "it matches none. Pass names" in said


# Values


@pytest.mark.parametrize("command", ["score", "report", "recalibrate"])
def test_count_labels_get_a_hint_about_votes(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], command: str
) -> None:
    counts = ("--label", "n_readers", "--pred", "prob_rf_all")
    output = () if command == "score" else ("-o", tmp_path / "out")
    assert "if vote counts" in refused(capsys, command, DATA, *counts, *output)
    swapped = ("--label", "prob_rf_all", "--pred", "n_readers")
    assert "votes" not in refused(capsys, command, DATA, *swapped, *output)


@pytest.mark.parametrize(
    ("cell", "remedy", "of_apply"),
    [
        ("yes", "counts as 1: --positive yes.", "holds the text 'yes'.\n"),
        ("N", "counts as 1: --positive Y.", "holds the text 'N'.\n"),
        (
            "63.7%",
            "For percentages, pass --pred-scale percent or --label-scale percent.",
            "Write 0.637. For percentages, pass --pred-scale percent.\n",
        ),
        ("5 %", "Write 0.05.", "Write 0.05."),
        ("100%", "Write 1.", "Write 1."),
        ("very high", "counts as 1: --positive 'very high'.\n", "holds the text 'very high'.\n"),
    ],
)
def test_text_values_get_a_hint_about_conversion(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], cell: str, remedy: str, of_apply: str
) -> None:
    """Predictions to recalibrate are no labels, so `apply` names no option for labels."""
    path, saved = tmp_path / "data.csv", tmp_path / "cal.json"
    path.write_text(f"y,p\n0.5,{cell}\n")
    assert remedy in refused(capsys, "score", path, "--label", "y", "--pred", "p")
    shown(capsys, "recalibrate", DATA, *FOREST, "--method", "platt", "-o", saved)
    found = refused(capsys, "apply", saved, path, "--pred", "p", "-o", tmp_path / "x.csv")
    assert of_apply in found


@pytest.mark.parametrize("source", ["s3://bucket/x.csv", "s3://bucket/*.csv", "https://x.org/a"])
def test_remote_paths_need_extra_packages(capsys: pytest.CaptureFixture[str], source: str) -> None:
    with pytest.raises(sc.InputError, match="files of other machines") as caught:
        sc.scan(source, y_true="y", y_prob="p")
    assert source in str(caught.value)
    classes = ("--label-columns", "a,b", "--pred-columns", "c,d")
    for options in (FOREST, classes):
        assert f"cannot read {source}: files of other machines" in refused(
            capsys, "score", source, *options
        )


# Options that change nothing


STATED = ("--smece", "0.05", "--label-spread", "0.1", "--half-width", "0.02")


@pytest.mark.parametrize(
    ("option", "needed"),
    [
        (("--correlation", "0.5"), "--difference"),
        (("--power", "0.8"), "--difference"),
        (("--pred", "p"), "DATA"),
    ],
)
def test_plan_refuses_options_without_effect(
    capsys: pytest.CaptureFixture[str], option: tuple[str, str], needed: str
) -> None:
    said = refused(capsys, "plan", *STATED, *option)
    assert f"{option[0]} has no effect without {needed}: leave it out, or pass {needed}." in said


def test_plan_default_power_is_080(capsys: pytest.CaptureFixture[str]) -> None:
    aim = (*STATED[:4], "--difference", "0.05", "--correlation", "0.5")
    assert shown(capsys, "plan", *aim) == shown(capsys, "plan", *aim, "--power", "0.8")
    assert shown(capsys, "plan", *aim) != shown(capsys, "plan", *aim, "--power", "0.9")


def test_bounds_refuse_level_and_repeated_columns(
    capsys: pytest.CaptureFixture[str],
) -> None:
    ends = ("--label-low", "soft_malignant", "--label-high", "soft_malignant")
    call = ("score", DATA, *ends, "--pred", "prob_rf_all")
    assert "cannot be combined with --level" in refused(capsys, *call, "--level", "0.9")
    assert "must be named once" in refused(capsys, *call, "--pred", "prob_rf_all")
    assert "must be different columns" in refused(capsys, *call, "--pred", "soft_malignant")


def test_compare_refuses_the_label_as_a_model(capsys: pytest.CaptureFixture[str]) -> None:
    said = refused(capsys, "compare", DATA, *FOREST, "--pred", "soft_malignant")
    assert "label and prediction must be different columns" in said


def test_non_json_file_is_refused_as_such(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "x.json"
    path.write_bytes(b"PAR1\x15\x04\xff")
    assert f"cannot read {path}: " in refused(capsys, "merge", path)
    path.write_bytes(b"y,p\n0.5,0.5\n")
    for call in (("merge", path), ("apply", path, DATA, "-o", tmp_path / "out.csv")):
        assert "it is not JSON, as `softcal " in refused(capsys, *call)


# Results


def test_unhelpful_recalibration_is_not_recommended(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "data.csv"
    path.write_text("y,p\n" + "0.2,0.2\n0.8,0.8\n" * 20)
    options = ("--label", "y", "--pred", "p", "--method", "histogram", "-o", tmp_path / "cal.json")
    assert "keep the original predictions." in " ".join(
        shown(capsys, "recalibrate", path, *options).split()
    )


def test_compare_prints_source_level_and_brier_difference(
    capsys: pytest.CaptureFixture[str],
) -> None:
    options = (*FOREST, "--pred", "prob_lr_geometry", "--level", "0.9")
    text = shown(capsys, "compare", DATA, *options)
    assert text.startswith("items.csv: 1,377 rows")
    assert "90% interval" in text
    found = json.loads(shown(capsys, "compare", DATA, *options, "--format", "json"))
    brier = found["pairs"][0]["brier"]
    assert re.search(rf"Brier +{brier['a']:.4f} +{brier['b']:.4f} +{brier['difference']:.4f}", text)
    assert brier["a"] - brier["b"] == pytest.approx(brier["difference"], abs=1e-12)


def test_compare_prints_both_log_losses(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], rng: np.random.Generator
) -> None:
    y, p, q = rng.random((3, 40)).round(6)
    w = rng.integers(0, 3, 40)
    rows = [f"{a},{b},{c},{d}\n" for a, b, c, d in zip(y, p, q, w, strict=True)]
    paths = [tmp_path / "first.csv", tmp_path / "second.csv"]
    for path, part in zip(paths, (rows[:15], rows[15:]), strict=True):
        path.write_text("y,p,q,w\n" + "".join(part))
    options = ("compare", *paths, "--label", "y", "--pred", "p", "--pred", "q", "--weight", "w")
    found = json.loads(shown(capsys, *options, "--format", "json"))
    losses = [sc.log_loss(y, each, sample_weight=w) for each in (p, q)]
    log_loss = found["pairs"][0]["log_loss"]
    assert [log_loss["a"], log_loss["b"]] == pytest.approx(losses, rel=1e-14)
    assert [model["log_loss"] for model in found["models"]] == pytest.approx(losses, rel=1e-14)
    assert log_loss["difference"] == pytest.approx(losses[0] - losses[1], abs=1e-14)
    line = r" +".join(["log loss", *(f"{loss:.4f}" for loss in losses), r"[+-]0\.\d{4}"])
    assert re.search(line, shown(capsys, *options))


def test_compare_prints_finite_log_loss_beside_infinite(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "data.csv"
    path.write_text("y,p,q,w\n0.5,0,0.4,1\n0.2,0.1,0.3,1\n0.9,0.8,1,0\n")
    options = ("compare", path, "--label", "y", "--pred", "p", "--pred", "q", "--weight", "w")
    found = json.loads(shown(capsys, *options, "--format", "json"))
    finite = sc.log_loss([0.5, 0.2], [0.4, 0.3])
    assert found["pairs"][0]["log_loss"]["a"] is None
    assert found["pairs"][0]["log_loss"]["b"] == pytest.approx(finite, rel=1e-14)
    assert [model["rows_of_infinite_log_loss"] for model in found["models"]] == [1, 0]
    assert re.search(rf"log loss +inf +{finite:.4f} +- +- +-", shown(capsys, *options))


LONG = "probability_of_malignancy_by_forest_on_features_of_fold_"


def _head_and_body(text: str) -> tuple[list[list[str]], list[list[str]]]:
    """Return the words of each line of the first table, above and below its rule."""
    assert "…" not in text
    assert max(map(len, text.splitlines())) <= 80
    lines = text.splitlines()[2:]
    rule = next(k for k, line in enumerate(lines) if "─" in line)
    end = next(k for k, line in enumerate(lines) if k > rule and not line.strip())
    return [line.split() for line in lines[:rule]], [line.split() for line in lines[rule + 1 : end]]


def test_names_with_a_common_prefix_are_printed_in_full(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    names = [f"{LONG}{k}" for k in "123"]
    path = tmp_path / "data.csv"
    path.write_text(f"y,{','.join(names)}\n" + "0.5,0.4,0.4,0.4\n" * 3)
    label = ("--label", "y")
    preds = [part for name in names for part in ("--pred", name)]
    head, _ = _head_and_body(shown(capsys, "compare", path, *label, *preds[:4]))
    *above, last = head
    both = [*above, last[:2]]  # the second name may need one line more
    assert "".join(parts[0] for parts in both if len(parts) == 2) == names[0]
    assert "".join(parts[-1] for parts in both) == names[1]
    for labels in (label, ("--label-low", "y", "--label-high", "y")):
        _, body = _head_and_body(shown(capsys, "score", path, *labels, *preds))
        assert "".join(parts[0] for parts in body) == "".join(names)


def test_many_models_of_classes_are_printed_in_full(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    models = [f"{LONG}{k}" for k in "12345"]
    header = ["v_cat", "v_dog", *(f"{model}_{c}" for model in models for c in ("cat", "dog"))]
    path = tmp_path / "data.csv"
    rows = f"2,1{',0.6,0.4' * 5}\n1,2{',0.3,0.7' * 5}\n" * 20
    path.write_text(f"{','.join(header)}\n{rows}")
    preds = [part for model in models for part in ("--pred-columns", f"{model}_*")]
    options = ("score", path, "--vote-columns", "v_*", *preds)
    text = shown(capsys, *options)
    named = []
    for table in text.split("data.csv: 40 rows")[1:]:
        head, _ = _head_and_body(table)
        named += ["".join(parts) for parts in zip(*head, strict=True)]
    assert named == [f"{model}_*" for model in models]
    found = json.loads(shown(capsys, *options, "--format", "json"))["models"]
    intervals = [f"{model['low']:.3f} to {model['high']:.3f}" for model in found]
    assert re.findall(r"\d\.\d{3} to \d\.\d{3}", text) == intervals


def test_plan_prints_no_cost_of_0(capsys: pytest.CaptureFixture[str]) -> None:
    call = ("plan", DATA, *FOREST, "--half-width", "0.02")
    assert "Cost" not in shown(capsys, *call)
    assert "Cost: " in shown(capsys, *call, "--item-cost", "2")


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (("--smece", "2"), "--smece must be at least 0 and at most 0.5: got 2.0."),
        (("--half-width", "-1"), "--half-width must be above 0 and below 1: got -1.0."),
        (("--half-width", "1e-5"), "--half-width 1e-05 needs more than 1,000,000,000 items"),
        (("--half-width", "0.1", "--item-cost", "-1"), "--item-cost must be at least 0: got -1.0."),
    ],
)
def test_plan_errors_name_options(
    capsys: pytest.CaptureFixture[str], options: tuple[str, ...], message: str
) -> None:
    stated = dict(zip(STATED[::2], STATED[1::2], strict=True))
    stated |= dict(zip(options[::2], options[1::2], strict=True))
    said = refused(capsys, "plan", *(word for option in stated.items() for word in option))
    assert said.startswith(f"softcal: error: {message}")


def test_one_row_and_one_bin_are_singular(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    data, cal, saved = (tmp_path / name for name in ("one.csv", "cal.json", "one.softcal"))
    one = ("--label", "y", "--pred", "p", "--bins", "1")
    classes = ("--label-columns", "a,b", "--pred-columns", "p,q")
    shown(capsys, "recalibrate", DATA, *FOREST, "--method", "platt", "-o", cal)
    data.write_text("y,p,q,a,b\n0.5,0.4,0.6,0.5,0.5\n")
    printed = [
        shown(capsys, "score", data, *one),
        shown(capsys, "score", data, "--label-low", "y", "--label-high", "y", *one[2:]),
        shown(capsys, "score", data, *classes),
        shown(capsys, "compare", data, *one, "--pred", "q"),
        shown(capsys, "scan", data, *one, "-o", saved),
        shown(capsys, "apply", cal, data, "--pred", "p", "-o", tmp_path / "out.csv"),
    ]
    assert all("1 row," in text for text in printed)
    assert not any(re.search(r"\b1 (rows|bins|models)", text) for text in printed)
    assert shown(capsys, "merge", saved).startswith("1 saved file: 1 row, label y, 1 bin\n")


def test_plan_explains_debiased_smece_of_pilot(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    saved = tmp_path / "pilot.json"
    shown(capsys, "score", DATA, *FOREST, "--votes", "n_readers", "--save", saved)
    stated = ("--smece", "0.05", "--label-spread", "0.15")
    for aim in (("--half-width", "0.02"), ("--difference", "0.05", "--correlation", "0.5")):
        call = ("plan", *aim, "--votes-per-item", "3")
        lines = shown(capsys, *call, saved).splitlines()
        assert len(lines) == 3  # none is too long
        assert "pilot" in lines[1]
        assert "pilot" not in shown(capsys, *call, *stated)


def test_reading_is_shown_on_a_terminal(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("FORCE_COLOR", "1")  # so that it is drawn
    assert cli.run(["score", str(DATA), *FOREST]) == 0
    assert "Reading" in capsys.readouterr().err


# The library


def test_votes_repr_shows_class_order() -> None:
    long = {"text": ["a", "a"], "says": ["ok", "hate"]}
    votes = sc.Votes.from_long(long, item="text", label="says", classes=["hate", "ok"])
    assert repr(votes) == "Votes(items=1, classes=('hate', 'ok'), votes=2)"


# Messages that say what to do next


@pytest.mark.parametrize(
    "line",
    ["score", "compare", "audit", "report -o r.html", "scan -o s.softcal", "recalibrate -o c.json"],
)
def test_a_file_alone_lists_its_columns(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], line: str
) -> None:
    path = tmp_path / "rows.csv"
    path.write_text("id,gold label,p\n1,0.5,0.25\n")
    command, *more = line.split()
    said = refused(capsys, command, path, *more)
    assert "Missing option '--pred'. Pass --label COL --pred COL." in said
    assert "The columns of rows.csv are: 'id', 'gold label', 'p'." in said
    preds = ("--pred", "p", *(("--pred", "id") if command == "compare" else ()))
    said = refused(capsys, command, path, *more, *preds)
    assert "--label" in said
    assert "The columns of rows.csv are: 'id', 'gold label', 'p'." in said


def test_positive_in_another_case_gets_one_suggestion(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    votes, rows = tmp_path / "votes.csv", tmp_path / "rows.csv"
    votes.write_text("id,vote\n1,offensive\n1,ok\n2,offensive\n")
    rows.write_text("id,p,word\n1,0.5,offensive\n2,0.25,ok\n")
    raw = ("score", rows, "--pred", "p", "--votes-file", votes, "--item", "id", "--vote", "vote")
    said = refused(capsys, *raw, "--positive", "Offensive")
    assert "Did you mean 'offensive'? Its values are: 'offensive', 'ok'.\n" in said
    assert "Pass one, such as --positive ok." in refused(capsys, *raw, "--positive", "spam")
    line = ("score", rows, "--pred", "p", "--label", "word", "--positive", "Offensive")
    assert "Did you mean 'offensive'?" in refused(capsys, *line)


def test_hint_names_a_word_as_it_is_in_the_file(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "rows.csv"
    path.write_text("y,p\noffensive ,0.5\nok,0.25\n")
    line = ("score", path, "--label", "y", "--pred", "p")
    assert "counts as 1: --positive 'offensive '." in refused(capsys, *line)
    shown(capsys, *line, "--positive", "offensive ")


def test_unknown_option_names_the_commands_that_have_it(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "rows.csv"
    path.write_text("y,p\n0.5,0.5\n")
    said = refused(capsys, "plan", path, "--group", "g")
    assert "--output" not in said
    assert "No such option: --group. These commands have it: score, report, plot, compare," in said
    said = refused(capsys, "score", path, "--lable", "y")
    assert said == "softcal: error: No such option: --lable. Did you mean '--label'?\n"
    assert refused(capsys, "score", path, "--zzz") == "softcal: error: No such option: --zzz.\n"


@pytest.mark.parametrize("command", ["audit", "watch", "decide", "recalibrate"])
def test_help_does_not_list_raters_where_they_are_refused(
    capsys: pytest.CaptureFixture[str], command: str
) -> None:
    assert "--raters" not in shown(capsys, command, "--help-all")
    assert "--raters" in shown(capsys, "score", "--help-all")


def test_a_missing_prediction_is_called_missing(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    saved, rows = tmp_path / "cal.json", tmp_path / "rows.csv"
    shown(capsys, "recalibrate", DATA, *FOREST, "--method", "platt", "-o", saved)
    rows.write_text("x,p\n" + "1,0.5\n" * 5 + "1,\n")
    said = refused(capsys, "apply", saved, rows, "--pred", "p", "-o", tmp_path / "out.csv")
    assert "p must have no missing values: it is missing in row 6." in said
    votes = tmp_path / "votes.csv"
    votes.write_text("id,vote,p\n1,yes,0.5\n2,,0.25\n")
    said = refused(capsys, "score", votes, "--pred", "p", "--item", "id", "--vote", "vote",
                   "--positive", "yes")  # fmt: skip
    assert "vote must have no missing values: 1 of 2 are NaN or null, the first in" in said
    assert "votes.csv, row 2." in said


@pytest.mark.parametrize("end", ["gif", "jpg", "eps"])
def test_figures_have_the_formats_that_help_names(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], end: str
) -> None:
    path = tmp_path / f"x.{end}"
    said = refused(capsys, "plot", DATA, *FOREST, "-o", path)
    assert f"a figure is saved as .svg, .pdf, or .png: got 'x.{end}'" in said
    assert not path.exists()


@pytest.mark.parametrize("name", ["n_bins", "num_bins"])
def test_other_names_of_bins_get_the_name_here(name: str) -> None:
    y, p = [0.5, 0.25], [0.5, 0.25]
    calls: list[Callable[..., object]] = [
        sc.smece, sc.ece, sc.reliability, sc.smece_interval, sc.max_gap,
        sc.ReliabilityDisplay.from_predictions, sc.calibrators.repair_preview,
        lambda *_, **bins: sc.scan({"y": y}, y_true="y", y_prob="p", **bins),
    ]  # fmt: skip
    for call in calls:
        with pytest.raises(sc.InputTypeError, match=f"pass bins=15: softcal has no {name}="):
            call(y, p, **{name: 15})
