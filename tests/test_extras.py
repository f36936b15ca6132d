"""Without extras, everything that needs one names it."""

from __future__ import annotations

import json
import subprocess
import sys
import tomllib
from importlib import import_module
from importlib.metadata import packages_distributions
from pathlib import Path

import pytest

from softcal._optional import EXTRAS, naming_the_extra

COMMANDS = (
    "scan",
    "score",
    "merge",
    "compare",
    "report",
    "plan",
    "recalibrate",
    "apply",
    "demo",
    "paper",
)
CALLS = {
    "sc.scan(DATA, y_true='soft_malignant', y_prob='prob_rf_all')": "narwhals",
    "sc.reliability([0.5], [0.4]).plot()": "matplotlib",
    "sc.ReliabilityDisplay.from_predictions([0.5], [0.4])": "matplotlib",
    "sc.write_report('r.html', [0.5], {'m': [0.4]})": "altair",
    "import softcal.torchmetric": "torch",
    "from softcal.calibrators import SoftLabelClassifier": "sklearn",
}
SKLEARN = {
    "BetaCalibrator",
    "DirichletCalibrator",
    "HistogramCalibrator",
    "IsotonicCalibrator",
    "PlattCalibrator",
    "SoftCalibratedClassifier",
    "SoftLabelClassifier",
    "TemperatureCalibrator",
    "VectorScalingCalibrator",
}


def with_the_core_alone(code: str, *arguments: str) -> subprocess.CompletedProcess[str]:
    """Run code in an interpreter whose first finder hides all extras."""
    setting = """
import sys
from softcal._optional import EXTRAS

class NotInstalled:
    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] in EXTRAS:
            raise ModuleNotFoundError(f"No module named {name!r}", name=name)

sys.meta_path.insert(0, NotInstalled())
"""
    return subprocess.run(  # noqa: S603
        [sys.executable, "-c", setting + code, *arguments],
        capture_output=True,
        text=True,
        check=False,
    )


def test_a_missing_module_names_the_libraries_of_its_extra() -> None:
    pyproject = Path(__file__).parents[1] / "pyproject.toml"
    extras = tomllib.loads(pyproject.read_text(encoding="utf-8"))["project"][
        "optional-dependencies"
    ]
    libraries = {
        name: " ".join(line.partition(">=")[0] for line in lines if "softcal[" not in line)
        for name, lines in extras.items()
    }
    distributions = packages_distributions()
    for module, named in EXTRAS.items():
        (name,) = set(distributions[module])
        assert name.lower() in named.split(), module
        assert named in libraries.values(), module
    wanted = ",".join(name for name in extras if libraries[name] in set(EXTRAS.values()))
    assert extras["all"] == [f"softcal[{wanted}]"]


def test_every_command_names_its_missing_extra() -> None:
    code = """
from softcal.__main__ import main
for command in sys.argv[1:]:
    sys.argv = ["softcal", command]
    try:
        main()
    except SystemExit as stopped:
        print(stopped.code)
"""
    commands = ("--help", "--version", *COMMANDS)
    result = with_the_core_alone(code, *commands)
    assert result.stdout.split() == ["2"] * len(commands)
    message = (
        "softcal: error: this needs typer: pip install typer rich msgspec narwhals duckdb pyarrow"
    )
    assert result.stderr.splitlines() == [message] * len(commands)


def test_every_call_names_its_missing_extra() -> None:
    code = """
import json
from importlib.resources import files
import softcal as sc
DATA = files(sc) / "data" / "lidc_malignancy" / "items.csv"
found = {}
for call in sys.argv[1:]:
    try:
        exec(call)
    except ModuleNotFoundError as error:
        found[call] = str(error)
print(json.dumps(found))
"""
    found = json.loads(with_the_core_alone(code, *CALLS).stdout)
    assert found == {
        call: f"this needs {module}: pip install {EXTRAS[module]}" for call, module in CALLS.items()
    }


def test_missing_module_outside_extras_is_named() -> None:
    with pytest.raises(ModuleNotFoundError, match="No module named 'absent'"), naming_the_extra():
        import_module("absent")


def test_other_public_names_need_no_extra() -> None:
    code = """
import softcal as sc
from softcal import calibrators, inference, metrics, planning
for module in (sc, calibrators, inference, metrics, planning):
    for name in module.__all__:
        try:
            getattr(module, name)
        except ModuleNotFoundError as error:
            print(name, error)
"""
    shown = with_the_core_alone(code).stdout
    absent = dict(line.split(" ", 1) for line in shown.splitlines())
    query = absent.pop("sql_query")
    assert query == "this needs narwhals: pip install narwhals duckdb pyarrow"
    assert absent == dict.fromkeys(SKLEARN, "this needs sklearn: pip install scikit-learn")
