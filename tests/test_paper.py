"""The paper: its propositions, its 212 printed numbers, its limits, and its errata."""

from __future__ import annotations

import csv
import json
import math
import subprocess
import sys
from itertools import pairwise
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest
from command_line import softcal_here
from hypothesis import given
from hypothesis import strategies as st
from scipy.integrate import quad
from scipy.special import expit
from scipy.stats import norm

import softcal as sc
from softcal import paper
from softcal.paper import experiments, figures, reproduction
from softcal.paper.reproduction import TOTAL_ROWS, printed_tables

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

K = st.floats(0.2, 60)


@pytest.fixture(scope="module")
def report() -> reproduction.Report:
    return reproduction.reproduce()


# Appendix A and the propositions


@given(mu=st.floats(0.1, 5), sigma=st.floats(0.3, 3), x=st.floats(-3, 3))
def test_appendix_a_posterior_is_a_sigmoid(mu: float, sigma: float, x: float) -> None:
    classes = paper.Gaussians(mu, sigma)
    log_odds = norm.logpdf(x, mu, sigma) - norm.logpdf(x, -mu, sigma)
    assert classes.k == 2 * mu / sigma**2
    assert float(classes.posterior(np.array(x))) == pytest.approx(expit(log_odds), rel=1e-9)


def test_inputs_are_drawn_uniformly(rng: np.random.Generator) -> None:
    classes = paper.Gaussians(mu=2.0, sigma=0.5)
    even = classes.draw_uniform(rng, 20_000)
    assert -3 <= even.min() < -2.99
    assert 2.99 < even.max() <= 3


@given(k=K, n=st.integers(1, 200), bins=st.integers(1, 20), seed=st.integers(0, 9))
def test_proposition_1_smece_of_outcomes_equals_ece(k: float, n: int, bins: int, seed: int) -> None:
    rng = np.random.default_rng(seed)
    x, e = rng.uniform(-3, 3, n), rng.uniform(0, 1, n)
    for p in paper.predictions(k, x, e).values():
        assert sc.smece(x >= 0, p, bins=bins) == sc.ece(x >= 0, p, bins=bins)


@given(k=K, n=st.integers(1, 200), bins=st.integers(1, 20), seed=st.integers(0, 9))
def test_proposition_2_smece_of_the_posterior_is_exactly_zero(
    k: float, n: int, bins: int, seed: int
) -> None:
    x = np.random.default_rng(seed).uniform(-3, 3, n)
    p = paper.predictions(k, x, x)["A"]
    assert sc.smece(p, p, bins=bins) == 0.0


@given(k=st.floats(0.2, 20), bins=st.integers(1, 30), tau=st.floats(0.05, 0.95))
def test_proposition_3_thresholded_labels_have_a_floor(k: float, bins: int, tau: float) -> None:
    """For almost every threshold; bins that balance exactly are the exception."""
    x = np.linspace(-3, 3, 20_001)
    p = paper.predictions(k, x, x)["A"]
    gaps = sc.reliability(p > tau, p, bins=bins)
    balanced = np.nanmax(np.abs(gaps.gap)) < 1e-9
    assert balanced or gaps.smece > 0
    if bins > 1:
        assert gaps.smece > 0


def test_proposition_3_limit_is_positive_for_every_k() -> None:
    for k in np.geomspace(0.1, 100, 40):
        assert paper.limit_ece("A", float(k)) > 0
        assert paper.limit_smece("A", float(k)) == 0.0


# The limits


def cuts_of(model: str, k: float, bins: int, p: Callable[[float], float]) -> list[float]:
    """Find the inputs where bins or formulas end, by bisection, as p increases with x."""
    cuts = {-3.0, 0.0, 3.0}
    for edge in np.arange(1, bins) / bins:
        low, high = -3.0, 3.0
        if p(low) < edge < p(high):
            for _ in range(200):
                middle = (low + high) / 2
                low, high = (middle, high) if p(middle) < edge else (low, middle)
            cuts.add(high)
    if model == "D":
        cuts.add(min(3.0, math.log(0.85 / 0.15) / k))
    return sorted(cuts)


def by_quadrature(model: str, k: float, bins: int, metric: str, closed: bool) -> float:  # noqa: FBT001
    """Compute the same limit from the definition, by numerical integration of each bin."""

    def p(x: float) -> float:
        return float(paper.predictions(k, np.array([x]), np.array([0.0]))[model][0])

    def gap(x: float) -> float:
        label = float(expit(k * x)) if metric == "smece" else float(x >= 0)
        return p(x) - label

    total = dict.fromkeys(range(bins), 0.0)
    for a, b in pairwise(cuts_of(model, k, bins, p)):
        middle = (a + b) / 2
        if p(middle) == 1.0 and not closed:
            continue
        number = min(int(p(middle) * bins), bins - 1)
        total[number] += quad(gap, a, b, epsabs=1e-14, epsrel=1e-14, limit=200)[0]
    return sum(map(abs, total.values())) / 6


@pytest.mark.filterwarnings("ignore::scipy.integrate.IntegrationWarning")
@pytest.mark.parametrize("k", [0.5, 2.0, 7.3])
@pytest.mark.parametrize("bins", [1, 7, 10])
@pytest.mark.parametrize("model", list("ABCD"))
@pytest.mark.parametrize("closed", [True, False])
def test_limits_equal_quadrature(model: str, k: float, bins: int, *, closed: bool) -> None:
    for metric, limit in (("smece", paper.limit_smece), ("ece", paper.limit_ece)):
        ours = limit(model, k, bins, last_bin_closed=closed)
        assert ours == pytest.approx(by_quadrature(model, k, bins, metric, closed), abs=1e-12)


@pytest.mark.parametrize("k", [0.5, 2.0, 50.0])
def test_limits_equal_simulation_within_its_error(k: float) -> None:
    value = experiments.scores(np.random.default_rng(1), k, 200_000, 8)
    mean = value.mean(axis=-1)
    error = value.std(axis=-1, ddof=1) / math.sqrt(8)
    for r, closed in enumerate((False, True)):
        for m, limit in enumerate((paper.limit_smece, paper.limit_ece)):
            for j, model in enumerate(paper.MODELS):
                expected = limit(model, k, last_bin_closed=closed)
                # E folds its noise into the error, which 1/sqrt(n) bounds
                assert abs(mean[r, m, j] - expected) <= 5 * error[r, m, j] + 1e-6


def test_limit_of_the_random_model_is_a_quarter() -> None:
    assert paper.limit_smece("E", 2.0) == paper.limit_ece("E", 9.0) == 0.25
    assert paper.limit_smece("E", 2.0, bins=3) == pytest.approx((3**2 - 1) / (4 * 3**2))


def test_unknown_model_is_refused() -> None:
    with pytest.raises(ValueError, match="must be one of A, B, C, D, E: got 'F'"):
        paper.limit_smece("F", 2.0)


# The printed figures


def test_all_printed_numbers_except_one_are_reproduced(report: reproduction.Report) -> None:
    missed = {(c.table, c.name): (c.printed, round(c.open, 3)) for c in report.cells
              if not c.reproduced}  # fmt: skip
    assert missed == {("experiment_3_pairs", "C-E, ECE"): (0.961, 0.468)}
    assert len(report.cells) == 212


def test_every_printed_number_is_compared(report: reproduction.Report) -> None:
    def numbers(node: Any) -> int:
        if isinstance(node, dict):
            return sum(numbers(value) for value in node.values())
        return sum(map(numbers, node)) if isinstance(node, list) else 1

    tables = printed_tables()
    found = numbers(tables["experiment_1"]["rows"])
    found += sum(numbers(tables["experiment_2"][metric]) for metric in ("smece", "ece"))
    found += sum(
        numbers(tables["experiment_3"][part])
        for part in ("overall_accuracy", "pair_accuracy_at_k_2")
    )
    found += sum(numbers(tables["experiment_4"][f"{m}_mean_std"]) for m in ("smece", "ece"))
    assert found == len(report.cells)


def test_closing_the_last_bin_changes_seventeen_numbers(report: reproduction.Report) -> None:
    changed = [cell for cell in report.cells if cell.changed_by_closing]
    assert len(changed) == 17
    ranking = [cell for cell in changed if cell.table == "experiment_3"]
    assert [(c.name, c.shown(c.closed)) for c in ranking] == [("SMECE, k=1", "0.840")]
    assert all("D" in cell.row and cell.row != "ECE D" for cell in changed if cell not in ranking)


def test_batched_scores_equal_those_of_the_library() -> None:
    """Compare the batched scores of the experiments with `reliability`, model by model."""
    value = experiments.scores(np.random.default_rng(3), 2.0, 700, 3, bins=7)
    rng = np.random.default_rng(3)
    for data_set in range(3):
        x, e = rng.uniform(-3, 3, 700), rng.uniform(0, 1, 700)
        models = paper.predictions(2.0, x, e)
        for j, p in enumerate(models.values()):
            below = p < 1
            for m, y in enumerate((models["A"], x >= 0)):
                ours = value[:, m, j, data_set]
                assert ours[1] == pytest.approx(sc.smece(y, p, bins=7), abs=1e-14)
                literal = sc.smece(y[below], p[below], bins=7) * below.mean()
                assert ours[0] == pytest.approx(literal, abs=1e-14)


# The errata


def test_errata_report_the_recomputed_numbers(report: reproduction.Report) -> None:
    ones, c_e, ratio, share, c_d, floor = (item["numbers"] for item in report.errata)
    x = np.random.default_rng(42).uniform(-3, 3, 5000)
    assert ones["dropped"] == int((expit(2 * x) + 0.15 >= 1).sum())
    assert len(ones["changed"]) == 17
    assert round(c_e["mean_of_ours"], 3) == c_e["overall_printed"] == 0.747
    assert round(c_e["mean_of_printed"], 3) != 0.747
    assert round(ratio["ratio"], 1) == 2.9
    inside = np.linspace(-3, 3, 600_001)
    assert share["share"] == pytest.approx(
        np.mean((expit(2 * inside) > 0.1) & (expit(2 * inside) < 0.9)), abs=1e-5
    )
    assert c_d["limit_d"] < c_d["limit_c"]
    assert -0.55 < floor["slope"] < -0.45


# Beyond the paper


def test_ece_of_drawn_outcomes_has_no_floor(report: reproduction.Report) -> None:
    outcomes = report.outcomes
    assert outcomes.slope == pytest.approx(-0.5, abs=0.05)
    assert outcomes.drawn[-1] < outcomes.drawn[0] / 3
    limit = paper.limit_ece("A", 2.0)
    np.testing.assert_allclose(outcomes.thresholded, limit, atol=0.001)
    assert min(outcomes.worth.values()) > 10


def test_worth_of_a_soft_label_is_a_ratio_of_variances() -> None:
    worth, simulated = experiments._worth(np.random.default_rng(0), 2.0, 2000, 2500, 10)
    # The ratio of two variances over 2,500 data sets has a relative error of sqrt(4/2500) = 4%.
    assert simulated == pytest.approx(worth, rel=0.12)


def test_ece_of_majority_votes_increases_for_the_perfect_model(report: reproduction.Report) -> None:
    votes = report.votes
    at = dict(zip(votes.votes, votes.ece_majority, strict=True))
    assert at[1] == pytest.approx(0.03, abs=0.005)
    assert at[5] == pytest.approx(0.10, abs=0.005)
    assert at[100] == pytest.approx(0.25, abs=0.005)
    assert (np.diff(votes.ece_majority) > 0).all()
    assert (np.diff(votes.smece_share) < 0).all()
    assert votes.smece_share[-1] < 0.005


def test_smece_of_the_true_posterior_is_zero_in_any_dimension(
    report: reproduction.Report,
) -> None:
    assert report.dimensions.smece_true.tolist() == [0.0, 0.0, 0.0, 0.0]
    assert (report.dimensions.ece_true > 0.05).all()
    assert (report.dimensions.smece_linear > 0).all()


def test_posterior_of_a_mixture_is_calibrated(rng: np.random.Generator) -> None:
    """Draw classes and inputs jointly; outcome frequencies must equal the posterior."""
    classes = paper.Mixture(
        0.3,
        (np.zeros(2), np.ones(2)),
        (np.eye(2), np.array([[0.5, 0.2], [0.2, 2.0]])),
    )
    n = 200_000
    second = rng.random(n) < 0.3
    draws = [
        rng.multivariate_normal(mean, covariance, n)
        for mean, covariance in zip(classes.means, classes.covariances, strict=True)
    ]
    x = np.where(second[:, None], draws[1], draws[0])
    p = classes.posterior(x)
    rel = sc.reliability(second, p)
    error = np.sqrt(rel.sums.prob_var) / rel.count
    assert (np.abs(rel.gap) < 4.5 * error).all()
    assert p.mean() == pytest.approx(0.3, abs=0.01)


def test_equal_covariances_give_linear_log_odds(rng: np.random.Generator) -> None:
    classes = paper.Mixture(0.5, (np.array([-1.0]), np.array([1.0])), (np.eye(1), np.eye(1)))
    x = rng.uniform(-3, 3, (100, 1))
    np.testing.assert_allclose(
        classes.posterior(x), paper.Gaussians(1.0, 1.0).posterior(x[:, 0]), rtol=1e-12
    )


# The command


@pytest.fixture
def reproduced_once(report: reproduction.Report, monkeypatch: pytest.MonkeyPatch) -> None:
    """Make the command reuse the results of the other tests."""
    monkeypatch.setattr(reproduction, "reproduce", lambda _step: report)


def test_paper_prints_tables_and_errata_without_matplotlib() -> None:
    code = """
import sys
sys.modules["matplotlib"] = None
from softcal.__main__ import main
main()
"""
    command = [sys.executable, "-c", code, "paper"]
    shown = subprocess.run(command, capture_output=True, text=True, check=False)  # noqa: S603
    assert shown.returncode == 0, shown.stderr
    assert "211 of 212 printed numbers reproduced digit for digit." in shown.stdout
    for words in (
        "1,743 of 5,000",
        "0.468",
        "2.9 times",
        "36.6%",
        "claimed order is wrong",
        "n^-0.50",
    ):
        assert words in shown.stdout
    assert max(map(len, shown.stdout.splitlines())) <= 80
    assert "\x1b" not in shown.stdout


@pytest.mark.usefixtures("reproduced_once")
def test_paper_prints_json_and_writes_a_folder(tmp_path: Path) -> None:
    folder = tmp_path / "new" / "folder"
    result = softcal_here("paper", "--format", "json", "-o", folder)
    assert result.returncode == 0, result.stderr
    found = json.loads(result.stdout)
    assert (found["printed"], found["reproduced"]) == (212, 211)
    (mismatch,) = found["mismatches"]
    assert list(mismatch) == ["table", "cell", "printed", "ours", "why"]
    assert (mismatch["cell"], mismatch["printed"], mismatch["ours"]) == ("C-E, ECE", 0.961, 0.468)
    assert sum(map(len, found["tables"].values())) == 212
    assert len(found["errata"]) == 6
    with (folder / "experiment_4.csv").open(newline="") as lines:
        read = list(csv.DictReader(lines))
    assert len(read) == 100
    assert [row["limit"] for row in read if row["column"] == "n=500 std"] == [""] * 10
    for name in ("reliability", "over_k", "ranking", "over_n"):
        assert (folder / f"{name}.png").read_bytes().startswith(b"\x89PNG")
        assert (folder / f"{name}.pdf").read_bytes().startswith(b"%PDF")
    assert not [path for path in folder.iterdir() if path.name.startswith(".")]


@pytest.mark.usefixtures("reproduced_once")
def test_paper_writes_the_further_experiments_as_csv(tmp_path: Path) -> None:
    result = softcal_here("paper", "--format", "json", "-o", tmp_path)
    further = json.loads(result.stdout)["further"]

    def read(name: str) -> dict[str, list[float]]:
        with (tmp_path / f"{name}.csv").open(newline="") as lines:
            rows = list(csv.DictReader(lines))
        return {column: [float(row[column]) for row in rows] for column in rows[0]}

    five = further["experiment_5"]
    assert read("experiment_5") == {
        "n": five["n"], "ece_drawn": five["drawn"], "ece_thresholded": five["thresholded"],
    }  # fmt: skip
    with (tmp_path / "experiment_5_worth.csv").open(newline="") as lines:
        worth = list(csv.DictReader(lines))
    assert {row["model"]: float(row["worth"]) for row in worth} == five["worth"]
    simulated = {row["model"]: float(row["worth_simulated"]) for row in worth}
    assert simulated == five["worth_simulated"]
    for name in ("experiment_6", "experiment_7"):
        columns = {key: value for key, value in further[name].items() if key != "n"}
        assert read(name) == columns


@pytest.mark.usefixtures("reproduced_once")
def test_paper_refuses_an_unwritable_folder_in_one_line(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("in the way")
    result = softcal_here("paper", "-o", tmp_path / "file" / "folder")
    assert result.returncode == 2
    assert result.stderr.splitlines()[-1].startswith("softcal: error: cannot write ")


def test_progress_counts_every_row() -> None:
    seen: list[int] = []
    experiments.scores(np.random.default_rng(0), 2.0, 1000, 50, step=seen.append)
    assert sum(seen) == 50_000
    assert TOTAL_ROWS == 5000 * 7 + 6 * 1000 * 1000 + 500 * 18_500


# Figures


def test_paper_figures_show_the_results_and_change_no_global_state(
    report: reproduction.Report,
) -> None:
    import matplotlib as mpl

    before = dict(mpl.rcParams)
    sweep = figures.over_steepness(report.results.two)
    diagrams = figures.reliability_diagrams()
    figures.ranking_accuracy(report.results.three)
    figures.confidently_wrong(report.results.four, report.outcomes)
    assert dict(mpl.rcParams) == before
    points = sweep.axes[0].get_lines()[3]  # model B: its limits are line 2, its points line 3
    np.testing.assert_array_equal(points.get_ydata(), report.results.two.value[1, 0, 1])
    assert len(diagrams.axes) == 5
    perfect = diagrams.axes[0].get_lines()[2]
    x, y = (np.asarray(data, dtype=float) for data in perfect.get_data())
    np.testing.assert_allclose(x, y, atol=1e-15)


def test_errata_need_the_cells() -> None:
    with pytest.raises(StopIteration):
        reproduction._find([], "experiment_1", "A", "ECE")
