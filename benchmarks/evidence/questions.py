"""Define the questions: data on which at least one library is wrong, and the right answer.

All code is text, so that the page shows what was run. `right` is arithmetic without softcal.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from benchmarks.evidence.peers import PEERS, SOFTCAL

FORMULA = """\
import numpy as np
def formula(y, p, bins=10):
    where = np.minimum((p * bins).astype(int), bins - 1)
    return np.abs(np.bincount(where, p - y)).sum() / len(p)"""

_SOFT = """\
rng = np.random.default_rng(0)
x = rng.uniform(-3, 3, 5000)
y, p = 1 / (1 + np.exp(-2 * x)), 1 / (1 + np.exp(-6 * x))"""

_HARD = """\
rng = np.random.default_rng(0)
p = rng.random(1000)
y = (rng.random(1000) < p**1.5).astype(float)"""

_EVERY_ECE = {peer.name: peer.ece for peer in PEERS if peer.ece}


@dataclass(frozen=True)
class Question:
    """One input: how to make it, the right answer, and the call of each library."""

    title: str
    words: str
    setup: str
    right: str = "formula(y, p)"
    ours: str = SOFTCAL.ece
    calls: dict[str, str] = field(default_factory=lambda: _EVERY_ECE)
    # The input breaks a rule, and a library should refuse it.
    bad: bool = False
    # The same input without the fault, for the library's own answer to it.
    good: str = ""
    within: float = 1e-5
    # A prediction or a size at which binning or summation can go wrong.
    edge: bool = False


# Bins that span the data have no edges at 0 and 1.
_FIXED_BINS = {name: call for name, call in _EVERY_ECE.items() if name != "model-diagnostics"}


def _only(*names: str) -> dict[str, str]:
    return {name: _EVERY_ECE[name] for name in names}


SOFT = Question(
    "Soft labels",
    "The labels are probabilities; nothing else is unusual. Labels hardened at 0.5 would give "
    "0.0368, and labels cast to integers would give 0.498.",
    _SOFT,
    calls={
        "scikit-learn": "calibration_curve(y, p, n_bins=10)",
        **_EVERY_ECE,
        "uncertainty-calibration": "calibration.get_ece(p, y, num_bins=10)",
        "betacal": "BetaCalibration().fit(p, y)",
        "scoringrules": "scoringrules.brier_score(y, p)",
    },
)

CONTROL = Question(
    "Control: 0/1 labels",
    "All libraries should agree here, which shows that each is called correctly. The bins of "
    "model-diagnostics span the data instead of 0 to 1, as its documentation states.",
    _HARD,
    ours="sc.ece(y, p)",
)

# Of libraries that refuse soft labels or return another number without it.
OPTION = {"netcal": "detection=True", "torchmetrics": "validate_args=False"}
OPTIONS = Question(
    "Soft labels through other options",
    "Some libraries return the right answer for soft labels with an additional option.",
    _SOFT,
    calls={
        "netcal": f"ECE(10, {OPTION['netcal']}).measure(p, y)",
        "torchmetrics": "binary_calibration_error(torch.as_tensor(p), torch.as_tensor(y), "
        f"n_bins=10, {OPTION['torchmetrics']})",
    },
)

QUESTIONS = [
    CONTROL,
    SOFT,
    OPTIONS,
    Question(
        "Soft labels, both classes in columns",
        "The data are the same, as probabilities of both classes.",
        _SOFT + "\nP, Y = np.c_[1 - p, p], np.c_[1 - y, y]",
        ours="sc.classwise_smece(Y, P)",
        calls={
            "netcal": "ECE(10).measure(P, Y)",
            "calibstats": "calibstats.ece(P, Y[:, 1], n_bins=10)",
        },
    ),
    Question(
        "Soft labels of four classes, top label",
        "The answer compares the probability of each item's predicted class with the label's "
        "share of that class.",
        """\
rng = np.random.default_rng(0)
Y = rng.dirichlet(np.ones(4), 5000)
P = Y**2 / (Y**2).sum(axis=1, keepdims=True)
top, rows = P.argmax(axis=1), np.arange(5000)""",
        right="formula(Y[rows, top], P[rows, top])",
        ours="sc.top_label_smece(Y, P)",
        calls={
            "netcal": "ECE(10).measure(P, Y)",
            "probmetrics": "CalibrationError(10).compute("
            "y_true=CategoricalProbs(torch.as_tensor(Y)), "
            "y_pred=CategoricalProbs(torch.as_tensor(P)))",
        },
    ),
    Question(
        "The Kolmogorov-Smirnov distance of soft labels",
        "The answer is the largest absolute sum of p - y over the rows with the smallest "
        "predictions, divided by n.",
        _SOFT,
        right="np.abs(np.cumsum((p - y)[np.argsort(p)])).max() / len(p)",
        ours="sc.ecce_mad(y, p).statistic",
        calls={
            "probmetrics": "KolmogorovSmirnovCalibrationMetric().compute("
            "y_true=two(y), y_pred=two(p))",
        },
    ),
    Question(
        "Miscalibration part of the log loss",
        "Here y is the right prediction, so the answer is the mean Kullback-Leibler divergence of "
        "p from y. An estimate may be slightly off, but it cannot be negative.",
        _SOFT,
        right="np.mean(y * np.log(y / p) + (1 - y) * np.log((1 - y) / (1 - p)))",
        within=0.01,
        ours="sc.kl_divergence(y, p)",
        calls={
            "probmetrics": 'Metrics.from_names(["calib-err_logloss_ts-mix_all"]).compute_all('
            'y_true=two(y), y_pred=two(p))["calib-err_logloss_ts-mix_all"]',
        },
    ),
    Question(
        "A calibrator fitted on soft labels",
        "Histogram binning with ten equal bins predicts the mean label of the bin of 0.55.",
        _SOFT,
        right="y[(p >= 0.5) & (p < 0.6)].mean()",
        ours=(
            'sc.calibrators.HistogramCalibrator(10, strategy="uniform")'
            ".fit(p, y).predict([0.55])[0]"
        ),
        calls={
            "netcal": "HistogramBinning(10).fit(p, y).transform(np.array([0.55]))[0]",
        },
    ),
    Question(
        "Labels of 0.2 and 0.8",
        "The answer is the mean label of all rows, the only point of a curve with one bin.",
        """\
rng = np.random.default_rng(0)
p = rng.random(1000)
y = np.where(rng.random(1000) < p, 0.8, 0.2)""",
        right="y.mean()",
        ours="sc.reliability(y, p, bins=1).mean_label[0]",
        calls={"scikit-learn": "calibration_curve(y, p, n_bins=1, pos_label=0.8)[0][0]"},
    ),
    Question(
        "Labels of 0.5",
        "The answer is again the mean label, here of labels that are all 0.5.",
        "p = np.random.default_rng(0).random(1000)\ny = np.full(1000, 0.5)",
        right="y.mean()",
        ours="sc.reliability(y, p, bins=1).mean_label[0]",
        calls={"scikit-learn": "calibration_curve(y, p, n_bins=1, pos_label=1)[0][0]"},
    ),
    Question(
        "A p-value below 0",
        "A p-value cannot be negative.",
        _SOFT,
        right="0.0",
        within=0.0,
        ours="min(0, sc.ecce_mad(y, p).pvalue)",
        calls={"MAPIE": "min(0, kolmogorov_smirnov_p_value(y, p))"},
    ),
    Question(
        "Predictions of exactly 1",
        "With ten bins, 1.0 and 0.95 belong to the same bin.",
        """\
p = np.array([1.0] * 50 + [0.95] * 50)
y = np.array([1.0] * 40 + [0.0] * 10 + [1.0] * 50)""",
        ours="sc.ece(y, p)",
        calls=_FIXED_BINS,
        edge=True,
    ),
    Question(
        "Predictions of exactly 0",
        "With ten bins, 0.0 and 0.05 belong to the same bin.",
        "p = np.array([0.0] * 50 + [0.05] * 50)\ny = np.array([1.0] * 10 + [0.0] * 90)",
        ours="sc.ece(y, p)",
        calls=_FIXED_BINS,
        edge=True,
    ),
    Question(
        "Predictions on a bin edge, 0.3 or 0.4",
        "A bin may include its lower or its upper edge, but all bins must follow one rule. The two "
        "data sets differ by a shift of one bin, so the two errors must be equal. In "
        "`numpy.linspace(0, 1, 11)`, 0.3 is too large by one rounding error. `ece` is the call of "
        "question 1.",
        """\
y = np.array([1.0] * 35 + [0.0] * 65 + [1.0] * 20 + [0.0] * 80)
y4 = np.array([1.0] * 45 + [0.0] * 55 + [1.0] * 30 + [0.0] * 70)
p, p4 = np.array([0.25] * 100 + [0.3] * 100), np.array([0.35] * 100 + [0.4] * 100)""",
        right="0.0",
        ours="ece(y, p) - ece(y4, p4)",
        calls=dict.fromkeys(_EVERY_ECE, "ece(y, p) - ece(y4, p4)"),
        edge=True,
    ),
    Question(
        "20 million rows of float32",
        "A float32 counter that is incremented by 1 stops at 2^24 = 16,777,216.",
        """\
n, rare = 20_000_000, 500_000
p, y = np.full(n, 0.31, np.float32), np.zeros(n, np.float32)
p[-rare:], y[: round(0.31 * (n - rare))] = 0.95, 1""",
        ours="sc.ece(y, p)",
        calls=_only("relplot", "torchmetrics", "monai", "netcal", "probcal"),
        edge=True,
    ),
    Question(
        "One prediction of 1.0000001",
        "One row of 1,000 has a rounding error. Treating it as 1 is harmless.",
        _HARD + "\np[7] = 1 + 1e-7",
        right="formula(y, np.minimum(p, 1))",
        good="y, np.minimum(p, 1)",
        ours="sc.ece(y, p)",
        bad=True,
    ),
    Question(
        "One prediction missing",
        "One row of 1,000 has no prediction.",
        _HARD + "\np[7] = np.nan\ngood = np.arange(1000) != 7",
        right="formula(y[good], p[good])",
        good="y[good], p[good]",
        ours="sc.ece(y, p)",
        bad=True,
    ),
    Question(
        "One label missing",
        "One row of 1,000 has no label.",
        _HARD + "\ny[7] = np.nan\ngood = np.arange(1000) != 7",
        right="formula(y[good], p[good])",
        good="y[good], p[good]",
        ours="sc.ece(y, p)",
        calls={name: call for name, call in _EVERY_ECE.items() if "astype(int)" not in call},
        bad=True,
    ),
    Question(
        "Predictions outside 0 to 1",
        "Of 1,000 predictions, ten are 1.2 and ten are -0.1.",
        _HARD + "\np[:10], p[10:20] = 1.2, -0.1\ngood = np.arange(1000) >= 20",
        right="formula(y[good], p[good])",
        good="y[good], p[good]",
        ours="sc.ece(y, p)",
        bad=True,
    ),
    Question(
        "Labels -1 and 1",
        "Some data sets code outcomes as -1 and 1. Treating them as 0 and 1 is also right.",
        _HARD + "\nzero_one, y = y, 2 * y - 1",
        right="formula(zero_one, p)",
        good="zero_one, p",
        ours="sc.ece(y, p)",
        bad=True,
    ),
    Question(
        "pandas columns in another order",
        "The second Series has the same values, but its index is reversed. A library cannot know "
        "whether rows match by position or by index.",
        "import pandas as pd\n" + _HARD
        + "\ny, p = pd.Series(y), pd.Series(p, index=range(999, -1, -1))",
        right="formula(y.to_numpy(), p.to_numpy())",
        good="y.to_numpy(), p.to_numpy()",
        ours="sc.ece(y, p)",
        calls=_only("relplot", "MCGrad", "netcal", "calibre", "probcal", "MAPIE", "calzone-tool",
                    "model-diagnostics", "pycalib"),
        bad=True,
    ),
    Question(
        "One label for a thousand predictions",
        "The label array has length 1, so there is no right number.",
        _HARD + "\ny = y[:1]",
        right="np.nan",
        ours="sc.ece(y, p)",
        bad=True,
    ),
    Question(
        "Labels after the call",
        "The answer is the largest label after the call. A library may refuse labels of 1 and 2, "
        "but must not change them.",
        _HARD + "\ny = y + 1",
        right="y.max()",
        ours="(sc.ece(y, p), y.max())[1]",
        calls={"MAPIE": "(expected_calibration_error(y, p, num_bins=10), y.max())[1]"},
        bad=True,
    ),
    Question(
        "Level of a bootstrap interval",
        "The answer is the width of a 50% interval relative to a 90% interval, about 0.41 by "
        "normal quantiles. The library documents `alpha` as one minus the level.",
        _HARD + "\ny, _ = y.astype(int), np.random.seed(0)",
        right="0.41",
        within=0.2,
        ours="",
        calls={
            "uncertainty-calibration": "np.ptp(interval(p, y, p=1, alpha=0.5)) / "
            "np.ptp(interval(p, y, p=1, alpha=0.1))"
        },
    ),
]  # fmt: skip
