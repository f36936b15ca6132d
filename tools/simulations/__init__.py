"""Write docs/simulations.md from the tables in docs: `python -m simulations` in tools.

One module per kind of simulation, one function per section. Every number on the page is computed
from a table, so a new run of a script changes table and page together.
"""
