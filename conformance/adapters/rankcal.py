"""rankcal: the ECE of one column, with float32 edges."""

from __future__ import annotations

import rankcal
import torch

NAME = "rankcal"
BASIS = "documentation: scores are in (0, 1). Code: bins are (low, high]"
CONVENTIONS = {"equal-width": "right-closed"}
METRICS = {
    "ece": lambda data: rankcal.ece(
        torch.as_tensor(data.p), torch.as_tensor(data.y).to(torch.as_tensor(data.p).dtype), data.n
    )
}
SINGLE = SOFT = {"ece"}
