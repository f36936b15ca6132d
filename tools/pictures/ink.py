"""How the pictures look: on a light page, on a dark one, and to the colour-blind.

A picture is one SVG without a ground of its own. Each colour in it has two values, and the file's
own style sheet takes the second where the reader prefers dark.
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
    "svg.hashsalt": "softcal",  # the same picture is the same file
}
_COLOUR = re.compile("#[0-9a-f]{6}")
_DARKEST_INK, _DARK_PAGE = 228, 24  # what black and white become


@cache
def nodules() -> dict[str, Any]:
    """Give the bundled data: 1,377 lung nodules, their radiologists and two models."""
    return dict(lidc_malignancy())


def save(figure: Figure, path: Path) -> None:
    """Write a figure as an SVG that suits light and dark pages alike."""
    svg = io.StringIO()
    figure.savefig(svg, format="svg", transparent=True, metadata={"Date": None})
    plt.close(figure)
    path.write_text(_two_coloured(svg.getvalue()), encoding="utf-8")


def _two_coloured(svg: str) -> str:
    second = {colour: _in_the_dark(colour) for colour in sorted(set(_COLOUR.findall(svg)))}
    values = "".join(f"--{colour[1:]}:{dark};" for colour, dark in second.items())
    # What has no colour is black: matplotlib does not write it.
    sheet = f"<style>@media (prefers-color-scheme:dark){{svg{{fill:#e4e4e4;{values}}}}}</style>"
    svg = _COLOUR.sub(lambda found: f"var(--{found[0][1:]}, {found[0]})", svg)
    return svg.replace("<defs>", f"{sheet}<defs>", 1)


def _in_the_dark(colour: str) -> str:
    """Turn greys round, and lighten the others so that they stand out as before."""
    rgb = [int(colour[k : k + 2], 16) for k in (1, 3, 5)]
    if len(set(rgb)) == 1:
        grey = _DARKEST_INK - (_DARKEST_INK - _DARK_PAGE) * rgb[0] // 255
        return f"#{grey:02x}{grey:02x}{grey:02x}"
    return "#" + "".join(f"{part + (255 - part) * 35 // 100:02x}" for part in rgb)
