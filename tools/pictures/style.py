"""Style the figures for light and dark pages.

A figure is one SVG with a transparent background. Each color in it has two values, and the style
sheet of the file uses the second one in dark mode.
"""

from __future__ import annotations

import io
import re
from functools import cache
from typing import TYPE_CHECKING, Any

from matplotlib import pyplot as plt

from softcal.datasets import lidc_malignancy

if TYPE_CHECKING:
    from pathlib import Path

    from matplotlib.figure import Figure

INK, FAINT = "#222222", "#777777"

LOOK: dict[Any, Any] = {
    "font.size": 12,
    "text.color": INK,
    "axes.labelcolor": INK,
    "axes.edgecolor": FAINT,
    "xtick.color": INK,
    "ytick.color": INK,
    "axes.titlelocation": "left",
    "axes.titlesize": 13,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "legend.frameon": False,
    "lines.linewidth": 2,
    "svg.hashsalt": "softcal",  # the same figure is the same file
}
_COLOR = re.compile("#[0-9a-f]{6}")
_DARKEST_INK, _DARK_PAGE = 228, 24  # what black and white become


@cache
def nodules() -> dict[str, Any]:
    """Return the bundled data: 1,377 lung nodules, their radiologists, and two models."""
    return dict(lidc_malignancy())


def save(figure: Figure, path: Path) -> None:
    """Write a figure as an SVG for light and dark pages."""
    svg = io.StringIO()
    figure.savefig(svg, format="svg", transparent=True, metadata={"Date": None})
    plt.close(figure)
    path.write_text(_two_colored(svg.getvalue()), encoding="utf-8")


def _two_colored(svg: str) -> str:
    second = {color: _for_dark_mode(color) for color in sorted(set(_COLOR.findall(svg)))}
    values = "".join(f"--{color[1:]}:{dark};" for color, dark in second.items())
    # matplotlib does not write the color of black elements.
    sheet = f"<style>@media (prefers-color-scheme:dark){{svg{{fill:#e4e4e4;{values}}}}}</style>"
    svg = _COLOR.sub(lambda found: f"var(--{found[0][1:]}, {found[0]})", svg)
    return svg.replace("<defs>", f"{sheet}<defs>", 1)


def _for_dark_mode(color: str) -> str:
    """Invert grays, and lighten other colors to keep their contrast."""
    rgb = [int(color[k : k + 2], 16) for k in (1, 3, 5)]
    if len(set(rgb)) == 1:
        gray = _DARKEST_INK - (_DARKEST_INK - _DARK_PAGE) * rgb[0] // 255
        return f"#{gray:02x}{gray:02x}{gray:02x}"
    return "#" + "".join(f"{part + (255 - part) * 35 // 100:02x}" for part in rgb)
