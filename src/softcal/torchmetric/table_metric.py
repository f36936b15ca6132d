"""A torchmetrics metric whose state is the table of sums: what the three public ones share."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from torch import Tensor
from torchmetrics import Metric

from softcal.bins import Bins
from softcal.exceptions import BinMismatchError, InputError
from softcal.table.kernel import Sums
from softcal.table.reliability import Reliability
from softcal.torchmetric.tensors import KEPT, VOTES

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from softcal.bins import BinsLike

_STATES = ("edges", "sums")
_SUMS_OF_SCHEMA_1 = 9


class TableMetric(Metric):
    """What the metrics share: one table of sums per class, kept as torchmetrics keeps state."""

    is_differentiable = False
    higher_is_better = False
    full_state_update = False
    plot_lower_bound = 0.0
    plot_upper_bound = 1.0

    edges: Tensor  # (bins + 1,)
    sums: Tensor  #  (sums, classes, bins), never changed in place

    def __init__(self, bins: BinsLike, n_tables: int, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self.bins = Bins.of(bins)
        # The edges are state too, so that no sums of other bins are ever added to these: not from
        # another process, not from a checkpoint, not by a MetricCollection that shares states.
        self.add_state("edges", torch.tensor(self.bins.edges), dist_reduce_fx=_the_same_edges)
        zeros = torch.zeros(len(KEPT), n_tables, len(self.bins), dtype=torch.float64)
        self.add_state("sums", zeros, dist_reduce_fx="sum")

    def compute(self) -> Tensor:
        """Give the error of all rows so far, of all processes: a float64 tensor.

        Raises
        ------
        InputError
            If there are no rows.
        """
        residual, weight = (self.sums[KEPT.index(name)] for name in ("residual", "weight"))
        total = weight.sum(dim=1)
        if not bool(total.all()):
            message = "the metric has no rows, so there is no calibration error: call update first."
            raise InputError(message)
        return (residual.abs().sum(dim=1) / total).mean()

    def forward(self, *args: Any, **kwargs: Any) -> Any:
        """Add a batch and give the error of this batch alone."""
        before = dict(vars(self))
        try:
            return super().forward(*args, **kwargs)
        except Exception:
            # torchmetrics sets the state aside before it looks at the batch. Put all of it back.
            vars(self).update(before)
            raise

    def merge_state(self, incoming_state: dict[str, Any] | Metric) -> None:
        """Add the rows of another metric of the same kind and bins, or of its `metric_state`.

        Raises
        ------
        BinMismatchError
            If its bins, or its number of classes, differ.
        """
        state = getattr(incoming_state, "metric_state", incoming_state)
        if isinstance(state, dict) and not self._fits(state):
            message = (
                f"cannot merge a metric with other bins or classes than these {self.bins!r} and "
                f"{self.sums.shape[1]} tables. Make both with the same arguments."
            )
            raise BinMismatchError(message)
        super().merge_state(incoming_state)
        self._accept_new_rows()

    def _fits(self, state: dict[str, Any]) -> bool:
        """Whether another state has these bins and classes, in full precision."""
        edges, sums = (state.get(name) for name in _STATES)
        return (
            isinstance(edges, Tensor)
            and isinstance(sums, Tensor)
            and sums.shape == self.sums.shape
            and sums.dtype == torch.float64
            and torch.equal(edges.to(self.edges), self.edges)
        )

    def _accept_new_rows(self) -> None:
        """Have the next `compute` look at them, and not say that there was no update."""
        self._computed = None
        self._update_count += 1

    def _load_from_state_dict(
        self,
        state_dict: dict[str, Any],
        prefix: str,
        local_metadata: dict[str, Any],
        strict: bool,  # noqa: FBT001 (torch's signature)
        missing_keys: list[str],
        unexpected_keys: list[str],
        error_msgs: list[str],
    ) -> None:
        """Load a checkpoint of this metric, refusing one of other bins or less precision."""
        saved = {name: state_dict[prefix + name] for name in _STATES if prefix + name in state_dict}
        before = {name: getattr(self, name) for name in _STATES}
        super()._load_from_state_dict(
            state_dict, prefix, local_metadata, strict, missing_keys, unexpected_keys, error_msgs
        )
        vars(self).update(before)
        if not saved:
            return
        saved["sums"] = _of_all_schemas(saved.get("sums"))
        if not self._fits(saved):
            error_msgs.append(
                f"{prefix}sums must be float64 sums of {self.bins!r} and "
                f"{self.sums.shape[1]} tables: load it into a metric made with the same arguments."
            )
            return
        self.sums = saved["sums"].to(self.sums.device, copy=True)
        self._accept_new_rows()

    def _apply(self, fn: Callable[[Tensor], Tensor], exclude_state: Sequence[str] = ()) -> Any:
        """Follow the model to another device, but not to another dtype: sums need float64."""
        super()._apply(fn, exclude_state=(*exclude_state, *_STATES))
        for name in _STATES:
            setattr(self, name, getattr(self, name).to(self.device))
        self._computed = None  # which torchmetrics may have rounded
        return self

    def tables(self) -> list[Reliability]:
        """Give the tables of all rows so far, of all processes."""
        with self.sync_context(self.dist_sync_fn, should_sync=self._to_sync):
            tables = self.sums.cpu().numpy()
        no_votes = dict.fromkeys(VOTES, np.zeros(len(self.bins)))
        return [
            Reliability(
                self.bins,
                Sums(
                    **{**dict(zip(KEPT, sums.copy(), strict=True)), **no_votes,
                       "count": sums[0].astype(np.int64)}
                ),
            )
            for sums in tables.swapaxes(0, 1)
        ]  # fmt: skip


def _of_all_schemas(sums: object) -> object:
    """Add the sums that a checkpoint of softcal 0.1 does not have, as not known (NaN)."""
    if isinstance(sums, Tensor) and sums.ndim == 3 and len(sums) == _SUMS_OF_SCHEMA_1:
        missing = len(KEPT) - _SUMS_OF_SCHEMA_1
        return torch.cat((sums, sums.new_full((missing, *sums.shape[1:]), torch.nan)))
    return sums


def _the_same_edges(edges: Tensor) -> Tensor:
    """Reduce the edges of several processes, which must all be the same, to one."""
    if not bool((edges == edges[0]).all()):
        message = (
            "cannot add up processes with different bins: make the metric with the same bins "
            "everywhere, for instance Bins.quantile of the same predictions."
        )
        raise BinMismatchError(message)
    return edges[0]
