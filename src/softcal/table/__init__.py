"""The table in the middle: bins, the pass that fills them, and what is arithmetic on the sums."""
