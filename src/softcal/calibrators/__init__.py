"""Calibrators fitted to soft labels."""
