"""Calibration errors of soft labels as torchmetrics metrics, on any device.

The state is the table of sums. It has a constant size, is float64 for every dtype of the model, and
is added up across processes. With groups it also has the sums of each group in each bin that the
group fills. It needs the extra `torch`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from softcal._optional import naming_the_extra
from softcal._validation.rules import SUM_TOLERANCE
from softcal.bins import Bins
from softcal.exceptions import BinMismatchError, InputError, InputTypeError
from softcal.table.kernel import SUM_NAMES, Sums
from softcal.table.owners import MAX_GROUPS, Groups, merged, refuse_many_group_bins
from softcal.table.reliability import Reliability

with naming_the_extra():
    import torch
    from torch import Tensor
    from torchmetrics import Metric

    from softcal.torchmetric.tensors import (
        KEPT,
        added_by_key,
        are_probabilities,
        group_sums,
        table_sums,
    )

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from softcal.bins import BinsLike

_STATES = ("edges", "sums", "grouped")
_GROUP_STATES = ("group_keys", "group_sums")

__all__ = [
    "ClasswiseSoftCalibrationError",
    "SoftCalibrationError",
    "TopLabelSoftCalibrationError",
]


class TableMetric(Metric):
    """Base class of the metrics, with one table of sums per class as state."""

    is_differentiable = False
    higher_is_better = False
    full_state_update = False
    plot_lower_bound = 0.0
    plot_upper_bound = 1.0
    _by_class = False  # whether each class has a table of its own

    edges: Tensor  # (bins + 1,)
    sums: Tensor  #  (sums, classes, bins), never changed in place
    grouped: Tensor  # (), the number of rows that have a group
    group_keys: list[Tensor]  # parts of shape (entries, 2), as `group_sums` returns them
    group_sums: list[Tensor]  # parts of shape (entries, 2)

    def __init__(self, bins: BinsLike, n_tables: int, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self.bins = Bins.of(bins)
        # The edges are part of the state, so that sums of other bins are never added: neither from
        # another process or a checkpoint, nor by a MetricCollection that shares states.
        self.add_state("edges", torch.tensor(self.bins.edges), dist_reduce_fx=_the_same_edges)
        zeros = torch.zeros(len(KEPT), n_tables, len(self.bins), dtype=torch.float64)
        self.add_state("sums", zeros, dist_reduce_fx="sum")
        zero = torch.zeros((), dtype=torch.float64)
        self.add_state("grouped", zero, dist_reduce_fx="sum")
        for name in _GROUP_STATES:
            self.add_state(name, [], dist_reduce_fx="cat")

    def compute(self) -> Tensor:
        """Compute the error of all rows so far, of all processes, as a float64 tensor.

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

    def update(
        self,
        preds: Tensor,
        target: Tensor,
        weights: Tensor | None = None,
        groups: Tensor | None = None,
    ) -> None:
        """Add a batch, with predictions first, as in torchmetrics.

        A batch without rows, or with only zero weights, adds nothing. An invalid batch raises
        `InputError` or `InputTypeError`, and the state does not change.

        Parameters
        ----------
        preds : Tensor of shape (n,), or (n, num_classes) for a metric of classes
            Predicted probabilities in [0, 1]. Logits are refused. Rows of
            `TopLabelSoftCalibrationError` sum to 1.
        target : Tensor of the same shape, or integer Tensor of shape (n,) for a metric of classes
            Labels in [0, 1], for each class if there are several, or class numbers, from 0.
        weights : Tensor of shape (n,), optional
            Non-negative weights.
        groups : integer Tensor of shape (n,), optional
            The number of the patient, document, or rater of each row. It must be the same in
            every batch and process. Groups change only the uncertainty.
        """
        _refuse_no_tensors(preds=preds, target=target)
        preds, target = self._columns(preds, target)
        if preds.shape == target.shape and not preds.numel():
            return
        sums = table_sums(preds, target, weights, self.bins, by_class=self._by_class)
        total, grouped = self.sums + sums, self.grouped
        parts = self.group_keys, self.group_sums
        if groups is not None:
            refuse_many_group_bins(len(self.bins))
            _refuse_other_groups(groups, len(preds))
            grouped = grouped + sums[0, 0].sum()
            if not self._by_class:
                preds, target = preds.unsqueeze(1), target.unsqueeze(1)
            found = group_sums(preds, target, weights, groups, self.bins)
            parts = self._joined(*([*old, new] for old, new in zip(parts, found, strict=True)))
        if parts[0]:
            _refuse_mixture(total, grouped)
        self.sums, self.grouped = total, grouped
        self.group_keys, self.group_sums = parts

    def _columns(self, preds: Tensor, target: Tensor) -> tuple[Tensor, Tensor]:
        """Return the predictions and labels that the tables bin."""
        return preds, target

    def _joined(
        self, keys: list[Tensor], sums: list[Tensor], *, to_one: bool = False
    ) -> tuple[list[Tensor], list[Tensor]]:
        """Add up the parts of a state when the later parts are larger than the first.

        With every batch, the time would grow with the square of the number of batches.
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
        """Add a batch, and return the error of this batch alone."""
        before = dict(vars(self))
        parts = [list(before[name]) for name in _GROUP_STATES]
        try:
            value = super().forward(*args, **kwargs)
            if self.group_keys:
                _refuse_mixture(self.sums, self.grouped)
        except Exception:
            # torchmetrics replaces the state before it validates the batch, and empties its lists.
            # Restore all of it.
            vars(self).update(before)
            for name, part in zip(_GROUP_STATES, parts, strict=True):
                before[name][:] = part
            raise
        self.group_keys, self.group_sums = self._joined(self.group_keys, self.group_sums)
        return value

    def merge_state(self, incoming_state: dict[str, Any] | Metric) -> None:
        """Add the rows of another metric of the same class and bins, or of its `metric_state`.

        Parameters
        ----------
        incoming_state : dict or Metric
            The other metric, or its state.

        Raises
        ------
        BinMismatchError
            If its bins, or its number of classes, differ.
        """
        state = getattr(incoming_state, "metric_state", incoming_state)
        if isinstance(state, dict):
            if not self._fits(state):
                message = (
                    f"cannot merge a metric with other bins or classes than these {self.bins!r} "
                    f"and {self.sums.shape[1]} tables. Create both with the same arguments."
                )
                raise BinMismatchError(message)
            sums, grouped = (getattr(self, k) + state[k].to(self.sums) for k in _STATES[1:])
            _refuse_mixture(sums, grouped)
        super().merge_state(incoming_state)
        self.group_keys, self.group_sums = self._joined(self.group_keys, self.group_sums)
        self._accept_new_rows()

    def _fits(self, state: dict[str, Any]) -> bool:
        """Return whether another state has these bins and classes, in full precision."""
        states: list[Any] = [state.get(name) for name in (*_STATES, *_GROUP_STATES)]
        edges, table, grouped, keys, sums = states
        if not isinstance(keys, list) or not isinstance(sums, list) or len(keys) != len(sums):
            return False
        if not all(isinstance(each, Tensor) for each in (edges, table, grouped, *keys, *sums)):
            return False
        cells = self.sums.shape[1] * len(self.bins)
        return (
            (table.shape, table.dtype) == (self.sums.shape, torch.float64)
            and (grouped.shape, grouped.dtype) == ((), torch.float64)
            and torch.equal(edges.to(self.edges), self.edges)
            and all(
                (k.dtype, s.dtype) == (torch.int64, torch.float64)
                and k.shape == s.shape == (len(k), 2)
                and bool(((k[:, 1] >= 0) & (k[:, 1] < cells)).all())
                for k, s in zip(keys, sums, strict=True)
            )
        )

    def _accept_new_rows(self) -> None:
        """Discard the cached result, and count an update, so that `compute` uses the new rows."""
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
        """Load a checkpoint of this metric; refuse other bins, or lower precision."""
        names = (*_STATES, *_GROUP_STATES)
        saved = {name: state_dict[prefix + name] for name in names if prefix + name in state_dict}
        before = {name: getattr(self, name) for name in names}
        super()._load_from_state_dict(
            state_dict, prefix, local_metadata, strict, missing_keys, unexpected_keys, error_msgs
        )
        vars(self).update(before)
        if not saved:
            return
        if not self._fits(saved):
            error_msgs.append(
                f"{prefix}sums must be float64 sums of {self.bins!r} and "
                f"{self.sums.shape[1]} tables: load it into a metric with the same arguments."
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
        """Move to another device with the model, but keep float64, which the sums need."""
        super()._apply(fn, exclude_state=(*exclude_state, *_STATES, *_GROUP_STATES))
        for name in _STATES:
            setattr(self, name, getattr(self, name).to(self.device))
        for name in _GROUP_STATES:
            setattr(self, name, [part.to(self.device) for part in getattr(self, name)])
        self._computed = None  # torchmetrics may have rounded it
        return self

    def _sync_dist(self, *args: Any, **kwargs: Any) -> None:
        """Gather the states of all processes; a group may have rows in several of them."""
        # One part each, even in a process without groups, so that torchmetrics keeps the type.
        self.group_keys, self.group_sums = self._joined(
            self.group_keys, self.group_sums, to_one=True
        )
        super()._sync_dist(*args, **kwargs)
        for name in _GROUP_STATES:  # torchmetrics has concatenated them
            setattr(self, name, [getattr(self, name)])

    def tables(self) -> list[Reliability]:
        """Return the tables of all rows so far, of all processes."""
        with self.sync_context(self.dist_sync_fn, should_sync=self._to_sync):
            _refuse_mixture(self.sums, self.grouped)
            tables = self.sums.cpu().numpy().swapaxes(0, 1)
            groups = self._groups()
        none: dict[str, Any] = dict.fromkeys(SUM_NAMES, np.zeros(len(self.bins)))
        found = (none | dict(zip(KEPT, sums.copy(), strict=True)) for sums in tables)
        named = (Sums(**sums | {"count": sums["count"].astype(np.int64)}) for sums in found)
        return [Reliability(self.bins, *each) for each in zip(named, groups, strict=True)]

    def _groups(self) -> Sequence[Groups | None]:
        """Return the products of group sums of each table; None without groups."""
        tables = self.sums.shape[1]
        if not self.grouped:
            return [None] * tables
        keys, sums = (
            torch.cat([part.cpu() for part in parts]).numpy()
            for parts in (self.group_keys, self.group_sums)
        )
        names, group = np.unique(keys[:, 0], return_inverse=True)
        places = merged((), names, most=MAX_GROUPS)
        table, place = np.divmod(keys[:, 1], len(self.bins))
        entries = np.array([places.theirs[group], place])
        return [
            Groups.of(places.names, entries[:, table == k], sums[table == k].T)
            for k in range(tables)
        ]


class SoftCalibrationError(TableMetric):
    r"""SMECE of binary predictions against soft labels, as a torchmetrics metric.

    \[ \mathrm{SMECE} = \frac{\sum_b |\sum_{i \in b} w_i (p_i - y_i)|}{\sum_i w_i} \]

    With labels of 0 and 1 it is the expected calibration error: `BinaryCalibrationError` of
    torchmetrics with `norm="l1"`, except that p = 1 belongs to the last bin. It equals
    `softcal.smece` of the same rows. It is not a training loss: the gradient is not tracked.

    The state is a table of float64 sums. It has a constant size, is added up across processes, and
    stays float64 through `.half()`, `.to(torch.bfloat16)`, and `set_dtype`. For a device without
    float64, such as `mps`, leave the metric on the CPU and pass `preds.cpu()`. With groups the
    state grows with their number, and `compute` and `reliability` gather the groups of all
    processes.

    Parameters
    ----------
    bins : int, Bins, or sequence of float, default=10
        A number of equal-width bins, `Bins`, or edges. Predictions of float16, bfloat16, and
        float32 are compared with the edges without rounding.
    **kwargs
        Arguments of `torchmetrics.Metric`.

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

    def reliability(self) -> Reliability:
        """Return the table of all rows so far, for intervals, tests, and plots.

        It includes the rows of all processes. All of them must call it, as for `compute`.
        """
        return self.tables()[0]


class TopLabelSoftCalibrationError(TableMetric):
    r"""SMECE of the predicted class, as a torchmetrics metric.

    \[ \mathrm{SMECE}\bigl(y_{i c_i}, p_{i c_i}\bigr), \qquad c_i = \arg\max_c p_{ic} \]

    The first class is used if several have the highest probability. With one-hot labels this is the
    usual confidence calibration error. The state is as in `SoftCalibrationError`.

    Parameters
    ----------
    num_classes : int
        The number of classes, at least 2.
    bins : int, Bins, or sequence of float, default=10
        A number of equal-width bins, `Bins`, or edges.
    **kwargs
        Arguments of `torchmetrics.Metric`.

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

    def _columns(self, preds: Tensor, target: Tensor) -> tuple[Tensor, Tensor]:
        target = _label_of_each_class(preds, target, self.num_classes)
        if not len(preds):
            return preds[:, 0], target[:, 0]
        # torch cannot find the maximum of some integer types.
        preds = preds if preds.is_floating_point() else preds.double()
        target = target.double() if _is_whole(target) else target
        if not are_probabilities(preds, target):
            # Raise for an invalid value in any class, not only in the predicted one.
            table_sums(preds, target, None, self.bins, by_class=True)
        _refuse_other_sums(preds)
        top, predicted = preds.max(dim=1)
        return top, target.gather(1, predicted.unsqueeze(1)).squeeze(1)

    def reliability(self) -> Reliability:
        """Return the table of all rows so far, as `SoftCalibrationError.reliability` does."""
        return self.tables()[0]


class ClasswiseSoftCalibrationError(TableMetric):
    r"""Mean SMECE over the classes, as a torchmetrics metric.

    \[ \frac1C \sum_c \frac{\sum_b |\sum_{i \in b} w_i (p_{ic} - y_{ic})|}{\sum_i w_i} \]

    Each class is treated as a binary problem, so rows need not sum to 1, and multilabel problems
    are supported. The state is as in `SoftCalibrationError`, with one table per class.

    Parameters
    ----------
    num_classes : int
        The number of classes, at least 2.
    bins : int, Bins, or sequence of float, default=10
        A number of equal-width bins, `Bins`, or edges.
    **kwargs
        Arguments of `torchmetrics.Metric`.

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

    _by_class = True

    def __init__(self, num_classes: int, bins: BinsLike = 10, **kwargs: Any) -> None:
        super().__init__(bins, _number_of_classes(num_classes), **kwargs)
        self.num_classes = num_classes

    def _columns(self, preds: Tensor, target: Tensor) -> tuple[Tensor, Tensor]:
        return preds, _label_of_each_class(preds, target, self.num_classes)

    def reliabilities(self) -> list[Reliability]:
        """Return one table per class, as `SoftCalibrationError.reliability` does."""
        return self.tables()


def _the_same_edges(edges: Tensor) -> Tensor:
    """Return the edges of several processes, which must be identical."""
    if not bool((edges == edges[0]).all()):
        message = (
            "cannot add up processes with different bins: create the metric with the same bins "
            "everywhere, for example Bins.quantile of the same predictions."
        )
        raise BinMismatchError(message)
    return edges[0]


def _refuse_other_sums(preds: Tensor) -> None:
    """Refuse rows that do not sum to 1, within the rounding of their dtype."""
    off = (preds.detach().double().sum(dim=1) - 1).abs()
    allowed = max(SUM_TOLERANCE, torch.finfo(preds.dtype).eps)  # larger for bfloat16
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
    """Refuse a mixture of rows with groups and rows without."""
    rows = int(sums[0, 0].sum())
    if int(grouped) not in (0, rows):
        message = (
            f"all rows must have groups, or none: {int(grouped)} of {rows} have one. Pass groups "
            "with every batch, in every process."
        )
        raise InputError(message)


def _refuse_other_groups(groups: Tensor, rows: int) -> None:
    """Refuse groups that are not one integer per row."""
    _refuse_no_tensors(groups=groups)
    if not _is_whole(groups) or groups.shape != (rows,):
        message = (
            f"groups must have shape ({rows},) and hold whole numbers: it has shape "
            f"{tuple(groups.shape)} and dtype {groups.dtype}. Number the groups once, for all "
            "batches, for example with numpy.unique(names, return_inverse=True)[1]."
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
    """Return the labels in the shape of the predictions; class numbers become one-hot."""
    rows = preds.shape[:1]
    if preds.shape != (*rows, num_classes):
        message = (
            f"preds must have shape (n, {num_classes}): it has {tuple(preds.shape)}. "
            "For images, pass preds.movedim(1, -1).flatten(0, -2)."
        )
        raise InputError(message)
    if target.shape == preds.shape:
        return target
    if target.shape != rows or not _is_whole(target):
        message = (
            f"target must have shape {tuple(preds.shape)}, or {tuple(rows)} with integer class "
            f"numbers: it has shape {tuple(target.shape)} and dtype {target.dtype}."
        )
        raise InputError(message)
    one_hot = target.unsqueeze(1) == torch.arange(num_classes, device=target.device)
    if not bool(one_hot.any(dim=1).all()):
        wrong = ~one_hot.any(dim=1)
        first = int(wrong.int().argmax())
        message = (
            f"target must be class numbers from 0 to {num_classes - 1}: {int(wrong.sum())} of "
            f"{len(target)} are not, the first is target[{first}] = {int(target[first])}. Omit "
            "rows without a class from the batch."
        )
        raise InputError(message)
    return one_hot
