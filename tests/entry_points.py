"""Call each entry point with any input: it must return a correct result or raise `SoftcalError`.

Each function here calls one entry point with what it is given, and fails if anything else happens.
Hypothesis (`test_fuzz.py`) and Atheris (`tools/fuzz.py`) both use it.
"""

from __future__ import annotations

import dataclasses
import inspect
import io
import json
import math
import re
import warnings
from contextlib import redirect_stderr, redirect_stdout
from random import Random
from typing import TYPE_CHECKING, Any, TypeVar, get_args

import numpy as np
from random_arguments import arguments

import softcal as sc
from softcal import cli
from softcal.inference.ordinal import ItemMetric

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable
    from pathlib import Path

    Answer = TypeVar("Answer")

ROUNDING = 1e-9
_PLAIN_ROW = re.compile(rb"(0|1|0\.[0-9]{1,17}),(0|1|0\.[0-9]{1,17})")

OF_A_TABLE: tuple[Callable[[sc.Reliability], Any], ...] = (
    sc.smece_interval,
    sc.gap_intervals,
    sc.calibration_test,
    sc.consistency_band,
    sc.smooth_ece,
    sc.kde_ece,
    sc.calibration_error_bound,
    sc.corp,
    sc.ecce_mad,
    sc.ecce_range,
    sc.squared_gap_debiased,
    sc.planning.Assumptions.from_pilot,
)
"""The functions that are called on every table."""


def answer(call: Callable[[], Answer]) -> Answer | None:
    """Return the result of a call; None if it raises a `SoftcalError` with a message."""
    try:
        return call()
    except sc.SoftcalError as error:
        assert str(error).strip()  # noqa: PT017 - an error must have a message
        return None


def numbers_in(found: Any) -> Iterable[float]:
    """Yield all numbers of a result: of a tuple, a dict, an array, or our own classes."""
    if isinstance(found, dict):
        found = list(found.values())
    if isinstance(found, np.ndarray):
        yield from found.ravel().tolist()
    elif isinstance(found, list | tuple):
        for one in found:
            yield from numbers_in(one)
    elif isinstance(found, float | np.floating):
        yield float(found)
    elif hasattr(found, "__dataclass_fields__"):
        yield from numbers_in([getattr(found, name) for name in found.__dataclass_fields__])


def refuse_nonsense(found: Any, name: str) -> None:
    """Assert that a result has no NaN and no infinite number."""
    bad = [number for number in numbers_in(found) if not math.isfinite(number)]
    assert not bad, f"{name} gave {bad[0]}"


def table(rel: sc.Reliability) -> None:
    """Call every function of a table."""
    str(rel)
    if not rel.n:
        assert answer(lambda: rel.smece) is None
        return
    within = 1 + ROUNDING
    assert 0 <= rel.smece <= within
    assert abs(rel.bias) <= rel.smece + ROUNDING
    assert rel.smece <= rel.rms_gap * within + ROUNDING
    assert rel.rms_gap <= rel.max_gap * within + ROUNDING
    assert rel.max_gap <= within
    assert rel.smece**2 <= rel.brier * within + ROUNDING
    assert rel.brier <= within
    filled = rel.count > 0
    for values in (rel.mean_prob, rel.mean_label, rel.gap):
        refuse_nonsense(values[filled], "a bin")
    assert math.isclose((rel + rel).smece, rel.smece, rel_tol=1e-9, abs_tol=1e-12)
    for ask in OF_A_TABLE:
        found = answer(lambda ask=ask: ask(rel))  # type: ignore[misc]
        if isinstance(found, sc.inference.GapIntervals):  # of an empty bin they are NaN
            found = [limits[filled] for limits in found]
        if isinstance(found, sc.inference.TestResult) and math.isinf(found.statistic):
            assert found.pvalue == 0  # certain and wrong: an infinite chi-square is the right one
            found = dataclasses.replace(found, statistic=0.0)
        refuse_nonsense(found, ask.__name__)


# Files of rows


def rows_file(data: bytes, suffix: str, folder: Path) -> None:
    """Scan a file with this content, with and without segments."""
    path = folder / f"rows{suffix}"
    path.write_bytes(data)
    tables = answer(lambda: sc.scan(path, y_true="y", y_prob="p"))
    expected = plain_rows(data) if suffix == ".csv" else None
    if expected is not None:
        assert tables is not None, "plain rows were refused"
        right = sc.reliability(*expected)
        assert tables.n == right.n
        assert math.isclose(tables["p"].smece, right.smece, abs_tol=1e-12)
    if tables is not None:
        table(tables["p"])
        segments = answer(lambda: sc.scan(path, y_true="y", y_prob="p", by="s"))
        assert segments is None or sum(one.n for one in segments.by("s").values()) == tables.n
    answer(lambda: sc.scan(path, y_true=sc.Shares("y", votes="m"), y_prob="p", sample_weight="w"))


def plain_rows(data: bytes) -> tuple[list[float], list[float]] | None:
    """Parse unambiguous rows independently of softcal; return None for ambiguous ones."""
    head, *lines = data.replace(b"\r\n", b"\n").split(b"\n")
    lines = [line for line in lines if line]
    cells = [_PLAIN_ROW.fullmatch(line) for line in lines]
    if head != b"y,p" or not cells or not all(cells):
        return None
    return [float(cell[1]) for cell in cells if cell], [float(cell[2]) for cell in cells if cell]


def command(arguments: list[str]) -> str | None:
    """Run the command line; return its output, or None if it printed a one-line error."""
    out, err = io.StringIO(), io.StringIO()
    with redirect_stdout(out), redirect_stderr(err):
        code = cli.run(arguments)
    if code == 0:
        assert not err.getvalue()
        return out.getvalue()
    assert code == 2
    assert err.getvalue().startswith("softcal: error: ")
    # A missing option is followed by the commands that could be meant.
    assert err.getvalue().count("\n") == 1 or "Missing option" in err.getvalue()
    return None


def scored_file(data: bytes, suffix: str, folder: Path) -> None:
    """Run `softcal score` on a file with this content."""
    path = folder / f"scored{suffix}"
    path.write_bytes(data)
    json_answer(["score", str(path), "--label", "y", "--pred", "p", "--format", "json"])
    json_answer(
        ["score", str(path), "--label", "y", "--pred", "p", "--by", "s", "--format", "json"]
    )


def json_answer(arguments: list[str]) -> Any:
    """Run a command that prints JSON; assert that it has no NaN and no infinity."""
    printed = command(arguments)
    return None if printed is None else json.loads(printed, parse_constant=_refuse_constant)


def _refuse_constant(name: str) -> None:
    message = f"JSON has no {name}"
    raise AssertionError(message)


# Saved files


def of_a_set(tables: sc.TableSet) -> None:
    """Call every function of a set."""
    answer(lambda: sc.compare_many(tables))
    answer(lambda: sc.smece_bounds(tables))
    answer(lambda: tables + tables)
    for model in tables.models:
        answer(lambda model=model: tables.item_scores(model))  # type: ignore[misc]
        answer(lambda model=model: sc.cumulative_smece_interval(tables.cumulative(model)))  # type: ignore[misc]
        for metric in get_args(ItemMetric):
            answer(lambda m=model, s=metric: sc.score_interval(tables, m, metric=s))  # type: ignore[misc]


def saved_set(data: bytes, folder: Path) -> None:
    """Load a set from a file with this content, and save it again."""
    path = folder / "set.softcal"
    path.write_bytes(data)
    tables = answer(lambda: sc.load(path))
    if tables is None:
        return
    str(tables)
    for rel in tables.values():
        table(rel)
    of_a_set(tables)
    for column in tables.by_names:
        assert sum(one.n for one in tables.by(column).values()) == tables.n
    tables.save(path)
    assert sc.load(path) == tables


def merged_file(data: bytes, folder: Path) -> None:
    """Merge a file with this content with a copy of itself."""
    paths = [folder / "left.json", folder / "right.json"]
    for path in paths:
        path.write_bytes(data)
    one = json_answer(["merge", str(paths[0]), "--format", "json"])
    two = json_answer(["merge", *map(str, paths), "--format", "json"])
    if one is not None and two is not None:
        assert two["n"] == 2 * one["n"]


def saved_calibrator(saved: Any) -> None:
    """Load a saved calibrator, and map predictions with it."""
    found = answer(lambda: sc.calibrators.load_calibrator(saved))
    if found is None:
        return
    again = sc.calibrators.load_calibrator(json.loads(json.dumps(found.to_dict(), allow_nan=False)))
    column = [0.0, 5e-324, 1e-9, 0.3, 0.5, 1 - 2**-53, 1.0]
    for given in (column, [[1.0, 0.0], [0.3, 0.7]], [[0.2, 0.3, 0.5], [0.0, 0.0, 1.0]]):
        mapped = answer(lambda given=given: found.predict(given))  # type: ignore[misc]
        if mapped is None:
            continue
        assert mapped.shape == np.shape(given)
        assert ((mapped >= 0) & (mapped <= 1)).all(), f"mapped to {mapped}"
        assert np.array_equal(mapped, again.predict(given))
        if mapped.ndim == 2:
            assert np.allclose(mapped.sum(axis=1), 1)
        else:
            assert (np.diff(mapped) >= 0).all() or found.method == "histogram"


def applied_file(data: bytes, calibrator: dict[str, Any], suffix: str, folder: Path) -> None:
    """Run `softcal apply` on a file with this content."""
    source, target, saved = folder / f"in{suffix}", folder / f"out{suffix}", folder / "map.json"
    source.write_bytes(data)
    saved.write_text(json.dumps(calibrator))
    done = command(["apply", str(saved), str(source), "--pred", "p", "-o", str(target)])
    if done is not None:
        mapped = answer(lambda: sc.scan(target, y_true="y", y_prob="p_calibrated"))
        if mapped is not None:
            table(mapped["p_calibrated"])


def applied_calibrator(data: bytes, folder: Path) -> None:
    """Run `softcal apply` with a calibrator of this content on three valid rows."""
    source, target, saved = folder / "good.csv", folder / "good_out.csv", folder / "map.json"
    source.write_text("y,p\n0,0\n0.5,0.25\n1,1\n")
    saved.write_bytes(data)
    command(["apply", str(saved), str(source), "--pred", "p", "-o", str(target)])


# Arrays


def _fitted_by(method: Any) -> Callable[..., Any]:
    def fit_and_predict(y_prob: Any, y_true: Any, sample_weight: Any) -> Any:
        return method().fit(y_prob, y_true, sample_weight).predict(y_prob)

    fit_and_predict.__name__ = method.__name__
    return fit_and_predict


def _votes(counts: Any, pseudo_votes: Any) -> Any:
    votes = sc.Votes(counts)
    return [votes.shares, votes.smoothed(pseudo_votes), votes.majority(), votes.tied]


def _long_votes(item: Any, worker: Any, answer: Any) -> sc.Votes:
    frame = {"item": item, "worker": worker, "answer": answer}
    return sc.Votes.from_long(frame, item="item", label="answer", worker="worker")


def _counted_ballots(item: Any, worker: Any, answer: Any) -> Any:
    return _long_votes(item, worker, answer).shares


def _crowd(item: Any, worker: Any, answer: Any, tolerance: Any, max_iterations: Any) -> Any:
    votes = _long_votes(item, worker, answer)
    with warnings.catch_warnings(action="ignore", category=RuntimeWarning):  # not converged
        return sc.dawid_skene(votes, tolerance=tolerance, max_iterations=max_iterations).posterior


def _noise_floor(counts: Any, y_prob: Any, draws: Any, rng: Any) -> Any:
    return sc.vote_noise_floor(sc.Votes(counts), y_prob, metric="dist_ce", draws=draws, rng=rng)


def _added(
    y_true: Any, y_prob: Any, sample_weight: Any, n_votes: Any, groups: Any, bins: Any
) -> sc.Reliability:
    given = {"sample_weight": sample_weight, "n_votes": n_votes, "groups": groups}
    part = sc.reliability(y_true, y_prob, bins=bins, **given)
    return sc.Reliability.empty(bins) + part + part


def _quantile(y_prob: Any, n: Any) -> sc.Reliability:
    return sc.reliability(y_prob, y_prob, bins=sc.Bins.quantile(y_prob, n))


def _edged(y_true: Any, y_prob: Any, edges: Any) -> sc.Reliability:
    return sc.reliability(y_true, y_prob, bins=sc.Bins(edges))


def _located(y_prob: Any, bins: Any) -> Any:
    return sc.Bins.of(bins).locate(y_prob)


def _swept(y_true: Any, y_prob: Any, most: Any) -> sc.Reliability:
    return sc.reliability(y_true, y_prob, bins=sc.sweep_bins(y_true, y_prob, most=most))


def _filled(function: Callable[..., sc.inference.GapIntervals]) -> Callable[..., Any]:
    """Keep the limits of bins with rows: those of an empty bin are NaN."""

    def limits_of_filled_bins(
        y_true: Any, y_prob: Any, bins: Any, sample_weight: Any, n_votes: Any, groups: Any,
        level: Any, simultaneous: Any,
    ) -> Any:  # fmt: skip
        rel = sc.reliability(
            y_true, y_prob, bins=bins, sample_weight=sample_weight, n_votes=n_votes, groups=groups
        )
        limits = function(rel, level=level, simultaneous=simultaneous)
        return [values[rel.count > 0] for values in limits]

    limits_of_filled_bins.__name__ = function.__name__
    return limits_of_filled_bins


def _forecast(smece: Any, label_spread: Any, bins: Any, items: Any, votes: Any, level: Any) -> Any:
    stated = sc.planning.Assumptions.stated(smece=smece, label_spread=label_spread, bins=bins)
    return stated.half_width(items, votes=votes, level=level)


def _torch_metric(name: str) -> Callable[..., Any]:
    """Call a metric of torch with tensors, twice."""

    def computed(y_true: Any, y_prob: Any, sample_weight: Any, bins: Any) -> Any:
        import torch

        from softcal import torchmetric

        columns = (y_prob, y_true, sample_weight)
        try:
            tensors = [None if each is None else torch.as_tensor(each) for each in columns]
        except Exception:  # torch's own refusal, before ours is asked
            return None
        extra = {} if name == "SoftCalibrationError" else {"num_classes": 3}
        metric = getattr(torchmetric, name)(bins=bins, **extra)
        for _ in range(2):
            metric.update(*tensors)
        return metric.compute().numpy()

    computed.__name__ = name
    return computed


def _of_models(function: Callable[..., Any]) -> Callable[..., Any]:
    """Rename the predictions of several models, so that strategies can tell them from one."""

    def call_with_models(**arguments: Any) -> Any:
        return function(y_prob=arguments.pop("models"), **arguments)

    parameters = list(inspect.signature(function).parameters.values())
    call_with_models.__signature__ = inspect.Signature(  # type: ignore[attr-defined]
        [
            each.replace(name="models" if each.name == "y_prob" else each.name)
            for each in parameters
            if each.name != "other"
        ]
    )
    call_with_models.__name__ = function.__name__
    return call_with_models


_compare, _compare_many = _of_models(sc.compare), _of_models(sc.compare_many)
_correlated = _of_models(sc.planning.pilot_correlation)


MAY_BE_INFINITE = (
    sc.log_loss, sc.kl_divergence, sc.log_loss_decomposition, _compare, _compare_many,
    sc.calibrators.repair_preview,
)  # fmt: skip
"""A log loss is infinite if a model predicts exactly 0 or 1 and the label differs."""

# Functions with one value per bin, NaN for an empty bin, are called with tables instead.
OF_COLUMNS: tuple[Callable[..., Any], ...] = (
    sc.smece, sc.ece, sc.max_gap, sc.rms_gap, sc.bias, sc.brier, sc.log_loss, sc.kl_divergence,
    sc.label_entropy, sc.harden, sc.reliability, sc.smooth_ece, sc.kde_ece, sc.calibration_error_bound, sc.corp, sc.log_loss_decomposition,
    sc.ecce_mad, sc.ecce_range, sc.squared_gap_debiased, sc.smece_bounds, sc.reliability_bounds, sc.brier_without_vote_noise,
    sc.calibrators.repair_preview, _added, _quantile, _swept, _fitted_by(sc.calibrators.TemperatureCalibrator), _fitted_by(sc.calibrators.PlattCalibrator),
    _fitted_by(sc.calibrators.BetaCalibrator), _fitted_by(sc.calibrators.IsotonicCalibrator), _fitted_by(sc.calibrators.HistogramCalibrator),
    _edged, _located, _counted_ballots, _crowd,
)  # fmt: skip

OF_INFERENCE: tuple[Callable[..., Any], ...] = (
    sc.smece_interval, sc.calibration_test, _filled(sc.gap_intervals), _filled(sc.consistency_band),
    _compare, _compare_many, _correlated,
)  # fmt: skip

OF_PLANS: tuple[Callable[..., Any], ...] = (
    _forecast, sc.planning.plan, sc.planning.plan_budget, sc.planning.plan_difference,
)  # fmt: skip

OF_TENSORS = (_torch_metric("SoftCalibrationError"),)
OF_CLASS_TENSORS = tuple(
    map(_torch_metric, ("TopLabelSoftCalibrationError", "ClasswiseSoftCalibrationError"))
)

OF_CLASSES: tuple[Callable[..., Any], ...] = (
    sc.classwise_reliability, sc.classwise_smece, sc.top_label_reliability, sc.top_label_smece,
    sc.dist_ce, sc.ent_ce, sc.ent_ce_signed, sc.rank_cs, sc.brier, sc.log_loss,
    sc.kl_divergence, sc.brier_without_vote_noise, _compare, _compare_many,
    _votes, _noise_floor, _fitted_by(sc.calibrators.TemperatureCalibrator), _fitted_by(sc.calibrators.VectorScalingCalibrator), _fitted_by(sc.calibrators.DirichletCalibrator),
)  # fmt: skip


def _net_benefit(
    y_true: Any, y_prob: Any, thresholds: Any, sample_weight: Any, groups: Any, level: Any
) -> Any:
    found = sc.net_benefit(
        y_true, y_prob, thresholds, sample_weight=sample_weight, groups=groups, level=level
    )
    str(found)
    assert len(found.sentences) == found.threshold.size
    assert (found.cost >= 0).all()
    assert (found.low <= found.value).all()
    assert (found.value <= found.high).all()
    some = found.rows_below > 0  # the means of no rows are NaN
    return [
        found.value,
        found.treat_all,
        found.cost,
        found.prob_below[some],
        found.label_below[some],
    ]


def _net_benefit_of_table(y_true: Any, y_prob: Any, sample_weight: Any, level: Any) -> Any:
    rel = sc.reliability(y_true, y_prob, bins=20, sample_weight=sample_weight)
    found = sc.net_benefit(rel, [0.0, 0.05, 0.5, 0.95], level=level)
    return [found.value, found.cost]


def _net_benefit_difference(
    y_true: Any, models: Any, thresholds: Any, sample_weight: Any, groups: Any, level: Any
) -> Any:
    found = sc.net_benefit_difference(
        y_true, models, thresholds, sample_weight=sample_weight, groups=groups, level=level
    )
    str(found)
    assert not any(map(math.isnan, numbers_in([found.low, found.high])))
    return found.value


def _calibration_summary(
    y_true: Any, y_prob: Any, sample_weight: Any, groups: Any, level: Any
) -> Any:
    found = sc.calibration_summary(
        y_true, y_prob, sample_weight=sample_weight, groups=groups, level=level
    )
    str(found)
    assert not any(map(math.isnan, numbers_in(found)))
    return [found.ici, found.e50, found.e90, found.emax, found.brier, found.uncertainty]


def _assert_calibrated(
    y_true: Any, y_prob: Any, max_smece: Any, undecided: Any, n_votes: Any, level: Any
) -> None:
    try:
        sc.assert_calibrated(
            y_true, y_prob, max_smece=max_smece, undecided=undecided, n_votes=n_votes, level=level
        )
    except AssertionError as error:
        assert str(error).strip()  # noqa: PT017 - an error must have a message


OF_DECISIONS: tuple[Callable[..., Any], ...] = (
    _net_benefit, _net_benefit_of_table, _net_benefit_difference, _calibration_summary,
)  # fmt: skip
OF_CHECKS: tuple[Callable[..., Any], ...] = (sc.check, _assert_calibrated)


def _summed(y_true: Any, y_prob: Any, sample_weight: Any, n_votes: Any, groups: Any) -> Any:
    rows = {"sample_weight": sample_weight, "n_votes": n_votes, "groups": groups}
    tables = sc.cumulative_reliability(y_true, y_prob, **rows)
    for rel in tables.values():
        table(rel)
    found = sc.cumulative_smece_interval(tables)
    assert math.isclose(found.value, sc.cumulative_smece(tables))
    return found


OF_ORDINAL: tuple[Callable[..., Any], ...] = (
    sc.cumulative_reliability, sc.cumulative_smece, sc.manhattan, sc.ranked_probability_score,
    sc.wasserstein, sc.cumulative_smece_interval, sc.score_interval, _summed,
)  # fmt: skip


def call_any(
    functions: tuple[Callable[..., Any], ...], seed: int, *, of_classes: bool = False
) -> None:
    """Call one of the functions with random arguments."""
    rng = Random(seed)  # noqa: S311 - nobody's secret
    function = rng.choice(functions)
    call(function, arguments(function, rng, of_classes=of_classes))


def call(function: Callable[..., Any], arguments: dict[str, Any]) -> None:
    """Call a function of arrays, and check all numbers of its result."""
    found = answer(lambda: function(**arguments))
    if isinstance(found, sc.inference.TestResult) and found.pvalue == 0:
        found = found.pvalue  # the statistic may be infinite
    for rel in found.values() if isinstance(found, dict) else [found]:
        if isinstance(rel, sc.Reliability):
            table(rel)
            return
    if function in MAY_BE_INFINITE:
        assert not any(map(math.isnan, numbers_in(found))), f"{function.__name__} gave NaN"
    else:
        refuse_nonsense(found, function.__name__)


# Options


_OPTIONS: dict[str, tuple[str, ...]] = {
    "--label": ("y", "p", "s", "w", "nothing", ""),
    "--pred": ("p", "q", "y", "s", "nothing"),
    "--label-low": ("y", "low"),
    "--label-high": ("p", "high"),
    "--pred-columns": ("p,q", "prob_*", ""),
    "--label-columns": ("y,p", "*"),
    "--vote-columns": ("m,w", "m"),
    "--classes": ("a,b", "a,a", ""),
    "--bins": ("1", "10", "7", "0", "-3", "1e9", "x", "100000"),
    "--weight": ("w", "s", "nothing"),
    "--votes": ("m", "w", "s", "7"),
    "--group": ("s", "m", "nothing"),
    "--by": ("s", "m", "y", "nothing"),
    "--level": ("0.9", "0", "1", "nan", "-1", "x", "0.999999999999"),
    "--format": ("json", "table", "xml"),
    "--nothing": ("1",),
}


def options(seed: int, folder: Path) -> None:
    """Run a command with random options over good rows."""
    rng = Random(seed)  # noqa: S311 - nobody's secret
    path = folder / "options.csv"
    if not path.exists():
        path.write_text("y,p,q,w,m,s\n0.5,0.25,0.5,1,3,a\n1,0.75,1,2,1,b\n0,0.1,0,0.5,2,a\n")
    chosen = ["--label", "y", "--pred", "p"] if rng.random() < 0.7 else []
    for name in rng.sample(list(_OPTIONS), rng.randrange(4)):
        chosen += [name, rng.choice(_OPTIONS[name])]
    command([rng.choice(("score", "score", "compare")), str(path), *chosen])
