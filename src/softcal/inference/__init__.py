"""How sure is it? Intervals, tests and comparisons, from tables alone."""
