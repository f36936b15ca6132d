"""Reliability tables: the pass over rows that builds them, their arithmetic, and their files."""
