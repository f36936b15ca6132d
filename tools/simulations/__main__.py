"""Write docs/simulations.md."""

from __future__ import annotations

from simulations.markdown import DOCS
from simulations.page import page

(DOCS / "simulations.md").write_text(page(), encoding="utf-8")
