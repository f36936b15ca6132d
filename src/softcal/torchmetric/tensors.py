"""Compute the sums of a table from torch tensors, on their device.

On the CPU, the rows go through input validation and the kernel as views of the tensors, which is
several times faster than torch operations. On any other device torch computes the sums. Only an
invalid batch is copied to the host, where input validation raises the error.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import torch
from torch import Tensor

from softcal._validation import inputs
from softcal._validation.inputs import Names
from softcal._validation.rules import LARGEST_WEIGHT, SMALLEST_WEIGHT
from softcal.table import kernel
from softcal.table.terms import terms

if TYPE_CHECKING:
    from softcal.bins import Bins

VOTES = ("votes", "repeated", "vote_floor", "vote_noise")
KEPT = tuple(name for name in kernel.SUM_NAMES if name not in VOTES)
"""The sums stored for tensors, in this order: all except those of votes."""


def table_sums(
    preds: Tensor, target: Tensor, weights: Tensor | None, bins: Bins, *, by_class: bool = False
) -> Tensor:
    """Return the sums of rows, as float64 of shape (sums, tables, bins).

    Rows of shape (n,) have one table. By class, they have shape (n, classes) and a table per class.
    """
    add_up = host_sums if preds.device.type == "cpu" else device_sums
    return add_up(preds, target, weights, bins, by_class=by_class)


def are_probabilities(*tensors: Tensor) -> bool:
    """Return whether every value is in [0, 1], with a single synchronization."""
    # If there is a NaN, aminmax returns NaN, which fails both comparisons.
    ends = (tensor.detach().aminmax() for tensor in tensors)
    return bool(torch.stack([(low >= 0) & (high <= 1) for low, high in ends]).all())


def host_sums(
    preds: Tensor, target: Tensor, weights: Tensor | None, bins: Bins, *, by_class: bool = False
) -> Tensor:
    """Return the sums of rows on the CPU."""
    if not by_class:
        return _column_sums(preds, target, weights, bins)
    columns = zip(preds.unbind(1), target.unbind(1), strict=True)
    each = (_column_sums(p, y, weights, bins, f"[:, {k}]") for k, (p, y) in enumerate(columns))
    return torch.cat(list(each), dim=1)


def _column_sums(
    preds: Tensor, target: Tensor, weights: Tensor | None, bins: Bins, part: str = ""
) -> Tensor:
    """Return the sums of columns on the CPU; `part` is the caller's index, for messages."""
    remedy = "torch.softmax(preds, dim=1)" if part else "torch.sigmoid({})"
    names = Names(f"target{part}", f"preds{part}", "weights", from_logits=remedy)
    rows = inputs.rows(target, preds, weights, names=names)
    sums = kernel.bin_sums(rows, bins)
    if sums is None:
        inputs.refuse(rows)
    return torch.from_numpy(np.array([getattr(sums, name) for name in KEPT])).unsqueeze(1)


def device_sums(
    preds: Tensor, target: Tensor, weights: Tensor | None, bins: Bins, *, by_class: bool = False
) -> Tensor:
    """Return the sums of rows with torch operations."""
    columns = (preds, target) if by_class else (preds.unsqueeze(-1), target.unsqueeze(-1))
    sums = _with_torch(*columns, weights, bins)
    if sums is not None:
        return sums
    weights = None if weights is None else weights.cpu()
    return host_sums(preds.cpu(), target.cpu(), weights, bins, by_class=by_class)


def group_sums(
    preds: Tensor, target: Tensor, weights: Tensor | None, groups: Tensor, bins: Bins
) -> tuple[Tensor, Tensor]:
    """Compute the sums of each group in each bin of each class, given valid rows.

    Returns
    -------
    tuple of Tensor
        The keys, of shape (entries, 2): the group, and the class times the number of bins plus the
        bin. The sums, of shape (entries, 2), of w d and w.
    """
    p, y, w = _doubles(preds, target, weights)
    present = w > 0
    group = groups.to(p.device, torch.int64).unsqueeze(1).expand_as(p)
    values = torch.stack((w * (p - y), w), dim=-1)
    keys = torch.stack((group, _places(p, bins)), dim=-1)
    return added_by_key(keys[present], values[present])


def _doubles(
    preds: Tensor, target: Tensor, weights: Tensor | None
) -> tuple[Tensor, Tensor, Tensor]:
    """Return predictions, labels, and weights of the same shape, as float64 without gradients."""
    p, y = preds.detach().double(), target.detach().double()
    w = torch.ones_like(p)
    return p, y, w if weights is None else w * weights.detach().double().unsqueeze(1)


def added_by_key(keys: Tensor, sums: Tensor) -> tuple[Tensor, Tensor]:
    """Add up entries with the same key."""
    # One column at a time, because torch sorts integers much faster than rows of integers.
    (names, group), (cells, cell) = (torch.unique(key, return_inverse=True) for key in keys.T)
    found, place = torch.unique(group * len(cells) + cell, return_inverse=True)
    total = sums.new_zeros(len(found), sums.shape[1]).index_add_(0, place, sums)
    size = max(len(cells), 1)
    return torch.stack((names[found // size], cells[found % size]), dim=1), total


def _places(p: Tensor, bins: Bins) -> Tensor:
    """Return the bin of each prediction (n, classes), plus the class times the number of bins."""
    edges = torch.tensor(bins.edges, device=p.device)
    place = torch.bucketize(p, edges[1:-1], right=True)  # exact: both are float64
    return place + torch.arange(p.shape[1], device=p.device) * len(bins)


def _with_torch(preds: Tensor, target: Tensor, weights: Tensor | None, bins: Bins) -> Tensor | None:
    """Return the sums of (n, classes), or None if something is invalid."""
    if not _have_right_shapes(preds, target, weights) or not are_probabilities(preds, target):
        return None
    p, y, w = _doubles(preds, target, weights)
    right = ((w >= SMALLEST_WEIGHT) & (w <= LARGEST_WEIGHT)) | (w == 0)
    if weights is not None and not bool(right.all()):
        return None
    shape = len(KEPT), p.shape[1], len(bins)
    cell = _places(p, bins)
    found = terms(p, y, w, None, lambda condition, value: torch.where(condition, value, 0.0))
    each = torch.stack([found[name].double() for name in KEPT])
    sums = torch.zeros(shape, dtype=torch.float64, device=p.device).flatten(1)
    # index_add_, not bincount, because torch has a deterministic version on every device.
    sums.index_add_(1, cell.flatten(), each.flatten(1))
    return sums.reshape(shape)


def _have_right_shapes(preds: Tensor, target: Tensor, weights: Tensor | None) -> bool:
    return (
        preds.ndim == 2
        and preds.shape == target.shape
        and (weights is None or weights.shape == preds.shape[:1])
        and not any(t.is_complex() for t in (preds, target, weights) if t is not None)
    )
