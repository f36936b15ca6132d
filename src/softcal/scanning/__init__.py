"""Describe data, read it from any source, and add up its rows into a set of tables."""
