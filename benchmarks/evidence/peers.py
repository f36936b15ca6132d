"""Define the libraries, and how each computes the ECE with 10 bins.

A call is text, so that the page shows exactly what was run. In it y and p are NumPy arrays.
"""

from __future__ import annotations

import subprocess
import sys
from dataclasses import dataclass
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

from softcal import __version__

ROOT = Path(__file__).parent.parent.parent
ALONE = ROOT / "build" / "peers"


@dataclass(frozen=True)
class Peer:
    """A library: what to import, and its ECE of y and p (empty: it has none)."""

    name: str
    imports: str
    ece: str = ""
    # Packages to install in a folder of their own, without dependencies; empty: it is in .venv.
    alone: tuple[str, ...] = ()
    why: str = ""
    # Its name in benchmarks/speed.py, if that has a faster call.
    timed_as: str = ""

    @property
    def folder(self) -> Path:
        """Return its folder, if it is installed alone."""
        return ALONE / self.name


SOFTCAL = Peer("softcal", "import softcal as sc", "sc.smece(y, p)")
PEERS = [
    Peer(
        "scikit-learn",
        "from sklearn.calibration import calibration_curve",
        timed_as="sklearn calibration_curve",
    ),
    Peer(
        "relplot",
        "import relplot.metrics",
        "relplot.metrics.binnedECE(p, y, 10)",
        timed_as="relplot binnedECE",
    ),
    Peer(
        "netcal",
        "from netcal.binning import HistogramBinning\nfrom netcal.metrics import ECE",
        "ECE(10).measure(p, y)",
        timed_as="netcal ECE",
    ),
    Peer(
        "torchmetrics",
        "import torch\n"
        "from torchmetrics.functional.classification import binary_calibration_error",
        "binary_calibration_error(torch.as_tensor(p), torch.as_tensor(y), n_bins=10)",
        timed_as="torchmetrics",
    ),
    Peer(
        "probmetrics",
        "import torch\n"
        "from probmetrics.distributions import CategoricalProbs\n"
        "from probmetrics.metrics import (\n"
        "    CalibrationError, KolmogorovSmirnovCalibrationMetric, Metrics)\n"
        "def two(x): return CategoricalProbs(torch.as_tensor(np.c_[1 - x, x]))",
        "CalibrationError(10).compute(y_true=two(y), y_pred=two(p))",
    ),
    Peer(
        "calzone-tool",
        "from calzone.metrics import CalibrationMetrics",
        'CalibrationMetrics(1, 10).calculate_metrics(y, np.c_[1 - p, p], ["ECE-H"])["ECE-H"]',
    ),
    Peer(
        "MAPIE",
        "from mapie.metrics.calibration import (\n"
        "    expected_calibration_error, kolmogorov_smirnov_p_value,\n"
        "    kuiper_p_value, spiegelhalter_p_value)",
        "expected_calibration_error(y, p, num_bins=10)",
        timed_as="MAPIE",
    ),
    Peer(
        "model-diagnostics",
        "import polars as pl\n"
        "from model_diagnostics.calibration import compute_bias\n"
        'mean_gap = (pl.col("bias_count") * pl.col("bias_mean").abs()).sum()',
        'compute_bias(y_obs=y, y_pred=p, feature=p, n_bins=10, bin_method="uniform")'
        ".select(mean_gap / len(p)).item()",
        timed_as="model-diagnostics",
    ),
    Peer(
        "probcal",
        "from probcal.metrics import ece as probcal_ece",
        'probcal_ece(y, p, n_bins=10, strategy="width")',
        timed_as="probcal ece",
    ),
    Peer(
        "MCGrad",
        "import pandas as pd\n"
        "from mcgrad.metrics import (\n"
        "    MulticalibrationError, ecce_pvalue, expected_calibration_error)",
        "expected_calibration_error(y, p, num_bins=10)",
        alone=("MCGrad", "psutil"),
        why="without its dependencies for fitting (ax-platform, lightgbm); its metrics only need "
        "psutil",
    ),
    Peer("calibre", "import calibre", "calibre.expected_calibration_error(y, p, n_bins=10)"),
    Peer("pycalib", "from pycalib.metrics import binary_ECE", "binary_ECE(y, p, bins=10)"),
    Peer(
        "monai",
        "import torch\n"
        "from monai.metrics import CalibrationErrorMetric\n"
        "def image(x): return torch.as_tensor(x)[None, None]\n"
        "def monai_ece(y, p):\n"
        '    metric = CalibrationErrorMetric(num_bins=10, calibration_reduction="expected")\n'
        "    metric(y_pred=image(p), y=image(y))\n"
        "    return metric.aggregate()",
        "monai_ece(y, p)",
    ),
    Peer(
        "rankcal",
        "import torch, rankcal",
        "rankcal.ece(torch.as_tensor(p), torch.as_tensor(y), n_bins=10)",
    ),
    Peer("calibstats", "import calibstats", "calibstats.ece(p, y, n_bins=10)"),
    Peer(
        "classifier-calibration",
        "from classifier_calibration.calibration_error import classwise_ece",
        "classwise_ece(np.c_[1 - p, p], y, num_bins=10)",
    ),
    Peer(
        "kyle-calibration",
        "from kyle.evaluation import EvalStats",
        "EvalStats(y, np.c_[1 - p, p]).expected_calibration_error(class_label=1, n_bins=10)",
        alone=("kyle-calibration",),
        why="it requires netcal 1.2.0, and runs with 1.4.0",
    ),
    Peer(
        "smartcal",
        "from smartcal.metrics.ece import ECE",
        "ECE(10).compute(p, np.ones(len(p), int), y)",
        alone=(
            "smartcal", "python-decouple", "bayesian-optimization", "xgboost", "colorama",
            "uncertainty-calibration",
        ),
        why="it requires pandas below 3, and runs with 3.1",
    ),
    Peer(
        "uncertainty-calibration",
        "import calibration\n"
        "from calibration import get_calibration_error_uncertainties as interval",
        "calibration.get_ece(p, y.astype(int), num_bins=10)",
        alone=("uncertainty-calibration",),
        why="its module `calibration` has the same name as that of calibration-belt",
    ),
    Peer("calibration-belt", "from calibration import CalibrationBelt"),
    Peer("scoringrules", "import scoringrules"),
    Peer("betacal", "from betacal import BetaCalibration"),
    Peer(
        "torch-uncertainty",
        "import torch\nfrom torch_uncertainty.metrics import CalibrationError",
        'CalibrationError(task="binary", num_bins=10)(torch.as_tensor(p), torch.as_tensor(y))',
        alone=("torch-uncertainty", "einops", "lightning", "pytorch-lightning", "torchvision"),
        why="it imports torchvision, which needs a build for the same torch",
    ),
    Peer(
        "uq360",
        "from uq360.metrics.classification_metrics import expected_calibration_error",
        "expected_calibration_error(y, np.c_[1 - p, p], num_bins=10)",
        alone=("uq360",),
        why="it requires NumPy below 1.21, which is older than Python 3.11",
    ),
]  # fmt: skip


def install_alone(peer: Peer) -> None:
    """Install a library that cannot share .venv; the page shows it if the import fails."""
    if not peer.alone or peer.folder.exists():
        return
    subprocess.run(  # noqa: S603
        [sys.executable, "-m", "pip", "install", "--quiet", "--no-deps", "--constraint",
         str(ROOT / "constraints.txt"), "--target", str(peer.folder), *peer.alone],
        check=False,
    )  # fmt: skip


def installed_version(name: str) -> str:
    """Return the version that this process imports, or nothing."""
    if name == SOFTCAL.name:  # an editable installation has the version of its day
        return __version__
    try:
        return version(name)
    except PackageNotFoundError:
        return ""
