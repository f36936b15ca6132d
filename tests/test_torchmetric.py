"""The torch metrics equal the NumPy table: for every dtype, any batches, and several processes."""

from __future__ import annotations

import json
import pickle
import subprocess
import sys
import warnings
from copy import deepcopy
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from same_tables import assert_same_table
from strategies import N_BINS, weighted_rows

import softcal as sc
from softcal.torchmetric import (
    ClasswiseSoftCalibrationError,
    SoftCalibrationError,
    TopLabelSoftCalibrationError,
    tensors,
)

with warnings.catch_warnings():
    warnings.simplefilter("ignore")
    from torchmetrics import MetricCollection
    from torchmetrics.classification import BinaryCalibrationError, MulticlassCalibrationError

if TYPE_CHECKING:
    from pathlib import Path

    from torch import Tensor

FLOATS = [torch.float16, torch.bfloat16, torch.float32, torch.float64]
ALL_KINDS = [
    SoftCalibrationError(),
    TopLabelSoftCalibrationError(num_classes=3),
    ClasswiseSoftCalibrationError(num_classes=3),
]


def as_table(sums: Tensor, bins: sc.Bins) -> sc.Reliability:
    metric = SoftCalibrationError(bins)
    metric.sums = sums
    return metric.reliability()


@pytest.fixture
def batch() -> tuple[Tensor, Tensor]:
    """Return soft (preds, target) of 3 classes."""
    torch.manual_seed(0)
    return torch.rand(500, 3).softmax(dim=1), torch.rand(500, 3).softmax(dim=1)


# Groups


@given(weighted_rows(), N_BINS, st.lists(st.integers(0, 60)), st.integers(1, 9), st.booleans())
@settings(max_examples=50)
def test_group_may_have_rows_in_several_batches(
    found: list[tuple[float, float, float]],
    n_bins: int,
    cuts: list[int],
    n_groups: int,
    by_forward: bool,  # noqa: FBT001
) -> None:
    y, p, w = torch.tensor(found, dtype=torch.float64).T
    groups = torch.arange(len(y)) % n_groups - 2
    metric = SoftCalibrationError(bins=n_bins)
    for part in np.split(np.arange(len(y)), sorted(min(c, len(y)) for c in cuts)):
        add = metric if by_forward and w[part].any() else metric.update
        add(p[part], y[part], w[part], groups[part])
    whole = sc.reliability(y, p, bins=n_bins, sample_weight=w, groups=groups)
    assert_same_table(metric.reliability(), whole)


def test_groups_of_classes_equal_those_of_their_columns(batch: tuple[Tensor, Tensor]) -> None:
    (p, y), groups = batch, (torch.arange(500) % 90).to(torch.uint8)
    top, classwise = TopLabelSoftCalibrationError(3), ClasswiseSoftCalibrationError(3)
    for part in np.array_split(np.arange(500), 8):
        for metric in (top, classwise):
            metric.update(p[part], y[part], groups=groups[part])
    assert_same_table(top.reliability(), sc.top_label_reliability(y, p, groups=groups))
    whole = sc.classwise_reliability(y, p, groups=groups)
    for mine, theirs in zip(classwise.reliabilities(), whole.values(), strict=True):
        assert_same_table(mine, theirs)


@pytest.mark.parametrize("by_forward", [False, True])
def test_state_grows_with_groups_but_not_with_rows(by_forward: bool) -> None:  # noqa: FBT001
    torch.manual_seed(0)
    metric = SoftCalibrationError(bins=2)
    for _ in range(40):
        batch = torch.rand(100), torch.rand(100), None, torch.arange(100) % 25
        (metric if by_forward else metric.update)(*batch)
        assert sum(map(len, metric.group_keys)) <= 2 * 25 * 2
    assert sum(map(len, metric.group_sums)) == sum(map(len, metric.group_keys))
    metric.half()
    assert {part.dtype for part in metric.group_sums} == {torch.float64}
    metric.reset()
    assert (metric.group_keys, metric.group_sums, metric.grouped.item()) == ([], [], 0)


def test_rows_with_and_without_groups_are_refused() -> None:
    one, ann = (torch.tensor([0.5]), torch.tensor([0.1])), torch.tensor([7])
    none = torch.zeros(0)
    for first, second in ((ann, None), (None, ann)):
        metric = SoftCalibrationError()
        metric.update(*one, groups=first)
        metric.update(none, none)
        before = metric.reliability()
        other = SoftCalibrationError()
        other.update(*one, groups=second)
        for refused in (
            lambda: metric.update(*one, groups=second),  # noqa: B023
            lambda: metric(*one, groups=second),  # noqa: B023
            lambda: metric.merge_state(other),  # noqa: B023
        ):
            with pytest.raises(sc.InputError, match=r"or none: 1 of 2 have one\. Pass groups"):
                refused()
        assert metric.reliability() == before


@pytest.mark.parametrize(
    ("groups", "message"),
    [
        (
            torch.tensor([1.0, 2.0]),
            r"hold whole numbers: it has shape \(2,\) and dtype torch.float32",
        ),
        (torch.tensor([True, False]), "whole numbers"),
        (torch.tensor([1]), r"groups must have shape \(2,\)"),
        (["ann", "ben"], "groups must be a tensor: got list"),
    ],
)
def test_groups_that_are_not_one_whole_number_per_row_are_refused(
    groups: Any, message: str
) -> None:
    metric = SoftCalibrationError()
    with pytest.raises(sc.SoftcalError, match=message):
        metric.update(torch.tensor([0.5, 0.2]), torch.tensor([0.1, 0.1]), groups=groups)
    with pytest.raises(sc.InputError, match="at most 2000 bins"):
        SoftCalibrationError(3600).update(
            torch.tensor([0.5]), torch.tensor([0.1]), groups=torch.tensor([1])
        )


def test_groups_survive_a_checkpoint_and_a_merge() -> None:
    torch.manual_seed(0)
    p, y, groups = torch.rand(200), torch.rand(200), torch.arange(200) % 30
    whole = sc.reliability(y, p, groups=groups)
    halves = SoftCalibrationError(), SoftCalibrationError()
    for half, part in zip(halves, np.split(np.arange(200), 2), strict=True):
        half.update(p[part], y[part], groups=groups[part])
    halves[0].persistent(mode=True)
    saved = halves[0].state_dict()
    fresh, again = SoftCalibrationError(), SoftCalibrationError()
    for metric in (fresh, again):
        metric.load_state_dict(dict(saved))
    fresh.merge_state(halves[1])
    again.merge_state(halves[1].metric_state)
    for metric in (fresh, again):
        assert_same_table(metric.reliability(), whole)
    copied: SoftCalibrationError = deepcopy(fresh).cpu()
    assert_same_table(copied.reliability(), whole)
    damaged = [part + torch.tensor([0, 10]) for part in saved["group_keys"]]
    for other in (damaged, [], [part.double() for part in saved["group_keys"]], None):
        with pytest.raises(RuntimeError, match="load it into a metric with the same arg"):
            fresh.load_state_dict({**saved, "group_keys": other})
    assert_same_table(fresh.reliability(), whole)


# The same table as NumPy's


@given(weighted_rows(), N_BINS, st.lists(st.integers(0, 60)))
@settings(max_examples=50)
def test_batches_in_any_order_give_the_table_of_all_rows(
    found: list[tuple[float, float, float]], n_bins: int, cuts: list[int]
) -> None:
    y, p, w = torch.tensor(found, dtype=torch.float64).T
    metric = SoftCalibrationError(bins=n_bins)
    for part in reversed(np.split(np.arange(len(y)), sorted(min(c, len(y)) for c in cuts))):
        metric.update(p[part], y[part], w[part])
    whole = sc.reliability(y, p, bins=n_bins, sample_weight=w)
    assert_same_table(metric.reliability(), whole)
    assert metric.compute().item() == pytest.approx(whole.smece, abs=1e-12)


@pytest.mark.parametrize("dtype", FLOATS)
@pytest.mark.parametrize("add_up", [tensors.host_sums, tensors.device_sums])
@pytest.mark.parametrize("bins", [1, 7, 10, 100])
def test_every_dtype_is_compared_with_the_edges_without_rounding(
    dtype: torch.dtype, add_up: Any, bins: int
) -> None:
    """The torch operations for GPUs and the kernel for the CPU locate rows as NumPy does."""
    edges = torch.arange(bins + 1, dtype=torch.float64) / bins
    near = torch.cat([edges, edges.nextafter(edges - 1), edges.nextafter(edges + 1)])
    torch.manual_seed(0)
    p = torch.cat([near, torch.rand(3000, dtype=torch.float64)]).clamp(0, 1).to(dtype)
    y = torch.rand(len(p)).to(dtype)
    w = torch.rand(len(p)) * (torch.rand(len(p)) < 0.9)
    for weights in (None, w):
        whole = sc.reliability(
            y.double().numpy(), p.double().numpy(), bins=bins, sample_weight=weights
        )
        assert_same_table(as_table(add_up(p, y, weights, whole.bins), whole.bins), whole)


@pytest.mark.parametrize("add_up", [tensors.host_sums, tensors.device_sums])
def test_class_metrics_equal_binary_metrics(add_up: Any, batch: tuple[Tensor, Tensor]) -> None:
    bins = sc.Bins.uniform(10)
    w = torch.rand(500)
    sums = add_up(*batch, w, bins, by_class=True)
    for k in range(3):
        whole = sc.reliability(batch[1][:, k], batch[0][:, k], sample_weight=w)
        assert_same_table(as_table(sums[:, k : k + 1], bins), whole)


def test_large_batch_uses_the_compiled_loop() -> None:
    torch.manual_seed(0)
    p, y = torch.rand(100_000), torch.rand(100_000)
    metric = SoftCalibrationError(bins=15)
    metric.update(p, y)
    assert_same_table(metric.reliability(), sc.reliability(y, p, bins=15))


def test_integer_and_boolean_labels_and_a_tracked_gradient() -> None:
    p = torch.tensor([0.2, 0.9], requires_grad=True)
    for y in (torch.tensor([0, 1]), torch.tensor([False, True])):
        value = SoftCalibrationError()(p, y)
        assert value.item() == pytest.approx(0.15)
        assert not value.requires_grad
        sums = tensors.device_sums(p, y, None, sc.Bins.uniform(10))
        assert as_table(sums, sc.Bins.uniform(10)).smece == pytest.approx(0.15)


# Agreement with torchmetrics on 0/1 labels


@pytest.mark.parametrize("bins", [5, 10, 15])
def test_outcomes_off_the_edges_equal_torchmetrics(bins: int) -> None:
    torch.manual_seed(0)
    p = torch.rand(4000, dtype=torch.float64)
    y = (torch.rand(4000) < p**1.5).long()
    theirs = BinaryCalibrationError(n_bins=bins, norm="l1")(p, y)
    assert SoftCalibrationError(bins)(p, y).item() == pytest.approx(theirs.item(), abs=1e-13)


@pytest.mark.parametrize("one_hot", [False, True])
def test_top_label_of_one_hot_labels_equals_torchmetrics(one_hot: bool) -> None:  # noqa: FBT001
    torch.manual_seed(0)
    p = (3 * torch.randn(4000, 4)).softmax(dim=1)
    y = torch.randint(4, (4000,))
    theirs = MulticlassCalibrationError(num_classes=4, n_bins=15, norm="l1")(p, y)
    labels = torch.nn.functional.one_hot(y, 4) if one_hot else y
    ours = TopLabelSoftCalibrationError(num_classes=4, bins=15)(p, labels)
    assert ours.item() == pytest.approx(theirs.item(), abs=1e-6)  # theirs is float32


# Many classes


def test_top_label_is_the_label_mass_on_the_predicted_class(batch: tuple[Tensor, Tensor]) -> None:
    p, y = batch
    top, k = p.numpy().max(axis=1), p.numpy().argmax(axis=1)
    metric = TopLabelSoftCalibrationError(num_classes=3)
    metric.update(p, y)
    assert_same_table(metric.reliability(), sc.reliability(y.numpy()[np.arange(500), k], top))


def test_first_of_tied_classes_is_predicted() -> None:
    p = torch.tensor([[0.4, 0.4, 0.2], [0.2, 0.4, 0.4]])
    y = torch.tensor([[0.3, 0.7, 0.0], [0.0, 0.2, 0.8]])
    metric = TopLabelSoftCalibrationError(num_classes=3, bins=1)
    metric.update(p, y)
    assert metric.reliability().mean_label[0] == pytest.approx((0.3 + 0.2) / 2)


def test_classwise_is_the_mean_over_classes(batch: tuple[Tensor, Tensor]) -> None:
    p, y = batch
    metric = ClasswiseSoftCalibrationError(num_classes=3)
    each = [sc.smece(y[:, k], p[:, k]) for k in range(3)]
    assert metric(p, y).item() == pytest.approx(np.mean(each), abs=1e-14)
    assert [rel.smece for rel in metric.reliabilities()] == pytest.approx(each, abs=1e-14)
    numbers = y.argmax(dim=1)
    one_hot = torch.nn.functional.one_hot(numbers, 3)
    other = ClasswiseSoftCalibrationError(num_classes=3)
    assert metric(p, numbers) == other(p, one_hot)


# Refusals


@pytest.mark.parametrize("add_up", [tensors.host_sums, tensors.device_sums])
@pytest.mark.parametrize(
    ("preds", "target", "weights", "message"),
    [
        ([0.5, 3.5], [0, 1], None, r"preds must be in \[0, 1\]: 1 of 2 values is not, the first is "
         r"preds\[1\] = 3.5. If these are percentages, use preds / 100; if logits, use "
         r"torch.sigmoid\(preds\)"),
        ([0.5, -3.5], [0, 1], None, r"If these are logits, use torch.sigmoid\(preds\)\.$"),
        ([0.5, float("nan")], [0, 1], None, "preds must have no missing values"),
        ([0.5, 0.5], [0, float("nan")], None, "target must have no missing values"),
        ([0.5, 0.5], [0, 2], None, r"target must be in \[0, 1\]"),
        ([0.5, 0.5], [0], None, "target has 1 rows, preds has 2"),
        (0.5, 1, None, r"target must be one column: it has shape \(\)"),
        ([[0.5, 0.5]], [[0, 1]], None, r"target must be one column: it has shape \(1, 2\)"),
        ([0.5, 0.5], [0, 1], [1, -1], r"weights must be 0 or more.*weights\[1\] = -1"),
        ([0.5, 0.5], [0, 1], [1, float("nan")], "weights must have no missing values"),
        ([0.5, 0.5], [0, 1], [1], "weights has 1"),
    ],
)  # fmt: skip
def test_invalid_batch_is_refused(
    add_up: Any, preds: Any, target: Any, weights: Any, message: str
) -> None:
    w = None if weights is None else torch.tensor(weights)
    with pytest.raises(sc.InputError, match=message):
        add_up(torch.tensor(preds), torch.tensor(target), w, sc.Bins.uniform(10))


@pytest.mark.parametrize("add_up", [tensors.host_sums, tensors.device_sums])
def test_complex_numbers_are_refused(add_up: Any) -> None:
    with pytest.raises(sc.InputTypeError, match="complex"):
        add_up(torch.ones(2, dtype=torch.complex64), torch.ones(2), None, sc.Bins.uniform(10))


@pytest.mark.parametrize("kind", [TopLabelSoftCalibrationError, ClasswiseSoftCalibrationError])
def test_classes_of_a_batch_are_validated(kind: Any) -> None:
    metric = kind(num_classes=3)
    good = torch.full((2, 3), 1 / 3)
    logits = torch.tensor([[0.5, 0.2, 0.3], [0.9, 0.1, -2.0]])
    for preds, target, message in (
        (logits, good, r"preds\[:, 2\]\[1\] = -2.0. If these are logits, use torch.softmax\(preds, dim=1\)"),
        (good, logits, r"target\[:, 2\] must be in"),
        (good[:, :2], good, r"preds must have shape \(n, 3\): it has \(2, 2\)"),
        (good[0], good, r"preds must have shape \(n, 3\): it has \(3,\)"),
        (good, good[0], r"target must have shape \(2, 3\), or \(2,\) with integer class numbers"),
        (good, torch.tensor([0.0, 1.0]), r"it has shape \(2,\) and dtype torch.float32"),
        (good, torch.tensor([True, False]), r"it has shape \(2,\) and dtype torch.bool"),
        (good, torch.tensor([1, 3]), r"from 0 to 2: 1 of 2 are not, the first is target\[1\] = 3"),
        (good, torch.tensor([-100, 0]), r"target\[0\] = -100. Omit rows without a class"),
    ):  # fmt: skip
        with pytest.raises(sc.InputError, match=message):
            metric.update(preds, target)
    with pytest.raises(sc.InputError, match=r"preds\[:, 2\]\[1\]"):
        tensors.device_sums(logits, good, None, metric.bins, by_class=True)
    assert not metric.sums.any()
    with pytest.raises(sc.InputError, match="num_classes must be 2 or more: got 1"):
        kind(num_classes=1)
    with pytest.raises(sc.InputTypeError, match="num_classes must be a whole number: got '3'"):
        kind(num_classes="3")


def test_refused_batch_does_not_change_the_state() -> None:
    metric = SoftCalibrationError()
    metric.update(torch.tensor([0.5]), torch.tensor([0.1]))
    before = metric.metric_state
    for call in (metric, metric.update):
        with pytest.raises(sc.InputError):
            call(torch.tensor([1.5]), torch.tensor([0.1]))
    with pytest.raises(sc.InputError, match="no rows"):
        metric(torch.tensor([0.5]), torch.tensor([0.5]), torch.tensor([0.0]))
    assert all(metric.metric_state[name] is before[name] for name in before)
    assert metric.compute().item() == pytest.approx(0.4)


@pytest.mark.parametrize("metric", ALL_KINDS)
def test_empty_batches_add_nothing_and_compute_needs_rows(metric: Any) -> None:
    shape = (0,) if isinstance(metric, SoftCalibrationError) else (0, 3)
    metric = metric.clone()
    metric.update(torch.zeros(shape), torch.zeros(shape))
    assert not metric.sums.any()
    with pytest.raises(sc.InputError, match="the metric has no rows"):
        metric.compute()


# What torchmetrics and Lightning do to a metric


@pytest.mark.parametrize("metric", ALL_KINDS)
def test_forward_returns_the_batch_and_compute_the_total(
    metric: Any, batch: tuple[Tensor, Tensor]
) -> None:
    p, y = (b[:, 0] if isinstance(metric, SoftCalibrationError) else b for b in batch)
    metric, alone, whole = metric.clone(), metric.clone(), metric.clone()
    for part in (slice(0, 100), slice(100, 500)):
        alone.reset()
        alone.update(p[part], y[part])
        assert metric(p[part], y[part]) == alone.compute()
    whole.update(p, y)
    assert metric.compute().item() == pytest.approx(whole.compute().item(), abs=1e-14)
    metric.reset()
    assert not metric.sums.any()
    assert torch.equal(metric.edges, whole.edges)


def test_state_keeps_its_size_and_float64_under_casts() -> None:
    metric = SoftCalibrationError()
    model: Any = torch.nn.ModuleDict({"metric": metric, "layer": torch.nn.Linear(1, 1)})
    p = torch.full((4097,), 0.3, dtype=torch.float16)  # 4097 is no float16, let alone bfloat16
    y = torch.zeros(4097, dtype=torch.float16)
    expected = float(p[0])
    for seen, cast in enumerate(
        (
            model.half,
            model.bfloat16,
            model.double,
            lambda: model.to(torch.bfloat16),
            lambda: model.to(torch.float16),
            lambda: metric.set_dtype(torch.float16),
        ),
        start=1,
    ):
        metric.update(p, y)
        metric.compute()  # which is cached, and must not be rounded either
        cast()
        assert (metric.sums.dtype, metric.edges.dtype) == (torch.float64, torch.float64)
        assert metric.sums.shape == (14, 1, 10)
        assert metric.reliability().n == 4097 * seen
        assert metric.compute().item() == pytest.approx(expected, rel=1e-13)
    metric.reset()
    assert metric.sums.dtype == torch.float64


def test_metric_moves_to_another_device() -> None:
    """Test machines have no GPU, so use the device `meta`, which holds no values."""
    metric = SoftCalibrationError().to("meta")
    assert (metric.device.type, metric.sums.device.type, metric.edges.device.type) == ("meta",) * 3
    metric.reset()
    assert (metric.sums.device.type, metric.sums.dtype) == ("meta", torch.float64)


def test_checkpoint_restores_the_rows() -> None:
    metric = SoftCalibrationError()
    metric.update(torch.tensor([0.5, 0.2]), torch.tensor([0.1, 0.1]))
    assert metric.state_dict() == {}  # as every torchmetric, unless asked
    metric.persistent(mode=True)
    saved = metric.state_dict()
    fresh = SoftCalibrationError()
    fresh.load_state_dict(dict(saved))
    assert fresh.reliability() == metric.reliability()
    assert fresh.compute() == metric.compute()
    fresh.update(torch.tensor([0.5]), torch.tensor([0.1]))
    assert saved["sums"][0].sum() == 2  # the saved tensor is not ours to change
    fresh.load_state_dict({}, strict=False)
    assert fresh.reliability().n == 3
    rounded = {name: saved[name].half() for name in ("edges", "sums")}
    for other, state in (
        (SoftCalibrationError(bins=15), saved),
        (SoftCalibrationError([0, 0.15, *np.arange(2, 11) / 10]), saved),
        (SoftCalibrationError(), rounded),
        (SoftCalibrationError(), {"sums": saved["sums"]}),
    ):
        with pytest.raises(RuntimeError, match="load it into a metric with the same arg"):
            other.load_state_dict(dict(state))
        assert not other.sums.any()
        assert torch.equal(other.edges, torch.tensor(other.bins.edges))


def test_merging_metrics_adds_their_rows_and_refuses_other_bins() -> None:
    a, b, both = SoftCalibrationError(), SoftCalibrationError(), SoftCalibrationError()
    for metric in (a, both):
        metric.update(torch.tensor([0.5]), torch.tensor([0.1]))
    for metric in (b, both):
        metric.update(torch.tensor([0.9]), torch.tensor([0.3]))
    a.compute()  # cached, and stale after the merge
    a.merge_state(b)
    assert a.compute() == both.compute()
    fresh = SoftCalibrationError()
    fresh.merge_state(both.metric_state)
    assert fresh.compute() == both.compute()
    for other in (
        SoftCalibrationError(bins=1),
        SoftCalibrationError([0, 0.15, *np.arange(2, 11) / 10]),
        ClasswiseSoftCalibrationError(num_classes=2),
        {"sums": both.sums},
    ):
        with pytest.raises(sc.BinMismatchError, match="same arguments"):
            both.merge_state(other)
    with pytest.raises(ValueError, match="instance of SoftCalibrationError"):
        both.merge_state(TopLabelSoftCalibrationError(num_classes=2))
    with pytest.raises(ValueError, match="dict or an instance"):
        both.merge_state([1])  # type: ignore[arg-type]
    assert both.reliability().n == 2


def test_collection_keeps_metrics_with_different_bins_separate() -> None:
    """Collections share the state of metrics that have equal states after the first batch."""
    first = torch.tensor([0.1, 0.9]), torch.tensor([0, 1])
    second = torch.tensor([0.55]), torch.tensor([0])
    collection = MetricCollection(
        {
            "halves": SoftCalibrationError([0, 0.5, 1]),
            "again": SoftCalibrationError([0, 0.5, 1]),
            "others": SoftCalibrationError([0, 0.6, 1]),
            "theirs": BinaryCalibrationError(n_bins=2),
        },
        prefix="val_",
    )
    for preds, target in (first, second):
        collection.update(preds, target)
    found = {name: value.item() for name, value in collection.compute().items()}
    p, y = (torch.cat(parts) for parts in zip(first, second, strict=True))
    assert found["val_halves"] == found["val_again"] == sc.smece(y, p, bins=[0, 0.5, 1])
    assert found["val_others"] == sc.smece(y, p, bins=[0, 0.6, 1])
    assert found["val_halves"] != found["val_others"]
    assert found["val_theirs"] == pytest.approx(found["val_halves"], abs=1e-6)


PROCESS = """
import json, pickle, sys
import torch, torch.distributed as dist
from softcal import BinMismatchError, InputError
from softcal.torchmetric import ClasswiseSoftCalibrationError, SoftCalibrationError

torch.set_num_threads(1)
rank, meeting_point = int(sys.argv[1]), sys.argv[2]
dist.init_process_group("gloo", init_method=f"file://{meeting_point}", rank=rank, world_size=2)
torch.manual_seed(0)
p, y = torch.rand(1000, 3), torch.rand(1000, 3)
mine = slice(0, 300) if rank == 0 else slice(300, 1000)
binary, classwise = SoftCalibrationError(), ClasswiseSoftCalibrationError(num_classes=3)
batch_value = None
for rows in torch.arange(1000)[mine].split(128):
    batch_value = binary(p[rows, 0], y[rows, 0])
    classwise.update(p[rows], y[rows])
found = {
    "binary": binary.compute().item(),
    "classwise": classwise.compute().item(),
    "own": int(binary.sums[0].sum()),
    "batch": batch_value.item(),
}
empty = SoftCalibrationError()
if rank == 0:
    empty.update(p[:, 0], y[:, 0])
else:
    empty.update(p[:0, 0], y[:0, 0])
found["one idle"] = empty.compute().item()
patients = torch.arange(1000) % 37  # most of them in both processes
grouped, idle = SoftCalibrationError(), ClasswiseSoftCalibrationError(num_classes=3)
for rows in torch.arange(1000)[mine].split(128):
    grouped.update(p[rows, 0], y[rows, 0], groups=patients[rows])
if rank == 1:
    idle.update(p, y, groups=patients)
tables = binary.reliability(), grouped.reliability(), idle.reliabilities()[2]
with open(f"{meeting_point}.{rank}", "wb") as file:
    pickle.dump(tables, file)
found["own groups"] = float(grouped.clone()._groups()[0].clusters(10).weight.sum())
mixed = SoftCalibrationError()
mixed.update(p[mine, 0], y[mine, 0], groups=patients[mine] if rank else None)
try:
    mixed.reliability()
except InputError as error:
    found["mixed"] = str(error)
different = SoftCalibrationError([0, 0.5 + rank / 10, 1])
different.update(p[:, 0], y[:, 0])
try:
    different.compute()
except BinMismatchError as error:
    found["different"] = str(error)
print(json.dumps(found))
dist.destroy_process_group()
"""


def test_two_processes_equal_one(tmp_path: Path) -> None:
    script = tmp_path / "process.py"
    script.write_text(PROCESS, encoding="utf-8")
    processes = [
        subprocess.Popen(  # noqa: S603
            [sys.executable, str(script), str(rank), str(tmp_path / "meeting")],
            stdout=subprocess.PIPE,
            text=True,
        )
        for rank in (0, 1)
    ]
    try:
        found = [json.loads(process.communicate(timeout=300)[0]) for process in processes]
    finally:
        for process in processes:
            process.kill()
    torch.manual_seed(0)
    p, y = torch.rand(1000, 3), torch.rand(1000, 3)
    whole = sc.reliability(y[:, 0], p[:, 0])
    classwise = np.mean([sc.smece(y[:, k], p[:, k]) for k in range(3)])
    last = (slice(256, 300), slice(940, 1000))
    for rank, ours in enumerate(found):
        assert ours["binary"] == pytest.approx(whole.smece, abs=1e-13)
        assert ours["classwise"] == pytest.approx(classwise, abs=1e-13)
        tables = pickle.loads((tmp_path / f"meeting.{rank}").read_bytes())  # noqa: S301
        assert_same_table(tables[0], whole)
        assert ours["own"] == (300, 700)[rank]  # its own rows again, after the sum
        assert ours["batch"] == pytest.approx(sc.smece(y[last[rank], 0], p[last[rank], 0]))
        assert ours["one idle"] == pytest.approx(whole.smece, abs=1e-13)
        assert "different bins" in ours["different"]
        grouped = sc.reliability(y[:, 0], p[:, 0], groups=torch.arange(1000) % 37)
        assert_same_table(tables[1], grouped)
        by_class = sc.reliability(y[:, 2], p[:, 2], groups=torch.arange(1000) % 37)
        assert_same_table(tables[2], by_class)
        sizes = np.bincount(np.arange(1000)[(slice(300), slice(300, 1000))[rank]] % 37)
        assert ours["own groups"] == (sizes**2).sum()  # its own again
        assert "700 of 1000 have" in ours["mixed"]


def test_torch_classes_that_do_not_sum_to_1_are_refused() -> None:
    metric = TopLabelSoftCalibrationError(3)
    with pytest.raises(sc.InputError, match="must sum to 1: 1 of 2 do not"):
        metric.update(torch.tensor([[0.2, 0.7, 0.1], [0.9, 0.8, 0.7]]), torch.tensor([0, 1]))
    for kind in (torch.float16, torch.bfloat16, torch.float32):
        metric.update(
            torch.softmax(torch.randn(500, 3), dim=1).to(kind), torch.zeros(500, dtype=torch.int64)
        )


def test_lists_instead_of_tensors_are_refused_with_the_remedy() -> None:
    column: Any = SoftCalibrationError()
    top: Any = TopLabelSoftCalibrationError(2)
    classwise: Any = ClasswiseSoftCalibrationError(2)
    with pytest.raises(sc.InputTypeError, match="preds must be a tensor: got list"):
        column.update([0.5], [0.5])
    with pytest.raises(sc.InputTypeError, match=r"target must be a tensor.*torch\.as_tensor"):
        top.update(torch.tensor([[0.5, 0.5]]), [0])
    with pytest.raises(sc.InputTypeError, match="must be a tensor"):
        classwise.update([[0.5, 0.5]], [0])


@pytest.mark.parametrize("kind", [torch.int64, torch.bool, torch.uint64])
def test_whole_numbers_are_probabilities_of_classes_too(kind: torch.dtype) -> None:
    metric = TopLabelSoftCalibrationError(3)
    preds = torch.tensor([[0, 0, 1], [1, 0, 0]]).to(kind)
    metric.update(preds, torch.tensor([2, 1]))
    metric.update(preds, preds)
    assert metric.compute() == 0.25


@pytest.mark.parametrize("metric", [SoftCalibrationError(), TopLabelSoftCalibrationError(2)])
def test_complex_tensors_are_refused(metric: Any) -> None:
    rows = torch.tensor([[0.5, 0.5]], dtype=torch.complex128)
    with pytest.raises(sc.InputTypeError, match="preds must hold real numbers"):
        metric.update(rows, rows)
