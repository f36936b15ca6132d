"""`make evidence`: measure every claim again, and write docs/evidence.md."""
