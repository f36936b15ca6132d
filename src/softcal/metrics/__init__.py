"""Metrics of calibration and proper scores."""
