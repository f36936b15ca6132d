// SMECE and its interval from the sums of a table: folded.py, gaps.py and intervals.py of
// softcal/inference, said again for the browser. The tests hold the two against each other.
"use strict";

const softcal = (() => {
  const FAR = [2.5, 3.5], ENOUGH_ROWS = [4, 5], SHARPNESS = 0.8, ROUNDING = 1e-11; // as in gaps.py
  const MEAN_AT_0 = Math.sqrt(2 / Math.PI);
  const sum = (values) => values.reduce((a, b) => a + b, 0);
  const density = (x) => Math.exp(-0.5 * x * x) / Math.sqrt(2 * Math.PI);

  // The normal distribution function: its series near 0, a continued fraction in the tails.
  function cdf(x) {
    if (Math.abs(x) > 3) {
      let fraction = 0;
      for (let k = 60; k > 0; k--) fraction = k / (Math.abs(x) + fraction);
      const tail = density(x) / (Math.abs(x) + fraction);
      return x > 0 ? 1 - tail : tail;
    }
    let term = x, total = x;
    for (let k = 1; k < 60; k++) {
      term *= (x * x) / (2 * k + 1);
      total += term;
    }
    return 0.5 + density(x) * total;
  }
  function quantile(p) {
    let [low, high] = [-40, 40];
    while (high - low > 1e-12) {
      const middle = (low + high) / 2;
      if (cdf(middle) < p) low = middle; else high = middle;
    }
    return (low + high) / 2;
  }
  const meanAbs = (x) => 2 * density(x) + x * (2 * cdf(x) - 1);
  const cautiousAbs = (t) =>
    t * (2 * cdf(t / SHARPNESS) - 1) - (2 / SHARPNESS) * density(t / SHARPNESS);

  // |x + Z| on a grid of x, for both inversions
  const STEP = 0.005;
  const grid = Array.from({ length: 3200 }, (_, i) => i * STEP);
  const gridMean = grid.map(meanAbs);
  const gridSpread = grid.map((x, i) =>
    Math.sqrt(Math.min(Math.max(1 + x * x - gridMean[i] ** 2, 1 - 2 / Math.PI), 1)));

  function firstReaching(reach, seen) {
    const found = reach.findIndex((value) => value >= seen);
    const above = Math.max(found, 1);
    return grid[above] - ((reach[above] - seen) / (reach[above] - reach[above - 1])) * STEP;
  }
  const inverseMeanAbs = (mean) =>
    mean > gridMean[gridMean.length - 1] ? mean : firstReaching(gridMean, mean);
  function highestPlausible(seen, width) {
    const reach = gridMean.map((mean, i) => mean - width * gridSpread[i]);
    return reach[reach.length - 1] < seen ? seen + width : firstReaching(reach, seen);
  }
  const kept = (rest, whole) => Math.max(rest, 0) + ROUNDING * whole;
  function smoothStep(x, [start, end]) {
    const u = Math.min(Math.max((x - start) / (end - start), 0), 1);
    return u ** 2 * (3 - 2 * u);
  }

  // A saved table, joined to fewer bins: one object a bin.
  function coarsen(table, bins) {
    const fine = table.bins, sums = table.sums;
    const floor = sums.label_var ? sums.vote_floor : sums.prob_var; // no label_var: all 0 or 1
    const out = Array.from({ length: bins }, (_, k) => ({
      left: k / bins, right: (k + 1) / bins, count: 0, weight: 0, weightSq: 0, label: 0,
      residual: 0, own: 0, floor: 0, votes: 0, hard: !sums.label_var,
    }));
    const add = (bin, field, name, k) => { if (sums[name]) bin[field] += sums[name][k]; };
    for (let k = 0; k < fine; k++) {
      const bin = out[Math.floor((k * bins) / fine)];
      add(bin, "count", "count", k);
      add(bin, "weight", "weight", k);
      add(bin, "weightSq", "weight_sq", k);
      add(bin, "label", "label", k);
      add(bin, "residual", "residual", k);
      add(bin, "own", "residual_var", k);
      add(bin, "votes", "votes", k);
      if (floor) bin.floor += floor[k];
    }
    for (const bin of out) bin.variance = Math.max(bin.own, bin.floor);
    return out;
  }

  function joined(bins, groups) {
    const out = Array.from({ length: groups }, () =>
      ({ residual: 0, variance: 0, weight: 0, weightSq: 0 }));
    bins.forEach((bin, b) => {
      const group = out[Math.floor((b * groups) / bins.length)];
      for (const field of Object.keys(group)) group[field] += bin[field];
    });
    return out;
  }

  const size = (bin) => bin.weight ** 2 / Math.max(bin.weightSq, 1e-300);

  function inErrors(bins, total, inflation) {
    return bins.map((bin) => {
      const error = Math.sqrt(bin.variance * inflation(bin)) / total;
      return { error, t: error > 0 ? bin.residual / total / error : 0 };
    });
  }

  // 1 / votes behind a label, 1 for 0/1 labels, 0 where nothing is known
  function counted(bins) {
    if (bins.some((bin) => bin.hard)) return 1;
    const votes = sum(bins.map((bin) => bin.votes)), rows = sum(bins.map((bin) => bin.count));
    return votes > 0 ? rows / Math.max(votes, rows) : 0;
  }

  function lowerLimit(bins, alpha, total, rows) {
    const coarser = bins.length > 10 ? [5, 2] : bins.length > 2 ? [2] : [];
    const tails = [[bins.length, (coarser.length ? 0.8 : 1) * alpha / 2]];
    for (const k of coarser) tails.push([k, 0.2 * alpha / 2 / coarser.length]);
    let best = 0;
    for (const [k, tail] of tails) {
      const part = joined(bins, k);
      const inflated = (bin) => 1 + 1 / Math.max(2 * size(bin), 1);
      const estimate = sum(
        inErrors(part, total, inflated).map(({ t, error }) => error * cautiousAbs(t)));
      const spread = sum(part.map((bin) => bin.variance)) / total ** 2;
      const above = Math.max(estimate, 0);
      const rest = kept(spread - (above ** 2 / rows) * (1 - 1 / rows), spread); // one more row
      const z = -quantile(tail), c = (counted(bins) * z ** 2) / rows;
      const atLimit = c * above + Math.sqrt((c * above) ** 2 + (1 + c) * z ** 2 * rest);
      best = Math.max(best, estimate - Math.max(atLimit / (1 + c), z * Math.sqrt(rest)));
    }
    return best;
  }

  function upperLimit(bins, alpha, total, rows) {
    const z = -quantile(alpha / 2);
    let nearError = 0, nearSquare = 0, nearGap = 0, farGap = 0, farSquare = 0;
    inErrors(bins, total, () => 1).forEach(({ t, error }, b) => {
      const gap = Math.abs(bins[b].residual) / total;
      const near = (1 - smoothStep(Math.abs(t), FAR)) * smoothStep(size(bins[b]), ENOUGH_ROWS);
      nearError += near * error; nearSquare += near * error ** 2; nearGap += near * gap;
      farGap += (1 - near) * gap; farSquare += (1 - near) * error ** 2;
    });
    let most = 0, middle = 0;
    if (nearError > 0) {
      const seen = nearGap / nearError;
      most = highestPlausible(
        Math.max(seen, MEAN_AT_0), (z * Math.sqrt(nearSquare)) / nearError);
      middle = Math.min(seen > MEAN_AT_0 ? inverseMeanAbs(seen) : 0, most);
    }
    const far = kept(farSquare - farGap ** 2 / rows, farSquare);
    const reach = Math.hypot((most - middle) * nearError, z * Math.sqrt(far));
    return Math.min(middle * nearError + farGap + reach, 1);
  }

  function interval(bins, level) {
    const alpha = 1 - level;
    const total = sum(bins.map((bin) => bin.weight));
    const rows = total ** 2 / sum(bins.map((bin) => bin.weightSq));
    const smece = sum(bins.map((bin) => Math.abs(bin.residual))) / total;
    if (sum(bins.map((bin) => bin.count)) < 2) return { smece, low: 0, high: 1 };
    const low = lowerLimit(bins, alpha, total, rows);
    const high = Math.max(upperLimit(bins, alpha, total, rows), mostOfFewEvents(bins, alpha, total));
    return { smece, low, high: Math.max(high, Math.min(-Math.log(alpha / 2) / rows, 1)) };
  }

  // What surprises among 0/1 labels leave possible: as in intervals.py.
  function mostOfFewEvents(bins, alpha, total) {
    if (!bins.some((bin) => bin.hard)) return 0;
    const unit = sum(bins.map((bin) => bin.weightSq)) / total;
    const k = 1 + sum(bins.map((bin) => bin.own)) / unit ** 2;
    const expected = sum(bins.map((bin) => bin.floor)) / unit ** 2;
    const most = k * (1 - 1 / (9 * k) - quantile(alpha / 2) / (3 * Math.sqrt(k))) ** 3;
    return Math.min(Math.max(((most - expected) * unit) / total, 0), 1);
  }

  // Half the width of one bin's own interval; t is Student's quantile by 1 / degrees of freedom.
  function halfWidth(bin, t) {
    const rows = size(bin);
    const second = Math.min(Math.max(rows - 1, 0), 1);
    if (!(second > 0)) return 2; // of one row anything may be true
    const centred = kept(bin.own - bin.weightSq * (bin.residual / bin.weight) ** 2, bin.own);
    const spread = (Math.max(centred, bin.floor) * rows) / (rows - 1);
    const at = Math.min(1 / (rows - 1), 1) * (t.length - 1);
    const left = Math.min(Math.floor(at), t.length - 2);
    const factor = t[left] + (at - left) * (t[left + 1] - t[left]);
    const half = Math.min((factor * Math.sqrt(spread)) / bin.weight, 2);
    return second * half + (1 - second) * 2;
  }

  return { coarsen, interval, halfWidth };
})();
