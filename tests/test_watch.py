"""Watching calibration over time: validity by exact enumeration, bands, dates, and segments."""

from __future__ import annotations

import datetime as dt
from itertools import product
from math import inf, log
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.polynomial.legendre import leggauss
from scipy.special import gammainc, gammaln, logsumexp

import softcal as sc

if TYPE_CHECKING:
    from pathlib import Path
from softcal.inference import sequential
from softcal.inference.sequential import Watch, largest_sum
from softcal.inference.weeks import weeks_of
from softcal.plot import draw_watch


def log_mixture(total: float, variance: float, rates: Any, weights: Any) -> Any:
    """Return log sum_k w_k exp(l_k s - psi(l_k) v), straight from its definition."""
    costs = -np.log1p(-rates) - rates
    return float(logsumexp(total * rates - variance * costs, b=weights))


# log_mixture(s, v) of confseq 0.0.11's gamma_exponential_log_mixture, with c = 1, alpha_opt = 0.05.
CONFSEQ = [
    (10.0, 3.0, 10.0, -0.4067428701911524),
    (10.0, 20.0, 50.0, 1.800691381657714),
    (10.0, 0.0, 5.0, -0.8456929661937416),
    (10.0, -4.0, 30.0, -2.167293152414132),
    (10.0, 150.0, 900.0, 8.522706647852829),
    (100.0, 3.0, 10.0, 0.2380002222331541),
    (100.0, 20.0, 50.0, 2.43678439049944),
    (100.0, -4.0, 30.0, -0.9668154414023888),
    (100.0, 60.0, 400.0, 2.9388394049938142),
    (100.0, 150.0, 900.0, 9.68203466581781),
]


@pytest.mark.parametrize(("v_opt", "total", "variance", "expected"), CONFSEQ)
def test_mixture_over_rates_equals_confseq(
    v_opt: float, total: float, variance: float, expected: float
) -> None:
    nodes, weights = leggauss(400)
    rates, weights = (nodes + 1) / 2, weights / 2
    rho = v_opt / (2 * log(10) + log(1 + 2 * log(10)))
    density = (
        rho * log(rho) - gammaln(rho) - np.log(gammainc(rho, rho))
        + (rho - 1) * np.log1p(-rates) - rho * (1 - rates)
    )  # fmt: skip
    assert log_mixture(total, variance, rates, weights * np.exp(density)) == pytest.approx(
        expected, abs=1e-9
    )


@given(
    st.lists(
        st.tuples(st.floats(-1, 1), st.integers(1, 5000), st.floats(0, 1)), min_size=1, max_size=6
    ),
    st.sampled_from([0.0, 0.02, 0.3]),
)
def test_evidence_of_each_bin_is_the_mean_over_rates_and_signs(bins: Any, tolerance: float) -> None:
    mean, n, share = map(np.array, zip(*bins, strict=True))
    total, variance = mean * n, (mean**2 + share * (1 - mean**2)) * n
    each, together = sequential._evidence_of_bins(np.array([total, n, variance]), tolerance)
    rates = sequential._BIN_RATES
    equal = np.full(rates.size, 1 / rates.size)
    expected = [
        np.logaddexp(
            log_mixture(s - tolerance * w, v, rates, equal),
            log_mixture(-s - tolerance * w, v, rates, equal),
        )
        - log(2)
        for s, w, v in zip(total, n, variance, strict=True)
    ]
    assert each == pytest.approx(np.array(expected), abs=1e-9)
    # Together: the mean over all sign patterns of the evidence of the pattern.
    patterns = [
        log_mixture(
            np.dot(sign, total) - tolerance * n.sum(), variance.sum(), rates, equal
        )
        for sign in product((-1, 1), repeat=n.size)
    ]  # fmt: skip
    assert together == pytest.approx(logsumexp(patterns) - n.size * log(2), abs=1e-9)


PREDICTIONS = [0.1, 0.9, 0.5, 0.1, 0.97, 0.5]


@pytest.mark.parametrize("shift", [0.0, 0.05, -0.05])
@pytest.mark.parametrize("values", [(0.0, 1.0), (0.0, 0.5, 1.0)])
@pytest.mark.parametrize(("rows", "bins"), [(1, 4), (2, 2), (2, 4)])
def test_mean_of_the_evidence_never_exceeds_1_over_all_outcomes(
    shift: float, values: tuple[float, ...], rows: int, bins: int
) -> None:
    """At the edge of the tolerance, over every sequence of labels, few rows per update."""
    p = np.array(PREDICTIONS)
    means = np.clip(p + shift, 0, 1)
    mean_evidence = np.zeros(p.size // rows)
    for labels in product(values, repeat=p.size):
        chance, watch = 1.0, Watch(tolerance=0.05)
        for k in range(mean_evidence.size):
            now = slice(k * rows, (k + 1) * rows)
            for mean, y in zip(means[now], labels[now], strict=True):
                chance *= _chance(mean, y, values)
            state = watch.update(sc.reliability(labels[now], p[now], bins=bins))
            # The sum over all that may follow adds up to the chance of the labels so far.
            mean_evidence[k] += chance * state.evidence / len(values) ** (p.size - now.stop)
    assert (mean_evidence <= 1 + 1e-12).all()
    assert (np.diff(mean_evidence) <= 1e-12).all()
    assert mean_evidence[-1] > 0.9  # and little is given away


def _chance(mean: Any, value: Any, values: tuple[float, ...]) -> Any:
    """Return the chance of a label whose mean is given: 0 and 1, or a quarter on one half."""
    if len(values) == 2:
        return mean if value else 1 - mean
    middle = 2 * min(mean, 1 - mean) * 0.5
    return {0.5: middle, 1.0: mean - middle / 2, 0.0: 1 - mean - middle / 2}[value]


def test_calibrated_model_raises_no_alarm_where_daily_tests_do(rng: np.random.Generator) -> None:
    alarms, daily = 0, 0
    for _ in range(40):
        watch, total, small = Watch(tolerance=0.0), sc.Reliability.empty(), False
        for _ in range(40):
            p = rng.uniform(size=100)
            rel = sc.reliability(rng.uniform(size=100) < p, p)
            total = total + rel
            small |= sc.calibration_test(total).pvalue < 0.05
            state = watch.update(rel)
        alarms += state.alarm
        daily += small
    assert alarms <= 2
    assert daily >= 10


def drifting_days(
    rng: np.random.Generator, start: int, days: int = 30, n: int = 500, drift: float = 0.1
) -> Any:
    for day in range(1, days + 1):
        p = rng.uniform(size=n)
        mean = np.clip(p - (drift if day >= start else 0.0), 0, 1)
        yield sc.reliability(rng.uniform(size=n) < mean, p)


def test_alarm_names_the_day_and_the_direction_and_stays(rng: np.random.Generator) -> None:
    watch = Watch()
    states = [watch.update(rel) for rel in drifting_days(rng, start=16)]
    first: Any = next(state for state in states if state.alarm)
    assert 16 <= first.alarm_date <= 22
    assert abs(first.since - 16) <= 2
    assert first.direction == "too high"
    assert first.worst.gap_since == pytest.approx(0.1, abs=0.05)
    assert all(state.alarm for state in states[first.date - 1 :])
    assert states[-1].alarm_date == first.alarm_date
    assert states[0].since is None
    assert states[0].direction is None
    assert states[0].bins == ()


@pytest.mark.parametrize(
    ("slope", "direction"), [(0.5, "too extreme"), (2.0, "not extreme enough")]
)
def test_wrong_slope_of_predictions_is_named(
    rng: np.random.Generator, slope: float, direction: str
) -> None:
    watch = Watch()
    for _ in range(10):
        p = rng.uniform(0.02, 0.98, size=2000)
        mean = 1 / (1 + np.exp(-slope * np.log(p / (1 - p))))
        state = watch.update(sc.reliability(rng.uniform(size=2000) < mean, p))
    assert state.direction == direction


def test_one_bin_that_is_off_is_named(rng: np.random.Generator) -> None:
    watch = Watch()
    for _ in range(10):
        p = rng.uniform(size=2000)
        mean = np.where((p > 0.3) & (p < 0.4), 0.0, p)
        state = watch.update(sc.reliability(rng.uniform(size=2000) < mean, p))
    assert state.direction == "off in some bins"
    assert state.bins[0] == 3
    assert state.worst.gap_low[3] > 0.02


def test_bands_cover_the_truth_at_all_times_together(rng: np.random.Generator) -> None:
    misses_smece = misses_gap = 0
    for _ in range(40):
        watch, wrong_smece, wrong_gap = Watch(level=0.9), False, False
        expected, weight = np.zeros(5), np.zeros(5)
        for _ in range(20):
            p = rng.uniform(size=200)
            mean = p**1.3
            y = rng.binomial(3, mean) / 3
            state = watch.update(sc.reliability(y, p, bins=5))
            expected += np.bincount((p * 5).astype(int), p - mean, 5)
            weight += np.bincount((p * 5).astype(int), minlength=5)
            truth = np.abs(expected).sum() / weight.sum()
            wrong_smece |= not state.worst.low <= truth <= state.worst.high
            inside = (state.worst.gap_low <= expected / weight) & (
                expected / weight <= state.worst.gap_high
            )
            wrong_gap |= not inside.all()
        misses_smece += wrong_smece
        misses_gap += wrong_gap
    assert misses_smece <= 4
    assert misses_gap <= 4
    assert state.worst.smece == pytest.approx(truth, abs=0.05)


@given(st.floats(1e-3, 1e9), st.floats(0.1, 500))
def test_largest_sum_reaches_the_evidence_it_is_asked_for(variance: float, needed: float) -> None:
    total = float(largest_sum(np.array(variance), needed))
    rates = sequential._RATES
    reached = log_mixture(total, variance, rates, np.full(rates.size, 1 / rates.size))
    assert reached == pytest.approx(needed, abs=1e-6 * (1 + needed))


def test_empty_days_change_nothing(rng: np.random.Generator) -> None:
    watch = Watch()
    rel = sc.reliability(rng.uniform(size=50), rng.uniform(size=50))
    nothing = watch.update(sc.Reliability.empty())
    assert nothing.evidence == 1
    assert np.isnan([nothing.worst.smece, nothing.worst.low, nothing.worst.gap_since]).all()
    assert nothing.worst.since is None
    assert nothing.worst.direction is None
    assert nothing.worst.bins == ()
    before = watch.update(rel)
    after = watch.update(sc.Reliability.empty())
    assert after.log_evidence == before.log_evidence
    assert after.n == 0


def test_weights_scale_with_max_weight(rng: np.random.Generator) -> None:
    p, y = rng.uniform(size=300), rng.uniform(size=300)
    weight = rng.uniform(0.1, 1, size=300)
    one = Watch(max_weight=1.0).update(sc.reliability(y, p, sample_weight=weight))
    ten = Watch(max_weight=10.0).update(sc.reliability(y, p, sample_weight=10 * weight))
    assert ten.log_evidence == pytest.approx(one.log_evidence, abs=1e-9)
    assert ten.worst.smece == pytest.approx(
        sc.smece(y, p, sample_weight=weight), abs=1e-12
    )  # fmt: skip


def test_start_days_kept_are_few_and_the_day_is_still_found(rng: np.random.Generator) -> None:
    watch = Watch(tolerance=0.0)
    state: Any = None
    for day in range(1, 301):
        p = rng.uniform(size=60)
        mean = np.clip(p - (0.2 if day >= 250 else 0), 0, 1)
        state = watch.update(sc.reliability(rng.uniform(size=60) < mean, p, bins=5))
        if state.alarm:
            break
    assert state.alarm
    assert len(state.worst._starts) <= 64
    assert abs(state.since - 250) <= 4


def test_late_shift_of_outcomes_is_found_within_two_weeks(rng: np.random.Generator) -> None:
    delays = []
    for _ in range(9):
        watch = Watch(tolerance=0.0)
        states = (watch.update(rel) for rel in drifting_days(rng, 100, 140, 200, 0.05))
        delays.append(next(k for k, state in enumerate(states, 1) if state.alarm) - 99)
    assert 4 <= np.median(delays) <= 12
    assert min(delays) > 0


def test_outcomes_and_other_labels_may_alternate(rng: np.random.Generator) -> None:
    """The evidence of a day depends on its labels, and on the kind of the labels before it."""
    alarms = 0
    for _ in range(20):
        watch = Watch(tolerance=0.0)
        for day in range(30):
            p = rng.uniform(size=100)
            votes = 1 if day % 3 else 4
            state = watch.update(sc.reliability(rng.binomial(votes, p) / votes, p))
        alarms += state.alarm
    assert alarms <= 3


def segments(
    rng: np.random.Generator,
    off: Any,
    n: int = 400,
    countries: tuple[str, ...] = ("DE", "FR", "US"),
) -> Any:
    country = rng.choice(countries, n)
    p = rng.uniform(size=n)
    mean = np.where(country == off, np.clip(p - 0.3, 0, 1), p)
    rows = {"country": country, "p": p, "y": (rng.uniform(size=n) < mean).astype(float)}
    import pandas as pd

    return sc.scan(pd.DataFrame(rows), y_true="y", y_prob="p", by="country")


def test_segment_that_is_off_is_named(rng: np.random.Generator) -> None:
    watch = Watch(by="country")
    for _ in range(8):
        state = watch.update(segments(rng, "FR"))
    assert (state.worst.column, state.worst.value) == ("country", "FR")
    assert state.worst.name == "p, country = FR"
    flagged = [each.value for each in state.streams if each.alarm]
    assert flagged == ["FR"] or flagged == [None, "FR"]
    assert sum(watch._shares.values()) <= 1


def test_segments_that_appear_later_share_the_rest(rng: np.random.Generator) -> None:
    watch = Watch(by="country")
    watch.update(segments(rng, None))
    watch.update(segments(rng, None, countries=("DE", "IT", "ES", "PT")))
    assert len(watch._shares) == 7
    assert sum(watch._shares.values()) == pytest.approx(0.5 + 0.25 + 0.25 * (1 - 1 / 4))


def test_table_set_of_one_model_gives_the_evidence_of_its_table(
    rng: np.random.Generator, tmp_path: Path
) -> None:
    tables = segments(rng, "FR")
    tables.save(tmp_path / "day.softcal")
    one = Watch().update(tables["p"])
    for given_ in (tables, sc.load(tmp_path / "day.softcal")):
        assert Watch().update(given_).log_evidence == one.log_evidence


def test_dates_come_from_the_set_and_must_increase() -> None:
    import pandas as pd

    rows = pd.DataFrame({"y": [0.5, 0.2], "p": [0.4, 0.3]})
    first = sc.scan(rows, y_true="y", y_prob="p", date="2026-03-01")
    watch = Watch()
    assert watch.update(first).date == "2026-03-01"
    with pytest.raises(sc.InputError, match="dates must increase: '2026-03-01' follows"):
        watch.update(first)
    assert watch.update(first, date=dt.date(2026, 3, 2)).date == "2026-03-02"
    dateless = sc.scan(rows, y_true="y", y_prob="p")
    with pytest.raises(sc.InputError, match="either every update has a date, or none has"):
        watch.update(dateless)


def test_dates_increase_in_time_and_not_as_text() -> None:
    rel = sc.reliability([0.5, 0.2], [0.4, 0.3])
    increasing: list[tuple[Any, ...]] = [
        ("9", "10", "11"),
        (9.0, 10.5, "11", "1.2e1"),
        ("2026-03-01T23:00-05:00", "2026-03-02T05:00+00:00"),
        ("2026-03", "2026-03-02", "2026-03-02 12:00", "2026-W10-2"),
        (dt.date(2026, 3, 1), dt.datetime(2026, 3, 1, 12), np.datetime64("2026-03-02")),
    ]
    for dates in increasing:
        watch = Watch()
        assert [watch.update(rel, date=date).date for date in dates] == [str(d) for d in dates]
    for later, earlier in (("10", "9"), ("2026-03-02T05:00+00:00", "2026-03-01T23:00-05:00")):
        watch = Watch()
        watch.update(rel, date=later)
        with pytest.raises(sc.InputError, match="dates must increase"):
            watch.update(rel, date=earlier)


@pytest.mark.parametrize("date", ["1/2/2016", "monday", "20160102", "nan", "", True, float("inf")])
def test_dates_that_are_not_clear_are_refused(date: Any) -> None:
    with pytest.raises(sc.InputError, match="date must be either a number or an ISO date"):
        Watch().update(sc.reliability([0.5], [0.4]), date=date)


def test_dates_of_different_kinds_are_refused() -> None:
    rel = sc.reliability([0.5], [0.4])
    watch = Watch()
    watch.update(rel, date="2026-03-01")
    for other in ("7", "2026-03-02T10:00Z"):
        with pytest.raises(sc.InputError, match="must be all numbers, all dates, or all times"):
            watch.update(rel, date=other)


def test_time_axis_of_a_figure_is_linear_in_time() -> None:
    rel = sc.reliability([0.5, 0.2], [0.4, 0.3])
    for dates, gaps in (
        (("2026-03-01", "2026-03-02", "2026-03-31"), (1, 29)),
        (("2026-03-01T23:00-05:00", "2026-03-02T10:00Z", "2026-03-03T04:00Z"), (0.25, 0.75)),
        (("1", "2.5", "10"), (1.5, 7.5)),
        ((None, None, None), (1, 1)),
    ):
        watch = Watch()
        states = [watch.update(rel, date=date) for date in dates]
        above = draw_watch(states, tolerance=0.02, level=0.95).axes[0]
        (line,) = (each for each in above.lines if str(each.get_label()).startswith("so far"))
        assert np.diff(np.asarray(line.get_xdata())) == pytest.approx(gaps)


@pytest.mark.parametrize("dates", [("2026-01", "2026-02", "2026-03"), ("1", "3", "9"), (None,) * 3])
def test_marks_of_an_alarm_are_on_the_axis(dates: tuple[Any, ...]) -> None:
    watch, rel = Watch(), sc.reliability([0.0] * 99, [0.6] * 99)
    states = [watch.update(rel, date=date) for date in dates]
    assert states[-1].alarm
    figure = draw_watch(states, tolerance=0.02, level=0.95)
    figure.canvas.draw()
    middle = figure.axes[1]
    label = next(text for text in middle.texts if text.get_text() == "alarm at 20")
    assert middle.bbox.contains(*label.get_window_extent().min)
    (curve,) = (each for each in middle.lines if str(each.get_label()).startswith("all"))
    at = np.asarray(curve.get_xdata())
    shaded = middle.patches[0].get_window_extent().transformed(middle.transData.inverted())
    assert shaded.x0 == pytest.approx(at[0] - np.diff(at).min() / 2)
    assert shaded.x1 == pytest.approx(at[-1] + np.diff(at).min() / 2)


def too_high(rng: np.random.Generator, by: float, n: int = 400) -> sc.Reliability:
    """Return a day whose predictions are too high by a constant."""
    p = rng.uniform(size=n)
    return sc.reliability((rng.uniform(size=n) < np.clip(p - by, 0, 1)).astype(float), p)


def test_an_error_does_not_begin_after_the_alarm_that_it_raised(rng: np.random.Generator) -> None:
    watch = Watch()
    for day in range(1, 41):
        state = watch.update(too_high(rng, 0.08 if day <= 20 else 0.5))
    assert isinstance(state.alarm_date, int)
    assert state.alarm_date < 20
    assert isinstance(state.since, int)
    assert state.since <= state.alarm_date  # the rows since day 21 have more evidence
    assert f"Since {state.since} its predictions are" in state.sentence


def test_sentence_tells_an_error_that_began_after_the_alarm(rng: np.random.Generator) -> None:
    watch = Watch(by="country")
    for day in range(1, 31):
        state = watch.update(segments(rng, "FR" if day <= 4 else "US" if day > 12 else None))
    assert state.alarm_date == 1
    assert (state.worst.value, state.since) == ("US", 13)
    assert state.sentence.startswith(
        "Alarm on 1. Now p, country = US has the most evidence, from an error that began later. "
        "Since 13 its predictions are too high"
    )


def test_sentence_tells_that_the_evidence_has_fallen(rng: np.random.Generator) -> None:
    watch = Watch()
    states = [watch.update(too_high(rng, 0.3 * (day == 3), 100)) for day in range(60)]
    assert states[3].alarm
    fallen = "The evidence has fallen since the alarm: the error may have ended."
    assert [fallen in state.sentence for state in (states[3], states[-1])] == [False, True]


def test_each_stream_has_its_own_alarm_line(rng: np.random.Generator) -> None:
    watch = Watch(by="country")
    states = [watch.update(segments(rng, "FR")) for _ in range(2)]
    lines = {each.value: each.alarm_at for each in states[-1].streams}
    assert lines == pytest.approx({None: 40, "DE": 240, "FR": 240, "US": 240})
    for state in states:
        assert {each.alarm: each.evidence >= each.alarm_at for each in state.streams} == {
            True: True,
            False: False,
        }


def test_gaps_since_the_change_are_those_of_its_rows(rng: np.random.Generator) -> None:
    watch = Watch()
    days = [too_high(rng, 0.3 * (day > 9)) for day in range(1, 16)]
    worst = [watch.update(day) for day in days][-1].worst
    assert worst.since == 10
    low, gap, high = worst.bin_gaps_since
    np.testing.assert_allclose(gap, sum(days[10:], days[9]).gap)
    alone = Watch()
    same_rows = [alone.update(day) for day in days[9:]][-1].worst
    assert (low <= same_rows.gap_low).all()  # wider, because the data choose the start
    assert (high >= same_rows.gap_high).all()


def test_a_peak_of_evidence_within_a_week_is_shown(rng: np.random.Generator) -> None:
    watch = Watch()
    days = [dt.date(2026, 6, 1) + dt.timedelta(days=k) for k in range(40)]
    states = [
        watch.update(too_high(rng, 0.4 * (14 <= k < 17), 25), date=day)
        for k, day in enumerate(days)
    ]
    assert states[-1].alarm
    assert max(each.log_evidence for each in states[6::7]) < log(20)  # at the ends of weeks
    weeks = weeks_of(states)
    found = [week.log_evidence for week in weeks]
    assert found == [max(each.log_evidence for each in states[k : k + 7]) for k in range(0, 40, 7)]
    assert [each.worst.log_evidence for each in weeks] == found
    (curve,) = draw_watch(states, tolerance=0.02, level=0.95).axes[1].lines[1:2]
    assert np.max(curve.get_ydata()) == pytest.approx(max(found) / log(10))


def test_evidence_axis_shows_the_alarm_of_all_and_of_the_worst_segment(
    rng: np.random.Generator,
) -> None:
    watch = Watch(by="country")
    states = [watch.update(segments(rng, None)) for _ in range(4)]
    figure = draw_watch(states, tolerance=0.02, level=0.95)
    middle = figure.axes[1]
    assert {"20", "1"} <= {label.get_text() for label in middle.get_yticklabels()}
    worst = states[-1].worst
    legend = middle.get_legend()
    assert legend is not None
    written = [text.get_text() for text in legend.get_texts()]
    assert written == ["all: alarm at 20", f"{worst.name}: alarm at {worst.alarm_at:.4g}"]
    dashed = [line for line in middle.lines if line.get_linestyle() == "--"]
    drawn = [10 ** float(np.asarray(line.get_ydata())[0]) for line in dashed]
    assert drawn == pytest.approx([20, worst.alarm_at])


def test_figure_of_an_alarm_shows_the_errors_before_and_since(rng: np.random.Generator) -> None:
    watch = Watch()
    states = [watch.update(too_high(rng, 0.3 * (day > 9))) for day in range(1, 16)]
    above, _, below = draw_watch(states, tolerance=0.02, level=0.95).axes
    lines = {str(line.get_label()): line for line in above.lines}
    assert {"alarm on 10", "since 10, with its band", "before, with its 95% band"} <= {*lines}
    before = np.asarray(lines["before, with its 95% band"].get_xdata())
    np.testing.assert_array_equal(before, np.arange(1, 10))
    points = np.concatenate([np.asarray(each[0].get_ydata()) for each in below.containers])
    np.testing.assert_allclose(np.sort(points), np.sort(states[-1].worst.bin_gaps_since[1]))
    assert below.get_ylabel() == "gap since then"


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"tolerance": -0.1}, "tolerance must be at least 0 and below 1"),
        ({"tolerance": float("nan")}, "tolerance must be at least 0 and below 1"),
        ({"max_weight": 0}, "max_weight must be between"),
        ({"max_weight": inf}, "max_weight must be between"),
        ({"level": 1.0}, "level"),
    ],
)
def test_impossible_settings_are_refused(arguments: dict[str, Any], message: str) -> None:
    with pytest.raises(sc.InputError, match=message):
        Watch(**arguments)


def test_tables_the_method_is_not_valid_for_are_refused() -> None:
    y, p = [0.1, 0.9, 0.4], [0.2, 0.8, 0.5]
    grouped = sc.reliability(y, p, groups=[1, 1, 2])
    for most in (None, 1.5):
        with pytest.raises(sc.InputError, match="a group has a weight of 2 in one update"):
            Watch(max_weight=most).update(grouped)
    weighted = sc.reliability(y, p, sample_weight=[1, 2, 3])
    with pytest.raises(sc.InputError, match="pass max_weight"):
        Watch().update(weighted)
    with pytest.raises(sc.InputError, match="above max_weight = 2"):
        Watch(max_weight=2).update(weighted)
    with pytest.raises(sc.InputTypeError, match="segments need a TableSet"):
        Watch(by="country").update(sc.reliability(y, p))
    with pytest.raises(sc.InputTypeError, match="not list"):
        Watch().update([0.1, 0.2])  # type: ignore[arg-type]


def test_tables_that_differ_between_updates_are_refused(rng: np.random.Generator) -> None:
    watch = Watch()
    watch.update(sc.reliability([0.1], [0.2]))
    with pytest.raises(sc.BinMismatchError, match="every update must have the same bins"):
        watch.update(sc.reliability([0.1], [0.2], bins=5))
    watch = Watch()
    watch.update(segments(rng, None))
    with pytest.raises(sc.InputError, match="'predictions' is not among 'p'"):
        watch.update(sc.reliability([0.1], [0.2]))


def test_states_print_in_words(rng: np.random.Generator) -> None:
    watch = Watch()
    for rel in drifting_days(rng, start=2, days=12):
        state = watch.update(rel)
        if state.date == 1:
            assert "No alarm" in str(state)
    assert "Alarm on" in str(state)
    assert "predictions are too high" in " ".join(str(state).split())
    assert "StreamState(predictions, n=6000" in repr(state.worst)
    assert "6,000 rows, ECE" in str(state.worst)
    assert "alarm=True" in repr(state)
    assert repr(watch) == "Watch(tolerance=0.02, level=0.95, updates=12)"


def test_evidence_beyond_the_range_of_floats_is_infinite() -> None:
    watch = Watch()
    rel = sc.reliability([0.0] * 5000, [1.0] * 5000)
    state = watch.update(rel)
    assert state.evidence == inf
    assert state.pvalue == 0


@pytest.mark.parametrize(
    "settings_",
    [{"tolerance": "x"}, {"max_weight": 10**400}, {"max_weight": 1e300}, {"by": 1.5}, {"by": [3]}],
)
def test_odd_settings_of_a_watch_are_refused(settings_: dict[str, Any]) -> None:
    with pytest.raises(sc.SoftcalError, match="must be"):
        sc.Watch(**settings_)


def test_groups_that_vary_together_raise_no_false_alarm_and_a_drift_does() -> None:
    rng = np.random.default_rng(11)
    group, alarms = np.repeat(np.arange(60), 8), {"rows": 0, "groups": 0, "drift": 0}
    for _ in range(20):
        watches = {"rows": Watch(tolerance=0)} | {
            name: Watch(tolerance=0, max_weight=8) for name in ("groups", "drift")
        }
        for _day in range(20):
            p = rng.uniform(0.1, 0.9, group.size)
            y = p + 0.8 * rng.choice([-1, 1], 60)[group] * np.minimum(p, 1 - p)
            drift = np.clip(y - 0.1, 0, 1)
            watches["rows"].update(sc.reliability(y, p))
            watches["groups"].update(sc.reliability(y, p, groups=group))
            states = {"drift": watches["drift"].update(sc.reliability(drift, p, groups=group))}
        states |= {name: watches[name].update(sc.reliability([0.5], [0.5])) for name in alarms}
        for name, state in states.items():
            alarms[name] += state.alarm
    assert alarms["groups"] == 0
    assert alarms["rows"] >= 10
    assert alarms["drift"] == 20


@given(seed=st.integers(0, 1000), scale=st.sampled_from([0.25, 1.0, 8.0]), size=st.integers(1, 4))
def test_evidence_of_copies_in_groups_is_that_of_the_groups(
    seed: int, scale: float, size: int
) -> None:
    """A group of copies of one row is one step, as one row with the weight of the copies is."""
    rng = np.random.default_rng(seed)
    copied, heavy = Watch(max_weight=scale * size), Watch(max_weight=scale * size)
    for _ in range(5):
        p, y = rng.uniform(size=(2, 30))
        group = np.arange(30)
        one = sc.reliability(y, p, groups=group, sample_weight=[scale * size] * 30)
        many = sc.reliability(
            *(np.repeat(each, size) for each in (y, p)), groups=np.repeat(group, size),
            sample_weight=[scale] * (30 * size),
        )  # fmt: skip
        mine, other = heavy.update(one), copied.update(many)
        assert mine.log_evidence == pytest.approx(other.log_evidence, abs=1e-9)
        assert (mine.worst.low, mine.worst.high) == pytest.approx(
            (other.worst.low, other.worst.high)
        )


# Weeks, and the error since the change


def few_rows_each_day(rng: np.random.Generator, days: int, each: int, start: int) -> list[Any]:
    """Return a table per day; from a day on, predictions are 0.25 too high."""
    found = []
    for day in range(days):
        p = rng.uniform(0.3, 0.9, each)
        found.append(sc.reliability(rng.binomial(1, p - 0.25 * (day >= start)), p))
    return found


def watched_days(tables: list[Any], **options: Any) -> list[Any]:
    watch, first = Watch(**options), dt.date(2026, 1, 1)  # a Thursday
    return [watch.update(rel, date=first + dt.timedelta(k)) for k, rel in enumerate(tables)]


def test_weeks_have_the_error_of_their_own_rows(rng: np.random.Generator) -> None:
    tables = few_rows_each_day(rng, 60, 12, start=40)
    states = watched_days(tables)
    weeks = weeks_of(states)
    assert [week.date for week in weeks[:3]] == ["2025-12-29", "2026-01-05", "2026-01-12"]
    merged = [sum(tables[4 + 7 * k : 11 + 7 * k], sc.Reliability.empty()) for k in range(8)]
    for week, rel in zip(weeks[1:], merged, strict=True):
        assert week.n == rel.n
        assert week.worst.smece_new == pytest.approx(rel.smece, rel=1e-12)
    assert weeks[-1].log_evidence == states[-1].log_evidence
    assert weeks[-1].sentence == states[-1].sentence
    assert weeks_of(weeks) == []


def test_days_with_many_rows_or_few_weeks_are_not_grouped(rng: np.random.Generator) -> None:
    assert weeks_of(watched_days(few_rows_each_day(rng, 30, 30, start=99))) == []
    assert weeks_of(watched_days(few_rows_each_day(rng, 30, 29, start=99)))
    assert weeks_of(watched_days(few_rows_each_day(rng, 10, 5, start=99))) == []
    watch = Watch()
    numbered = [watch.update(rel) for rel in few_rows_each_day(rng, 40, 5, start=99)]
    assert weeks_of(numbered) == []


def test_weeks_of_a_segment_without_rows_have_no_error(rng: np.random.Generator) -> None:
    watch = Watch(by="country")
    states = []
    for day in range(28):
        country = ["DE"] * 5 + ["FR" if day < 7 else "DE"] * 5
        p = rng.uniform(size=10)
        rows = {"y": rng.binomial(1, p), "p": p, "country": country}
        tables = sc.scan(rows, y_true="y", y_prob="p", by="country")
        states.append(watch.update(tables, date=dt.date(2026, 1, 5) + dt.timedelta(day)))
    found = [
        next(each.smece_new for each in week.streams if each.value == "FR")
        for week in weeks_of(states)
    ]
    assert [np.isnan(each) for each in found] == [False, True, True, True]


def test_error_since_the_change_is_that_of_its_rows(rng: np.random.Generator) -> None:
    tables = few_rows_each_day(rng, 60, 40, start=40)
    worst = watched_days(tables)[-1].worst
    began = (dt.date.fromisoformat(str(worst.since)) - dt.date(2026, 1, 1)).days
    assert abs(began - 40) <= 3
    rel = sum(tables[began:], sc.Reliability.empty())
    assert worst.smece_since == pytest.approx(rel.smece, rel=1e-12)
    assert worst.gap_since == pytest.approx(rel.bias, rel=1e-12)
    # The band of one start among all is wider than a band of these rows alone.
    watch = Watch()
    alone = [watch.update(each) for each in tables[began:]][-1].worst
    assert worst.smece_since - worst.low_since > alone.smece - alone.low
    assert 0.2 < worst.low_since + 0.15 < 0.35
    empty = Watch().update(sc.Reliability.empty()).worst
    assert np.isnan([empty.smece_since, empty.low_since, empty.high_since]).all()


def test_band_since_the_change_holds_although_the_data_choose_the_start() -> None:
    """Of a calibrated model, 0 is outside on any of 60 days with probability at most 1 - level.

    That is 15 of 30 streams here. The band allows for all signs and starts, so it is wider.
    """
    missed = 0
    for seed in range(30):
        rng = np.random.default_rng(seed)
        tables = few_rows_each_day(rng, 60, 10, start=99)
        states = watched_days(tables, level=0.5)
        missed += any(state.worst.low_since > 0 for state in states[::3])
    assert missed <= 3
