"""Numbers from arrays or from a table: errors, scores, curves, with bins and without."""
