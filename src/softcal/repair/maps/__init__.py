"""Calibration maps: fitted on soft labels, applied, saved as JSON. NumPy and SciPy only.

A map takes predictions to better calibrated ones. `softcal.repair.calibrators` makes scikit-learn
estimators of them.
"""
