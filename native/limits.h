// The limits of SMECE for one table of independent rows. `Gaps` of softcal.inference.intervals explains
// the method, and computes the same with arrays, for many tables and for rows in groups.
#pragma once
#include <algorithm>
#include <cmath>
#include <cstddef>
#include <vector>

namespace limits {

const double ROOT_2 = std::sqrt(2.0), MEAN_AT_0 = std::sqrt(2 / std::acos(-1.0)), SPREAD_AT_0 = std::sqrt(1 - MEAN_AT_0 * MEAN_AT_0);

// Constants, in the order of `_METHOD` in Python.
struct Method { double sharpness, near, far, few_rows, enough_rows, rounding, step; };

// Mean and standard deviation of |x + Z| at x = 0, step, 2 step, ...
struct Grid { const double *mean, *spread; size_t size; };

// The sums of each bin that the limits need, in the order of `Sums`.
enum Sum { WEIGHT, WEIGHT_SQ, LABEL, RESIDUAL, RESIDUAL_VAR, PROB_VAR, LABEL_VAR, VOTES, REPEATED, VOTE_FLOOR, EXPECTED, SEEN };
struct Table {
  const double* sums[12];
  const double* operator[](Sum name) const { return sums[name]; }
};

// What is written: both limits, and what `_Events` of the whole table needs.
struct Found { double debiased, low, high, hard, weight, weight_sq, prob_var, residual_var, vote_floor, expected, seen, repeated, below; };

// A bin that varies: its residual, the standard error, the third cumulant of its labels, and its weight.
struct Bin {
  double residual, error, lean, weight, weight_sq;
  double size() const { return weight * weight / weight_sq; }
};

struct Limits {
  const Method& method;
  const Grid& grid;
  double total, rows, counted, variance;

  double kept(double rest, double whole) const { return std::max(rest, 0.0) + method.rounding * whole; }

  static double step(double x, double start, double end) {
    const double u = std::min(std::max((x - start) / (end - start), 0.0), 1.0);
    return u * u * (3 - 2 * u);
  }

  double less_noise(const std::vector<Bin>& bins) const {
    double found = 0;
    for (const Bin& bin : bins) {
      const double t = std::fabs(bin.residual) / bin.error;
      found += bin.error * (2 * t - MEAN_AT_0 * std::exp(-t * t / 2) - t * std::erf(t / ROOT_2));
    }
    return std::max(found / total, 0.0);
  }

  double skewness(double third) const { return std::max(third / std::max(variance, 1e-300) / total, 0.0); }

  double lower(const std::vector<Bin>& bins, double z) const {
    double found = 0, third = 0;
    for (const Bin& bin : bins) {
      const double wider = bin.error * std::sqrt(1 + 0.5 / bin.size()) * method.sharpness, u = bin.residual / wider;
      const double sign = std::erf(u / ROOT_2);
      third += sign * bin.lean;
      found += bin.residual * sign - wider * MEAN_AT_0 * std::exp(-u * u / 2) / (method.sharpness * method.sharpness);
    }
    const double estimate = found / total, above_0 = std::max(estimate, 0.0), spread = variance / (total * total);
    const double rest = kept(spread - above_0 * above_0 / rows * (1 - 1 / rows), spread);
    const double c = counted * z * z / rows;
    const double half = c * above_0 + z * z / 2 * skewness(third);
    const double at_limit = half + std::sqrt(half * half + (1 + c) * z * z * rest);
    return estimate - std::max(at_limit / (1 + c), z * std::sqrt(rest));
  }

  double upper(const std::vector<Bin>& bins, double z) const {
    double near_error = 0, near_gap = 0, near_square = 0, far_gap = 0, far_square = 0, third = 0, mean = 0;
    for (const Bin& bin : bins) {
      const double gap = std::fabs(bin.residual);
      const double near = (1 - step(gap / bin.error, method.near, method.far)) * step(bin.size(), method.few_rows, method.enough_rows);
      near_error += near * bin.error;
      near_gap += near * gap;
      near_square += near * bin.error * bin.error;
      far_gap += (1 - near) * gap;
      far_square += (1 - near) * bin.error * bin.error;
      const double sign = std::erf(bin.residual / (bin.error * method.sharpness) / ROOT_2), own = sign * bin.residual / bin.weight;
      third += own * (3 * bin.error * bin.error - 2 * own * own * bin.weight_sq) * (bin.weight_sq / bin.weight) - sign * bin.lean;
      mean += sign * bin.residual / total;
    }
    const double unit = total / rows;
    third -= unit * (3 * mean * variance - 2 * mean * mean * mean * total * unit);
    const double half = (2 * z * z + 1) / 6 * skewness(third) * total;
    const double scale = near_error > 0 ? near_error : 1, seen = near_gap / scale, noise = std::sqrt(near_square) / scale;
    const double most = highest_plausible(std::max(seen, MEAN_AT_0 - SPREAD_AT_0 * noise), z * noise);
    const double middle = std::min(inverse_mean(seen), most), reach = (most - middle) * near_error;
    const double far = kept(far_square - far_gap * far_gap / rows, far_square);
    return std::min((middle * near_error + far_gap + half + std::sqrt(half * half + reach * reach + z * z * far)) / total, 1.0);
  }

  double inverse_mean(double mean) const {
    const size_t above = (size_t)(std::lower_bound(grid.mean, grid.mean + grid.size, mean) - grid.mean);
    if (above == 0 || above == grid.size) return above ? mean : 0;  // beyond the grid |x + Z| is x + Z
    const double low = grid.mean[above - 1], high = grid.mean[above];
    return ((double)(above - 1) + (mean - low) / (high - low)) * method.step;
  }

  double highest_plausible(double seen, double width) const {
    const auto reach = [&](size_t k) { return grid.mean[k] - width * grid.spread[k]; };
    size_t below = 0, above = grid.size;
    while (above - below > 1) {
      const size_t middle = (below + above) / 2;
      (reach(middle) >= seen ? above : below) = middle;
    }
    if (above == grid.size) return seen + width;
    const double low = reach(above - 1), high = reach(above);
    return std::max(((double)above - (high - seen) / (high - low)) * method.step, 0.0);
  }
};

// `ways` lists pairs: the number of joined bins of each coarsening, the first being all bins, and its
// reach in standard errors. The first pair's place holds the reach and the floor of the upper limit.
inline Found of(const Table& t, size_t bins, double n, const double* ways, size_t pairs, const Method& method, const Grid& grid) {
  Found f{};
  double votes = 0, unknown = 0;
  f.hard = 1;
  for (size_t b = 0; b < bins; b++) {
    if (t[LABEL_VAR][b] != 0) f.hard = 0;
    unknown += t[EXPECTED][b];
  }
  const bool soft = !f.hard, known = !std::isnan(unknown);
  std::vector<double> variance(bins), leaning(bins);  // leaning: 1 - 2p, in the units of a row
  double of_others = 0, possible = 0;
  Limits limits{method, grid, 0, 0, 1, 0};
  for (size_t b = 0; b < bins; b++) {
    const double w = t[WEIGHT][b], own = t[RESIDUAL_VAR][b], floor = soft ? t[VOTE_FLOOR][b] : 0;
    const double expected = soft ? (known ? t[EXPECTED][b] : 0) : t[PROB_VAR][b], seen = soft ? (known ? t[SEEN][b] : 0) : own;
    variance[b] = std::max(expected, seen) + std::max(own - seen, floor);
    limits.variance += variance[b];
    of_others += variance[b] - std::max(expected, seen);
    possible += std::max(t[PROB_VAR][b] - expected, 0.0);
    if (w > 0) leaning[b] = (1 - 2 * (t[LABEL][b] + t[RESIDUAL][b]) / w) * t[WEIGHT_SQ][b] / w;
    f.weight += w;
    f.weight_sq += t[WEIGHT_SQ][b];
    f.prob_var += t[PROB_VAR][b];
    f.residual_var += own;
    f.vote_floor += floor;
    f.expected += expected;
    f.seen += seen;
    f.repeated += t[REPEATED][b] / n;
    f.below += std::min(std::max(2 - 4 * (t[LABEL][b] + t[RESIDUAL][b]) / (w > 0 ? w : 1), -1.0), 1.0) * t[RESIDUAL][b];
    votes += t[VOTES][b];
  }
  limits.total = f.weight;
  limits.rows = f.weight * f.weight / f.weight_sq;
  if (soft) limits.counted = votes > 0 ? n / std::max(votes, n) : 0;
  const double share = std::min(of_others / std::max(possible, 1e-300), 1.0), skewed = 2 * share / (1 + share);
  std::vector<double> lean(bins);
  for (size_t b = 0; b < bins; b++) {
    const double expected = soft ? (known ? t[EXPECTED][b] : 0) : t[PROB_VAR][b], seen = soft ? (known ? t[SEEN][b] : 0) : t[RESIDUAL_VAR][b];
    const double events = std::max(expected, seen);
    lean[b] = (events + skewed * (variance[b] - events)) * leaning[b];
  }
  std::vector<Bin> joined;
  for (size_t k = 1; k < pairs; k++) {
    const size_t parts = (size_t)ways[2 * k];
    joined.clear();
    for (size_t j = 0, b = 0; j < parts; j++) {  // part j holds the bins with floor(b parts / bins) = j
      double residual = 0, own = 0, third = 0, w = 0, w_sq = 0;
      for (; b * parts / bins == j; b++) residual += t[RESIDUAL][b], own += variance[b], third += lean[b], w += t[WEIGHT][b], w_sq += t[WEIGHT_SQ][b];
      if (own > 0) joined.push_back({residual, std::sqrt(own), third, w, w_sq});
    }
    f.low = std::max(f.low, limits.lower(joined, ways[2 * k + 1]));
    if (k > 1) continue;  // what follows is of the bins themselves
    f.debiased = limits.less_noise(joined);
    f.high = std::max(limits.upper(joined, ways[0]), std::min(ways[1] / limits.rows, 1.0));
    std::vector<Bin> as_seen;  // without the known noise, which may be too large
    for (size_t b = 0; b < bins; b++) {
      const double own = t[RESIDUAL_VAR][b];
      if (own > 0) as_seen.push_back({t[RESIDUAL][b], std::sqrt(own), lean[b], t[WEIGHT][b], t[WEIGHT_SQ][b]});
    }
    Limits own = limits;
    own.variance = f.residual_var;
    f.high = std::max(f.high, own.upper(as_seen, ways[0]));
  }
  return f;
}

}  // namespace limits
