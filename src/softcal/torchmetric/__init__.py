"""The calibration error of soft labels as torchmetrics, for training loops on any device.

The state is the table of sums: of constant size however many rows are seen, float64 whatever the
model computes in, and added up across processes. With groups it also has the sums of each group in
each bin that the group fills. Needs the `torch` extra.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from softcal._optional import naming_the_extra
from softcal._validation.rules import SUM_TOLERANCE
from softcal.bins import Bins
from softcal.exceptions import BinMismatchError, InputError, InputTypeError
from softcal.table.groups import Clusters, clusters_of, refuse_many_group_bins
from softcal.table.kernel import Sums
from softcal.table.reliability import Reliability

with naming_the_extra():
    import torch
    from torch import Tensor
    from torchmetrics import Metric

    from softcal.torchmetric.tensors import (
        KEPT,
        VOTES,
        added_by_key,
        are_probabilities,
        class_sums,
        column_sums,
        group_sums,
    )

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from softcal.bins import BinsLike

_STATES = ("edges", "sums", "grouped")
_GROUP_STATES = ("group_keys", "group_sums")
_SUMS_OF_SCHEMA_1 = 9

__all__ = [
    "ClasswiseSoftCalibrationError",
    "SoftCalibrationError",
    "TopLabelSoftCalibrationError",
]


class TableMetric(Metric):
    """What the metrics share: one table of sums per class, kept as torchmetrics keeps state."""

    is_differentiable = False
    higher_is_better = False
    full_state_update = False
    plot_lower_bound = 0.0
    plot_upper_bound = 1.0

    edges: Tensor  # (bins + 1,)
    sums: Tensor  #  (sums, classes, bins), never changed in place
    grouped: Tensor  # (), the number of rows that have a group
    group_keys: list[Tensor]  # parts of shape (entries, 2), as `group_sums` has them
    group_sums: list[Tensor]  # parts of shape (entries, 2)

    def __init__(self, bins: BinsLike, n_tables: int, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self.bins = Bins.of(bins)
        # The edges are state too, so that no sums of other bins are ever added to these: not from
        # another process, not from a checkpoint, not by a MetricCollection that shares states.
        self.add_state("edges", torch.tensor(self.bins.edges), dist_reduce_fx=_the_same_edges)
        zeros = torch.zeros(len(KEPT), n_tables, len(self.bins), dtype=torch.float64)
        self.add_state("sums", zeros, dist_reduce_fx="sum")
        zero = torch.zeros((), dtype=torch.float64)
        self.add_state("grouped", zero, dist_reduce_fx="sum")
        for name in _GROUP_STATES:
            self.add_state(name, [], dist_reduce_fx="cat")

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

    def _add(
        self,
        sums: Tensor,
        preds: Tensor,
        target: Tensor,
        weights: Tensor | None,
        groups: Tensor | None,
    ) -> None:
        """Add the sums of a batch, and those of its groups given the rows (n, classes)."""
        total, grouped = self.sums + sums, self.grouped
        parts = self.group_keys, self.group_sums
        if groups is not None:
            refuse_many_group_bins(len(self.bins))
            _refuse_other_groups(groups, len(preds))
            grouped = grouped + sums[0, 0].sum()
            found = group_sums(preds, target, weights, groups, self.bins)
            parts = self._joined(*([*old, new] for old, new in zip(parts, found, strict=True)))
        if parts[0]:
            _refuse_mixture(total, grouped)
        self.sums, self.grouped = total, grouped
        self.group_keys, self.group_sums = parts

    def _joined(
        self, keys: list[Tensor], sums: list[Tensor], *, to_one: bool = False
    ) -> tuple[list[Tensor], list[Tensor]]:
        """Add up the parts of a state when the later ones outgrow the first.

        Not with every batch, or many small ones would take time that grows with their square.
        """
        if not to_one and sum(map(len, keys[1:])) <= sum(map(len, keys[:1])):
            return keys, sums
        device = self.device
        none = torch.zeros(0, 2, dtype=torch.int64), torch.zeros(0, 2, dtype=torch.float64)
        joined = added_by_key(
            *(
                torch.cat([part.to(device) for part in (empty, *parts)])
                for empty, parts in zip(none, (keys, sums), strict=True)
            )
        )
        return [joined[0]], [joined[1]]

    def forward(self, *args: Any, **kwargs: Any) -> Any:
        """Add a batch and give the error of this batch alone."""
        before = dict(vars(self))
        parts = [list(before[name]) for name in _GROUP_STATES]
        try:
            value = super().forward(*args, **kwargs)
            if self.group_keys:
                _refuse_mixture(self.sums, self.grouped)
        except Exception:
            # torchmetrics sets the state aside before it looks at the batch, and empties its lists.
            # Put all of it back.
            vars(self).update(before)
            for name, part in zip(_GROUP_STATES, parts, strict=True):
                before[name][:] = part
            raise
        self.group_keys, self.group_sums = self._joined(self.group_keys, self.group_sums)
        return value

    def merge_state(self, incoming_state: dict[str, Any] | Metric) -> None:
        """Add the rows of another metric of the same kind and bins, or of its `metric_state`.

        Raises
        ------
        BinMismatchError
            If its bins, or its number of classes, differ.
        """
        state = getattr(incoming_state, "metric_state", incoming_state)
        if isinstance(state, dict):
            state = {**self._no_groups(), **state}
            if not self._fits(state):
                message = (
                    f"cannot merge a metric with other bins or classes than these {self.bins!r} "
                    f"and {self.sums.shape[1]} tables. Make both with the same arguments."
                )
                raise BinMismatchError(message)
            sums, grouped = (getattr(self, k) + state[k].to(self.sums) for k in _STATES[1:])
            _refuse_mixture(sums, grouped)
        super().merge_state(incoming_state if isinstance(incoming_state, Metric) else state)
        self.group_keys, self.group_sums = self._joined(self.group_keys, self.group_sums)
        self._accept_new_rows()

    def _no_groups(self) -> dict[str, Any]:
        """Return the states of groups that have no rows."""
        return {"grouped": torch.zeros_like(self.grouped), **{name: [] for name in _GROUP_STATES}}

    def _fits(self, state: dict[str, Any]) -> bool:
        """Whether another state has these bins and classes, in full precision."""
        edges, sums, grouped = (state.get(name) for name in _STATES)
        return (
            isinstance(edges, Tensor)
            and isinstance(sums, Tensor)
            and isinstance(grouped, Tensor)
            and (sums.shape, grouped.shape) == (self.sums.shape, ())
            and (sums.dtype, grouped.dtype) == (torch.float64, torch.float64)
            and torch.equal(edges.to(self.edges), self.edges)
            and self._groups_fit(*(state[name] for name in _GROUP_STATES))
        )

    def _groups_fit(self, keys: object, sums: object) -> bool:
        """Whether the sums of groups have these bins and classes, in full precision."""
        cells = self.sums.shape[1] * len(self.bins)
        return (
            isinstance(keys, list)
            and isinstance(sums, list)
            and len(keys) == len(sums)
            and all(
                isinstance(k, Tensor)
                and isinstance(s, Tensor)
                and (k.dtype, s.dtype) == (torch.int64, torch.float64)
                and k.shape == (len(k), 2)
                and s.shape == k.shape
                and bool(((k[:, 1] >= 0) & (k[:, 1] < cells)).all())
                for k, s in zip(keys, sums, strict=True)
            )
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
        names = (*_STATES, *_GROUP_STATES)
        saved = {name: state_dict[prefix + name] for name in names if prefix + name in state_dict}
        before = {name: getattr(self, name) for name in names}
        super()._load_from_state_dict(
            state_dict, prefix, local_metadata, strict, missing_keys, unexpected_keys, error_msgs
        )
        vars(self).update(before)
        if not saved:
            return
        saved["sums"] = _of_all_schemas(saved.get("sums"))
        saved = {**self._no_groups(), **saved}  # which a checkpoint of softcal 0.1 does not have
        if not self._fits(saved):
            error_msgs.append(
                f"{prefix}sums must be float64 sums of {self.bins!r} and "
                f"{self.sums.shape[1]} tables: load it into a metric made with the same arguments."
            )
            return
        self.sums, self.grouped = (
            saved[name].to(self.sums.device, copy=True) for name in _STATES[1:]
        )
        self.group_keys, self.group_sums = (
            [part.to(self.sums.device, copy=True) for part in saved[name]] for name in _GROUP_STATES
        )
        self._accept_new_rows()

    def _apply(self, fn: Callable[[Tensor], Tensor], exclude_state: Sequence[str] = ()) -> Any:
        """Follow the model to another device, but not to another dtype: sums need float64."""
        super()._apply(fn, exclude_state=(*exclude_state, *_STATES, *_GROUP_STATES))
        for name in _STATES:
            setattr(self, name, getattr(self, name).to(self.device))
        for name in _GROUP_STATES:
            setattr(self, name, [part.to(self.device) for part in getattr(self, name)])
        self._computed = None  # which torchmetrics may have rounded
        return self

    def _sync_dist(self, *args: Any, **kwargs: Any) -> None:
        """Gather the states of all processes; a group may have rows in several of them."""
        # One part each, also in a process without groups: torchmetrics would give it another type.
        self.group_keys, self.group_sums = self._joined(
            self.group_keys, self.group_sums, to_one=True
        )
        super()._sync_dist(*args, **kwargs)
        for name in _GROUP_STATES:  # which torchmetrics has concatenated
            setattr(self, name, [getattr(self, name)])

    def tables(self) -> list[Reliability]:
        """Return the tables of all rows so far, of all processes."""
        with self.sync_context(self.dist_sync_fn, should_sync=self._to_sync):
            _refuse_mixture(self.sums, self.grouped)
            tables = self.sums.cpu().numpy().swapaxes(0, 1)
            clusters = self._clusters()
        no_votes = dict.fromkeys(VOTES, np.zeros(len(self.bins)))
        return [
            Reliability(
                self.bins,
                Sums(
                    **{**dict(zip(KEPT, sums.copy(), strict=True)), **no_votes,
                       "count": sums[0].astype(np.int64)}
                ),
                of_groups,
            )
            for sums, of_groups in zip(tables, clusters, strict=True)
        ]  # fmt: skip

    def _clusters(self) -> Sequence[Clusters | None]:
        """Return what each table keeps of the groups; None where there are none."""
        tables = self.sums.shape[1]
        if not self.grouped:
            return [None] * tables
        keys, sums = (
            torch.cat([part.cpu() for part in parts]).numpy()
            for parts in (self.group_keys, self.group_sums)
        )
        group = np.unique(keys[:, 0], return_inverse=True)[1]
        table, place = np.divmod(keys[:, 1], len(self.bins))
        return [
            clusters_of(group[table == k], place[table == k], sums[table == k].T, len(self.bins))
            for k in range(tables)
        ]


class SoftCalibrationError(TableMetric):
    r"""SMECE of binary predictions against soft labels, as a torchmetrics metric.

    \[ \mathrm{SMECE} = \frac{\sum_b |\sum_{i \in b} w_i (p_i - y_i)|}{\sum_i w_i} \]

    With labels 0 and 1 it is the expected calibration error (`norm="l1"` of torchmetrics'
    `BinaryCalibrationError`, but p = 1 belongs to the last bin). `softcal.smece` is the same for
    arrays, and says more. Not to be trained on: the gradient is not tracked.

    The state is a table of float64 sums: it does not grow, adds up across processes, and stays
    float64 through `.half()`, `.to(torch.bfloat16)` and `set_dtype`. (So it cannot be moved to a
    device without float64, such as `mps`: leave it on the CPU and pass `preds.cpu()`.) With groups
    it grows with their number, and `compute` and `reliability` gather those of all processes.

    Parameters
    ----------
    bins : int, Bins or edges, default 10
        As in `softcal.reliability`. float16, bfloat16 and float32 predictions are compared with
        the edges as they are.
    **kwargs
        Those of `torchmetrics.Metric`.

    Examples
    --------
    >>> import torch
    >>> metric = SoftCalibrationError(bins=2)
    >>> metric.update(torch.tensor([0.2, 0.4]), torch.tensor([0.0, 0.5]))
    >>> metric.update(torch.tensor([0.9]), torch.tensor([1.0]))
    >>> round(metric.compute().item(), 4)
    0.0667
    >>> metric.reliability()
    Reliability(n=3, bins=2)
    """

    def __init__(self, bins: BinsLike = 10, **kwargs: Any) -> None:
        super().__init__(bins, 1, **kwargs)

    def update(
        self,
        preds: Tensor,
        target: Tensor,
        weights: Tensor | None = None,
        groups: Tensor | None = None,
    ) -> None:
        """Add a batch, in torchmetrics' order: predictions first.

        Parameters
        ----------
        preds : Tensor of shape (n,)
            Predicted probabilities in [0, 1]. Logits are refused, never converted.
        target : Tensor of shape (n,)
            Labels in [0, 1].
        weights : Tensor of shape (n,), optional
            Non-negative weights. A batch without rows, or of weight 0, adds nothing.
        groups : integer Tensor of shape (n,), optional
            Which patient, document or annotator each row belongs to, by a number that is the same
            in every batch and every process. It changes only the uncertainty, which
            `reliability` has.

        Raises
        ------
        InputError, InputTypeError
            If the batch breaks a rule; the state is then as before.
        """
        _refuse_no_tensors(preds=preds, target=target)
        if preds.shape != target.shape or preds.numel():
            sums = column_sums(preds, target, weights, self.bins)
            self._add(sums, preds.unsqueeze(1), target.unsqueeze(1), weights, groups)

    def reliability(self) -> Reliability:
        """Give the table of all rows so far, of all processes: for intervals, tests, pictures.

        Where there are several processes, all of them must call it, as for `compute`.
        """
        return self.tables()[0]


class TopLabelSoftCalibrationError(TableMetric):
    r"""SMECE of the predicted class's probability against the label mass on that class.

    Each row gives \(p_i = \max_c p_{ic}\), at class \(k_i\) (the first, where several tie), and
    \(y_i = y_{i k_i}\), the share of the label on it. With one-hot labels this is the usual
    confidence calibration error.

    Parameters
    ----------
    num_classes : int
        At least 2.
    bins : int, Bins or edges, default 10
        As in `softcal.reliability`.
    **kwargs
        Those of `torchmetrics.Metric`.

    Examples
    --------
    >>> import torch
    >>> metric = TopLabelSoftCalibrationError(num_classes=3)
    >>> preds = torch.tensor([[0.7, 0.2, 0.1], [0.1, 0.1, 0.8]])
    >>> target = torch.tensor([[0.6, 0.4, 0.0], [0.0, 0.5, 0.5]])
    >>> round(metric(preds, target).item(), 4)
    0.2
    """

    def __init__(self, num_classes: int, bins: BinsLike = 10, **kwargs: Any) -> None:
        super().__init__(bins, 1, **kwargs)
        self.num_classes = _number_of_classes(num_classes)

    def update(
        self,
        preds: Tensor,
        target: Tensor,
        weights: Tensor | None = None,
        groups: Tensor | None = None,
    ) -> None:
        """Add a batch; the parameters are those of `ClasswiseSoftCalibrationError.update`."""
        target = _label_of_each_class(preds, target, self.num_classes)
        if not len(preds):
            return
        # torch cannot find the maximum of some integer types.
        preds = preds if preds.is_floating_point() else preds.double()
        target = target.double() if _is_whole(target) else target
        if not are_probabilities(preds, target):
            # Which refuses them: in any class, not the predicted one alone.
            class_sums(preds, target, None, self.bins)
        _refuse_other_sums(preds)
        top, predicted = preds.max(dim=1)
        mass = target.gather(1, predicted.unsqueeze(1)).squeeze(1)
        sums = column_sums(top, mass, weights, self.bins)
        self._add(sums, top.unsqueeze(1), mass.unsqueeze(1), weights, groups)

    def reliability(self) -> Reliability:
        """Give the table of all rows so far, as `SoftCalibrationError.reliability` does."""
        return self.tables()[0]


class ClasswiseSoftCalibrationError(TableMetric):
    r"""Mean over the classes of the SMECE of each class's probability.

    \[ \frac1C \sum_c \frac{\sum_b |\sum_{i \in b} w_i (p_{ic} - y_{ic})|}{\sum_i w_i} \]

    Each class is its own binary problem, so this also serves labels that do not exclude each other
    (multilabel): rows need not sum to 1.

    Parameters
    ----------
    num_classes : int
        At least 2.
    bins : int, Bins or edges, default 10
        As in `softcal.reliability`.
    **kwargs
        Those of `torchmetrics.Metric`.

    Examples
    --------
    >>> import torch
    >>> metric = ClasswiseSoftCalibrationError(num_classes=3)
    >>> preds = torch.tensor([[0.7, 0.2, 0.1], [0.1, 0.1, 0.8]])
    >>> target = torch.tensor([[0.6, 0.4, 0.0], [0.0, 0.5, 0.5]])
    >>> round(metric(preds, target).item(), 4)
    0.2
    >>> [round(rel.smece, 2) for rel in metric.reliabilities()]
    [0.1, 0.3, 0.2]
    """

    def __init__(self, num_classes: int, bins: BinsLike = 10, **kwargs: Any) -> None:
        super().__init__(bins, _number_of_classes(num_classes), **kwargs)
        self.num_classes = num_classes

    def update(
        self,
        preds: Tensor,
        target: Tensor,
        weights: Tensor | None = None,
        groups: Tensor | None = None,
    ) -> None:
        """Add a batch.

        Parameters
        ----------
        preds : Tensor of shape (n, num_classes)
            Predicted probabilities in [0, 1]. Logits are refused, never converted.
        target : Tensor of shape (n, num_classes) or integer Tensor of shape (n,)
            The label's share of each class, in [0, 1], or the number of the class, from 0.
        weights : Tensor of shape (n,), optional
            Non-negative weights. A batch without rows, or of weight 0, adds nothing.
        groups : integer Tensor of shape (n,), optional
            Which patient, document or annotator each row belongs to, by a number that is the same
            in every batch and every process. It changes only the uncertainty, which
            `reliabilities` has.

        Raises
        ------
        InputError, InputTypeError
            If the batch breaks a rule; the state is then as before.
        """
        target = _label_of_each_class(preds, target, self.num_classes)
        if len(preds):
            sums = class_sums(preds, target, weights, self.bins)
            self._add(sums, preds, target, weights, groups)

    def reliabilities(self) -> list[Reliability]:
        """Give one table per class, as `SoftCalibrationError.reliability` does."""
        return self.tables()


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


def _refuse_other_sums(preds: Tensor) -> None:
    """Refuse rows that are no distribution over the classes, but for the rounding of their type."""
    off = (preds.detach().double().sum(dim=1) - 1).abs()
    allowed = max(SUM_TOLERANCE, torch.finfo(preds.dtype).eps)  # which bfloat16 needs
    wrong = off > allowed
    if bool(wrong.any()):
        first = int(wrong.int().argmax())
        total = float(preds[first].double().sum())
        message = (
            f"each row of preds must sum to 1: {int(wrong.sum())} of {len(preds)} do not, the "
            f"first is preds[{first}], which sums to {total:.6g}. Pass "
            "torch.softmax(logits, dim=1)."
        )
        raise InputError(message)


def _refuse_no_tensors(**given: object) -> None:
    for name, values in given.items():
        if not isinstance(values, Tensor):
            kind = type(values).__name__
            message = f"{name} must be a tensor: got {kind}. Pass torch.as_tensor({name})."
            raise InputTypeError(message)
        if values.is_complex():
            message = f"{name} must hold real numbers: it is {values.dtype}. Pass {name}.real."
            raise InputTypeError(message)


def _refuse_mixture(sums: Tensor, grouped: Tensor) -> None:
    """Refuse rows with groups beside rows without."""
    rows = int(sums[0, 0].sum())
    if int(grouped) not in (0, rows):
        message = (
            f"all rows must have groups, or none: {int(grouped)} of {rows} have. Pass groups with "
            "every batch, in every process."
        )
        raise InputError(message)


def _refuse_other_groups(groups: Tensor, rows: int) -> None:
    """Refuse groups that are not one whole number per row."""
    _refuse_no_tensors(groups=groups)
    if not _is_whole(groups) or groups.shape != (rows,):
        message = (
            f"groups must have shape ({rows},) and hold whole numbers: it has "
            f"{tuple(groups.shape)} and is {groups.dtype}. Number the groups once, for all "
            "batches, for instance with numpy.unique(names, return_inverse=True)[1]."
        )
        raise InputError(message)


def _is_whole(values: Tensor) -> bool:
    dtype = values.dtype
    return not (dtype.is_floating_point or dtype.is_complex or dtype is torch.bool)


def _number_of_classes(num_classes: int) -> int:
    if isinstance(num_classes, bool) or not isinstance(num_classes, int):
        message = f"num_classes must be a whole number: got {num_classes!r:.60}."
        raise InputTypeError(message)
    if num_classes < 2:
        message = (
            f"num_classes must be 2 or more: got {num_classes}. Use SoftCalibrationError for one "
            "column of probabilities."
        )
        raise InputError(message)
    return num_classes


def _label_of_each_class(preds: Tensor, target: Tensor, num_classes: int) -> Tensor:
    """Give the labels in the shape of the predictions; numbers of classes become one-hot."""
    _refuse_no_tensors(preds=preds, target=target)
    rows = preds.shape[:1]
    if preds.shape != (*rows, num_classes):
        message = (
            f"preds must have shape (n, {num_classes}): it has {tuple(preds.shape)}. "
            "Of images, pass preds.movedim(1, -1).flatten(0, -2)."
        )
        raise InputError(message)
    if target.shape == preds.shape:
        return target
    if target.shape != rows or not _is_whole(target):
        message = (
            f"target must have shape {tuple(preds.shape)}, or {tuple(rows)} with the numbers of "
            f"the classes as integers: it has {tuple(target.shape)} and is {target.dtype}."
        )
        raise InputError(message)
    one_hot = target.unsqueeze(1) == torch.arange(num_classes, device=target.device)
    if not bool(one_hot.any(dim=1).all()):
        wrong = ~one_hot.any(dim=1)
        first = int(wrong.int().argmax())
        message = (
            f"target must be numbers of classes from 0 to {num_classes - 1}: {int(wrong.sum())} of "
            f"{len(target)} are not, the first is target[{first}] = {int(target[first])}. Leave "
            "rows without a class out of the batch."
        )
        raise InputError(message)
    return one_hot
