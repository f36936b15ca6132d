"""Public names of `softcal.calibrators`."""

from .base import CalibrationMap as CalibrationMap
from .classifiers import (
    SoftCalibratedClassifier as SoftCalibratedClassifier,
    SoftLabelClassifier as SoftLabelClassifier,
)
from .estimators import (
    BetaCalibrator as BetaCalibrator,
    DirichletCalibrator as DirichletCalibrator,
    HistogramCalibrator as HistogramCalibrator,
    IsotonicCalibrator as IsotonicCalibrator,
    PlattCalibrator as PlattCalibrator,
    TemperatureCalibrator as TemperatureCalibrator,
    VectorScalingCalibrator as VectorScalingCalibrator,
)
from .maps import load_calibrator as load_calibrator
from .preview import (
    RepairPreview as RepairPreview,
    Trial as Trial,
    repair_preview as repair_preview,
)

__all__: list[str]
