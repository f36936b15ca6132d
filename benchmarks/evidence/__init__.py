"""`make evidence`: every claim measured again, live, and written to docs/evidence.md."""
