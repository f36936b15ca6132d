"""`softcal decide`: net benefit from rows and from saved tables, as text, JSON and figure."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from command_line import softcal_here
from hostile import NAMES

import softcal as sc
from softcal.datasets import lidc_malignancy

REFERENCE = json.loads((Path(__file__).parent / "reference" / "dcurves.json").read_text())


@pytest.fixture
def nodules(tmp_path: Path) -> Path:
    pd.DataFrame(dict(lidc_malignancy())).to_csv(tmp_path / "nodules.csv", index=False)
    return tmp_path / "nodules.csv"


NODULES = ("--label", "soft_malignant", "--pred", "prob_rf_all", "--pred", "prob_lr_geometry")


def _thresholds(*at: float) -> list[str]:
    return [word for t in at for word in ("--threshold", repr(t))]


def _card(*arguments: object) -> Any:
    done = softcal_here("decide", *arguments, "--format", "json")
    assert (done.returncode, done.stderr) == (0, "")
    return json.loads(done.stdout)


def test_net_benefit_equals_dcurves_from_rows_and_saved_tables(tmp_path: Path) -> None:
    y, p, at = (np.array(REFERENCE[name]) for name in ("y_true", "y_prob", "threshold"))
    asked = _thresholds(*((at * 100).round() / 100).tolist())
    frame = pd.DataFrame({"y": y, "p": p})
    frame.to_parquet(tmp_path / "rows.parquet")
    sc.scan(frame, y_true="y", y_prob="p").save(tmp_path / "rows.softcal")
    for card in (
        _card(tmp_path / "rows.parquet", "--label", "y", "--pred", "p", *asked),
        _card(tmp_path / "rows.softcal", *asked),
    ):
        found = pd.DataFrame(card["models"][0]["thresholds"])
        np.testing.assert_allclose(found["net_benefit"], REFERENCE["age"], atol=1e-12, rtol=0)
        np.testing.assert_allclose(found["treat_all"], REFERENCE["all"], atol=1e-12, rtol=0)
        assert (found["treat_none"] == 0).all()
        assert (found["cost_of_miscalibration"] >= 0).all()


def _assert_equals_python(model: Any, at: list[float], **rows: Any) -> None:
    """The card of a model must have the numbers of the Python functions, or those of a table."""
    expected = sc.net_benefit(**rows, thresholds=at)
    found = pd.DataFrame(model["thresholds"])
    names = {
        "threshold": "threshold", "net_benefit": "value", "low": "low", "high": "high",
        "treat_all": "treat_all", "cost_of_miscalibration": "cost", "rows_below": "rows_below",
        "mean_prob_below": "prob_below", "mean_label_below": "label_below",
    }  # fmt: skip
    for column, name in names.items():
        np.testing.assert_allclose(found[column], getattr(expected, name), atol=1e-9, rtol=0)
    summary = sc.calibration_summary(**rows)
    assert model["note"] == summary.note
    assert list(model["calibration"]) == list(summary.estimates)
    for name, each in summary.estimates.items():
        assert model["calibration"][name] == pytest.approx(each._asdict(), abs=1e-9)


@pytest.mark.parametrize("kind", ["0/1", "soft", "votes", "vote columns", "raw votes"])
@pytest.mark.parametrize("weights", [[], ["--weight", "w"]])
def test_rows_give_the_numbers_of_python(
    tmp_path: Path, kind: str, weights: list[str], rng: np.random.Generator
) -> None:
    n, at = 300, [0.0123456, 0.2, 0.7]
    p, q = rng.uniform(0.01, 0.99, (2, n))
    yes = rng.binomial(4, p)
    y = {"0/1": yes > 2, "soft": rng.beta(1 + 9 * p, 10 - 9 * p)}.get(kind, yes / 4) * 1.0
    w = rng.lognormal(size=n) if weights else None
    frame = pd.DataFrame({
        "y": y, "p": p, "q": q, "m": 4, "yes": yes, "no": 4 - yes, "w": 1.0 if w is None else w,
        "id": np.arange(n),
    })  # fmt: skip
    frame[:100].to_parquet(tmp_path / "a.parquet")
    frame[100:].to_parquet(tmp_path / "b.parquet")
    long = pd.DataFrame({"id": np.repeat(np.arange(n), 4)})
    long["vote"] = (np.tile(np.arange(4), n) < np.repeat(yes, 4)).astype(int)
    long.to_csv(tmp_path / "votes.csv", index=False)
    kinds: dict[str, list[object]] = {
        "votes": ["--label", "y", "--votes", "m"], "vote columns": ["--vote-columns", "no,yes"],
        "raw votes": ["--votes-file", tmp_path / "votes.csv", "--item", "id", "--vote", "vote",
                      "--positive", "1"],
    }  # fmt: skip
    labels = kinds.get(kind, ["--label", "y"])
    done = softcal_here(
        "decide", tmp_path / "a.parquet", tmp_path / "b.parquet", *labels, "--pred", "p",
        "--pred", "q", "--name", "first", "--name", "other", *weights,
        *_thresholds(*at), "--format", "json",
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    card = json.loads(done.stdout)
    assert card["computed_from"] == "rows"
    assert [model["pred"] for model in card["models"]] == ["first", "other"]
    for model, prob in zip(card["models"], (p, q), strict=True):
        _assert_equals_python(model, at, y_true=y, y_prob=prob, sample_weight=w)
    difference = sc.net_benefit_difference(y, {"p": p, "q": q}, at, sample_weight=w)
    shown = pd.DataFrame(card["differences"][0]["thresholds"])
    np.testing.assert_allclose(shown["low"], difference.low, atol=1e-9)


def test_saved_tables_give_the_numbers_of_the_grid(nodules: Path, tmp_path: Path) -> None:
    tables = sc.scan(nodules, y_true="soft_malignant", y_prob=["prob_rf_all", "prob_lr_geometry"])
    tables.save(tmp_path / "nodules.softcal")
    asked = _thresholds(0.05, 0.2, 0.5)
    from_rows = _card(nodules, *NODULES, *asked)
    from_tables = _card(tmp_path / "nodules.softcal", *asked)
    assert from_tables["bins"] == 10  # as saved
    assert (from_rows["computed_from"], from_tables["computed_from"]) == ("rows", "grid")
    fine = tables.coarsen(tables.grid)
    for model, of_rows in zip(from_tables["models"], from_rows["models"], strict=True):
        _assert_equals_python(model, [0.05, 0.2, 0.5], y_true=fine[model["pred"]])
        for each, other in zip(model["thresholds"], of_rows["thresholds"], strict=True):
            for name in ("net_benefit", "low", "high", "rows_below"):  # at edges of the grid
                assert each[name] == pytest.approx(other[name], abs=1e-12)
    one = _card(tmp_path / "nodules.softcal", "--pred", "prob_rf_all", *asked)
    assert one["models"] == from_tables["models"][:1]
    for data, said in (
        (nodules, "Computed from the rows."),
        (tmp_path / "nodules.softcal", "Computed from the 648 bins of the grid. The rows of a bin"),
    ):
        options = NODULES if data == nodules else ()
        shown = softcal_here("decide", data, *options, *asked).stdout
        assert said in " ".join(shown.split())


def test_more_than_a_million_rows_give_the_numbers_of_the_grid(
    tmp_path: Path, rng: np.random.Generator
) -> None:
    data = tmp_path / "many.parquet"
    p = rng.random(1_000_001)
    pd.DataFrame({"y": p > rng.random(p.size), "p": p}).to_parquet(data)
    asked = (data, "--label", "y", "--pred", "p", "--threshold", "0.2")
    card = _card(*asked)
    assert card["computed_from"] == "grid"
    tables = sc.scan(data, y_true="y", y_prob="p")
    _assert_equals_python(card["models"][0], [0.2], y_true=tables.coarsen(tables.grid)["p"])
    shown = softcal_here("decide", *asked).stdout
    assert "because there are more than 1,000,000 rows." in " ".join(shown.split())


def test_rows_may_have_any_threshold(nodules: Path) -> None:
    at = [0.0123456, 1 / 30, 0.2, 0.98765]
    d = lidc_malignancy()
    expected = sc.net_benefit(d["soft_malignant"], d["prob_rf_all"], at, level=0.9)
    card = _card(nodules, *NODULES, *_thresholds(*at), "--level", "0.9")
    found = pd.DataFrame(card["models"][0]["thresholds"])
    for column, name in (("low", "low"), ("high", "high"), ("cost_of_miscalibration", "cost")):
        np.testing.assert_allclose(found[column], getattr(expected, name), atol=1e-13, rtol=0)


def test_text_reports_rows_below_and_fits_80_columns(nodules: Path) -> None:
    done = softcal_here("decide", nodules, *NODULES, *_thresholds(0.05, 0.2))
    text = " ".join(done.stdout.split())
    assert done.returncode == 0
    assert "At 5%: 706 rows lie below; the model predicts 0.9%, the labels average 8.8%." in text
    assert "5% 0.2252 0.2084 to 0.2428 0.2456 0 0.0204" in text
    assert "slope 0.6896 0.6422 to 0.7371" in text
    assert "AUROC 0.8260 0.8118 to 0.8394" in text
    assert "Net benefit of prob_rf_all minus that of prob_lr_geometry, on the same rows" in text
    assert "20% +0.0088 +0.0027 to +0.0153" in text
    assert "Note: the logistic recalibration needs predictions between 0 and 1" in text
    assert max(map(len, done.stdout.splitlines())) <= 80


def test_differences_are_those_of_python(nodules: Path, tmp_path: Path) -> None:
    """From one file, from parts of it, and with three models: the first minus each other one."""
    at = [0.0123456, 0.05, 0.2]
    d = lidc_malignancy()
    models = [name for name in d if name.startswith("prob_")][:3]
    asked = [*(word for name in models for word in ("--pred", name)), *_thresholds(*at)]
    frame = pd.read_csv(nodules)
    parts = [tmp_path / "parts" / f"{k}.csv" for k in range(3)]
    parts[0].parent.mkdir()
    for k, part in enumerate(parts):
        frame[k::3].to_csv(part, index=False)
    for data in ([nodules], parts):
        found = _card(*data, "--label", "soft_malignant", *asked)["differences"]
        assert [(each["pred"], each["other"]) for each in found] == [
            (models[0], other) for other in models[1:]
        ]
        for each in found:
            pair = {name: d[name] for name in (each["pred"], each["other"])}
            expected = sc.net_benefit_difference(d["soft_malignant"], pair, at)
            shown = pd.DataFrame(each["thresholds"])
            for column, name in (("difference", "value"), ("low", "low"), ("high", "high")):
                np.testing.assert_allclose(shown[column], getattr(expected, name), atol=1e-13)
            assert each["note"] == ""


def test_groups_of_rows_give_the_intervals_of_python(nodules: Path) -> None:
    rows = pd.read_csv(nodules)
    card = _card(nodules, *NODULES, "--group", "patient", *_thresholds(0.3))
    y, groups = rows["soft_malignant"], rows["patient"]
    models = {name: rows[name] for name in ("prob_rf_all", "prob_lr_geometry")}
    for model, p in zip(card["models"], models.values(), strict=True):
        _assert_equals_python(model, [0.3], y_true=y, y_prob=p, groups=groups)
    expected = sc.net_benefit_difference(y, models, [0.3], groups=groups)
    (found,) = card["differences"][0]["thresholds"]
    assert (found["low"], found["high"]) == (expected.low[0], expected.high[0])


def test_one_model_has_no_difference(nodules: Path) -> None:
    card = _card(nodules, *NODULES[:4], *_thresholds(0.1))
    assert card["differences"] == []


def test_saved_tables_have_differences_without_limits(nodules: Path, tmp_path: Path) -> None:
    saved, figure = tmp_path / "n.softcal", tmp_path / "figure.svg"
    preds = ["prob_rf_all", "prob_lr_geometry"]
    sc.scan(nodules, y_true="soft_malignant", y_prob=preds).save(saved)
    from_rows = _card(nodules, *NODULES, *_thresholds(0.2))["differences"][0]
    found = _card(saved, *_thresholds(0.2))["differences"][0]
    (shown,), (of_rows,) = found["thresholds"], from_rows["thresholds"]
    assert shown["difference"] == pytest.approx(of_rows["difference"], abs=1e-13)
    assert shown["low"] is shown["high"] is None
    assert "Pass the rows" in found["note"]
    done = softcal_here("decide", saved, *_thresholds(0.2), "--plot", figure)
    assert "Pass the rows" in " ".join(done.stdout.split())
    assert "20% +0.0088" in " ".join(done.stdout.split())
    assert figure.read_bytes().startswith(b"<?xml")


def test_missing_summary_is_explained(tmp_path: Path) -> None:
    frame = pd.DataFrame({"y": [0, 0, 0], "p": [0.1, 0.2, 0.3]})
    frame.to_csv(tmp_path / "zero.csv", index=False)
    asked = (tmp_path / "zero.csv", "--label", "y", "--pred", "p", "--threshold", "0.15")
    model = _card(*asked)["models"][0]
    assert model["calibration"] is None
    assert "all labels are 0" in model["note"]
    assert "Note: a calibration summary needs different labels" in softcal_here(
        "decide", *asked
    ).stdout.replace("\n", " ")


def test_counts_of_votes_and_weights_are_read(tmp_path: Path, rng: np.random.Generator) -> None:
    yes, p, w = rng.integers(0, 4, 60), rng.random(60), rng.integers(0, 3, 60)
    frame = pd.DataFrame({"no": 3 - yes, "yes": yes, "p": p, "w": w})
    frame.to_csv(tmp_path / "votes.csv", index=False)
    done = softcal_here(
        "decide", tmp_path / "votes.csv", "--vote-columns", "no,yes", "--pred", "p",
        "--weight", "w", "--threshold", "0.3", "--format", "json",
    )  # fmt: skip
    found = json.loads(done.stdout)["models"][0]["thresholds"][0]
    expected = sc.net_benefit(yes / 3, p, 0.3, sample_weight=w)
    assert found["net_benefit"] == pytest.approx(expected.value[0], abs=1e-13)
    assert found["rows_below"] == expected.rows_below[0] == ((p < 0.3) & (w > 0)).sum()


def test_one_row_has_no_interval_and_none_below(tmp_path: Path) -> None:
    pd.DataFrame({"y": [0.5], "p": [0.5]}).to_csv(tmp_path / "one.csv", index=False)
    card = _card(tmp_path / "one.csv", "--label", "y", "--pred", "p", "--threshold", "0.1")
    found = card["models"][0]["thresholds"][0]
    assert (found["low"], found["high"]) == (None, None)
    assert (found["rows_below"], found["mean_prob_below"], found["mean_label_below"]) == (
        0, None, None,
    )  # fmt: skip
    assert found["sentence"] == "At 10%: no row lies below."


def test_figure_is_saved_and_holds_hostile_names(tmp_path: Path, rng: np.random.Generator) -> None:
    names = ["$x$", "_hidden", NAMES[0]]
    frame = pd.DataFrame({name: rng.random(50) for name in [*names, "y"]})
    frame.to_parquet(tmp_path / "rows.parquet")
    preds = [word for name in names for word in ("--pred", name)]
    for kind, start in (("svg", b"<?xml"), ("png", b"\x89PNG"), ("PDF", b"%PDF")):
        figure = tmp_path / f"figure.{kind}"
        done = softcal_here(
            "decide", tmp_path / "rows.parquet", "--label", "y", *preds, "--plot", figure,
            "--threshold", "0.001",
        )  # fmt: skip
        assert (done.returncode, done.stderr) == (0, "")
        assert figure.read_bytes().startswith(start)


@pytest.mark.parametrize("command", ["decide", "watch"])
def test_figure_of_unknown_kind_is_refused(nodules: Path, tmp_path: Path, command: str) -> None:
    more = _thresholds(0.1) if command == "decide" else ["--day", "fold"]
    done = softcal_here(command, nodules, *NODULES, *more, "--plot", tmp_path / "figure.bad")
    assert done.returncode == 2
    assert "saved as .svg, .pdf, or .png: got 'figure.bad'" in done.stderr
    assert not (tmp_path / "figure.bad").exists()


def test_figure_never_overwrites_the_data(nodules: Path) -> None:
    before = nodules.read_bytes()
    done = softcal_here("decide", nodules, *NODULES, *_thresholds(0.1), "--plot", nodules)
    assert done.returncode == 2
    assert nodules.read_bytes() == before


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ([], "pass a threshold: --threshold T"),
        (["--threshold", "1"], "from 0 to below 1: 1 of 1 are not"),
        (["--threshold", "nan"], "from 0 to below 1: 1 of 1 are not"),
        (["--threshold", "0.1", "--level", "2"], "level"),
        (
            ["--threshold", "0.1", "--raters"],
            "No such option: --raters. These commands have it: score, ",
        ),
    ],
)
def test_impossible_options_are_refused(nodules: Path, options: list[str], said: str) -> None:
    done = softcal_here("decide", nodules, *NODULES, *options)
    assert done.returncode == 2
    assert said in done.stderr


def test_saved_tables_name_the_nearest_thresholds(nodules: Path, tmp_path: Path) -> None:
    sc.scan(nodules, y_true="soft_malignant", y_prob="prob_rf_all").save(tmp_path / "n.softcal")
    done = softcal_here("decide", tmp_path / "n.softcal", *_thresholds(0.1, 0.033, 0.5001))
    assert done.returncode == 2
    assert "2 of 3 are not, the first is 0.033." in done.stderr
    assert f"Nearest: {19 / 600!r} and {20 / 600!r}." in done.stderr
    for t in (19 / 600, 20 / 600, 1 / 600 / 1.5**3):
        assert softcal_here("decide", tmp_path / "n.softcal", *_thresholds(t)).returncode == 0
    last = softcal_here("decide", tmp_path / "n.softcal", *_thresholds(1 - 1e-9))
    assert "Nearest: 0.999999900" in last.stderr
    assert " and 1.0" not in last.stderr


def test_saved_tables_with_groups_have_the_intervals_of_their_rows(
    nodules: Path, tmp_path: Path
) -> None:
    saved = tmp_path / "n.softcal"
    preds = ["prob_rf_all", "prob_lr_geometry"]
    sc.scan(nodules, y_true="soft_malignant", y_prob=preds, groups="patient").save(saved)
    of_rows = _card(nodules, *NODULES, "--group", "patient", *_thresholds(0.3))
    found = _card(saved, *_thresholds(0.3))
    for one, two in zip(found["models"], of_rows["models"], strict=True):
        for name, size in (("net_benefit", 1e-12), ("low", 5e-4), ("high", 5e-4)):
            expected = two["thresholds"][0][name]
            assert one["thresholds"][0][name] == pytest.approx(expected, abs=size)
        assert list(one["calibration"]) == list(two["calibration"])
    assert found["differences"][0]["thresholds"][0]["low"] is None


def test_tables_without_net_benefit_are_refused(tmp_path: Path) -> None:
    frame = pd.DataFrame({"y": [0.2, 0.6], "p": [0.2, 0.5], "q": [0.8, 0.6]})
    saved = tmp_path / "saved.softcal"
    sc.scan(frame, y_true=sc.Bounds("y", "q"), y_prob="p").save(saved)
    done = softcal_here("decide", saved, "--threshold", "0.1")
    assert done.returncode == 2
    assert "needs one label and one prediction per row" in done.stderr


def test_threshold_next_to_an_edge_of_a_saved_set_is_that_edge(tmp_path: Path) -> None:
    (tmp_path / "rows.csv").write_text("y,p\n" + "0.5,0.15\n0.2,0.14\n0.9,0.5\n" * 20)
    saved = tmp_path / "saved.softcal"
    columns = ("--label", "y", "--pred", "p")
    softcal_here("scan", tmp_path / "rows.csv", *columns, "-o", saved)
    for source in ((saved,), (tmp_path / "rows.csv", *columns)):
        cards = [
            softcal_here("decide", *source, "--threshold", t, "--format", "json").stdout
            for t in ("0.15000000000000002", "0.15")
        ]
        assert cards[0] == cards[1] != ""
    plotted = softcal_here("plot", saved, "--kind", "decision", "--threshold",
                           "0.15000000000000002", "-o", tmp_path / "x.svg")  # fmt: skip
    assert plotted.returncode == 0, plotted.stderr
