"""The calibration error of soft labels as torchmetrics, for training loops on any device.

The state is the table of sums: of constant size however many rows are seen, float64 whatever the
model computes in, and added up across processes. Needs the `torch` extra.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from softcal._optional import naming_the_extra
from softcal._validation.rules import SUM_TOLERANCE
from softcal.exceptions import InputError, InputTypeError

with naming_the_extra():
    import torch
    from torch import Tensor

    from softcal.torchmetric.table_metric import TableMetric
    from softcal.torchmetric.tensors import are_probabilities, class_sums, column_sums

if TYPE_CHECKING:
    from softcal.bins import BinsLike
    from softcal.table.reliability import Reliability

__all__ = [
    "ClasswiseSoftCalibrationError",
    "SoftCalibrationError",
    "TopLabelSoftCalibrationError",
]


class SoftCalibrationError(TableMetric):
    r"""SMECE of binary predictions against soft labels, as a torchmetrics metric.

    \[ \mathrm{SMECE} = \frac{\sum_b |\sum_{i \in b} w_i (p_i - y_i)|}{\sum_i w_i} \]

    With labels 0 and 1 it is the expected calibration error (`norm="l1"` of torchmetrics'
    `BinaryCalibrationError`, but p = 1 belongs to the last bin). `softcal.smece` is the same for
    arrays, and says more. Not to be trained on: the gradient is not tracked.

    The state is a table of float64 sums: it does not grow, adds up across processes, and stays
    float64 through `.half()`, `.to(torch.bfloat16)` and `set_dtype`. (So it cannot be moved to a
    device without float64, such as `mps`: leave it on the CPU and pass `preds.cpu()`.)

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

    def update(self, preds: Tensor, target: Tensor, weights: Tensor | None = None) -> None:
        """Add a batch, in torchmetrics' order: predictions first.

        Parameters
        ----------
        preds : Tensor of shape (n,)
            Predicted probabilities in [0, 1]. Logits are refused, never converted.
        target : Tensor of shape (n,)
            Labels in [0, 1].
        weights : Tensor of shape (n,), optional
            Non-negative weights. A batch without rows, or of weight 0, adds nothing.

        Raises
        ------
        InputError, InputTypeError
            If the batch breaks a rule; the state is then as before.
        """
        _refuse_no_tensors(preds=preds, target=target)
        if preds.shape != target.shape or preds.numel():
            self.sums = self.sums + column_sums(preds, target, weights, self.bins)

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

    def update(self, preds: Tensor, target: Tensor, weights: Tensor | None = None) -> None:
        """Add a batch; the parameters are those of `ClasswiseSoftCalibrationError.update`."""
        target = _label_of_each_class(preds, target, self.num_classes)
        if not len(preds):
            return
        if not are_probabilities(preds, target):
            # Which refuses them: in any class, not the predicted one alone.
            class_sums(preds, target, None, self.bins)
        _refuse_other_sums(preds)
        top, predicted = preds.max(dim=1)
        mass = target.gather(1, predicted.unsqueeze(1)).squeeze(1)
        self.sums = self.sums + column_sums(top, mass, weights, self.bins)

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

    def update(self, preds: Tensor, target: Tensor, weights: Tensor | None = None) -> None:
        """Add a batch.

        Parameters
        ----------
        preds : Tensor of shape (n, num_classes)
            Predicted probabilities in [0, 1]. Logits are refused, never converted.
        target : Tensor of shape (n, num_classes) or integer Tensor of shape (n,)
            The label's share of each class, in [0, 1], or the number of the class, from 0.
        weights : Tensor of shape (n,), optional
            Non-negative weights. A batch without rows, or of weight 0, adds nothing.

        Raises
        ------
        InputError, InputTypeError
            If the batch breaks a rule; the state is then as before.
        """
        target = _label_of_each_class(preds, target, self.num_classes)
        if len(preds):
            self.sums = self.sums + class_sums(preds, target, weights, self.bins)

    def reliabilities(self) -> list[Reliability]:
        """Give one table per class, as `SoftCalibrationError.reliability` does."""
        return self.tables()


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
    is_whole = not (target.is_floating_point() or target.is_complex() or target.dtype is torch.bool)
    if target.shape != rows or not is_whole:
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
