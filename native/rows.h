// The loops over rows. Included once per instruction set, after LEVEL and LANES are defined.
//
// Rows are processed in chunks (CHUNK in kernel.h): convert the values to float64, locate their bins, then
// add them. The processor can overlap the rows within each of these steps.
//
// The order of all additions depends only on the index of a row, not on the instruction set or the
// thread. The compiler may not fuse a product with a sum (-ffp-contract=off). Results are therefore
// bitwise identical.
//
// The rounding error of a long sum grows: 0.1 added a million times is wrong in the eleventh digit. Unless
// the order of the rows is crafted, about a thousand rows are added to a sum before it is moved to the
// totals, which keeps the error below 1e-13 of the absolute values added. No order exceeds 2^-53 per row of
// a block (block_rows in module.cpp): 2e-11 for up to 2^16 places.

namespace LEVEL {
#include "lanes.h"

// The sums of a bin, in four groups of four; one vector instruction adds a group. Without weights and
// votes, the last two groups are in a far half of the table, which labels inside (0, 1) never touch.
enum Slot {
  RESIDUAL, RESIDUAL_SQ, PROB_VAR, LABEL_VAR,
  COUNT, LABEL, HARD, HARD_SQ,
  WEIGHT, WEIGHT_SQ, RESIDUAL_VAR, HARD_VAR,
  LAST,  // what the last group holds differs
};
enum class Last { nothing, outcomes, votes };

// If all labels are 0 or 1, the most common case, four sums are enough: those of the residuals, of their
// squares, and of p (1 - p), and that of 2^26 + y, which encodes both the count and the sum of labels.
//
// Both are exact for every order of rows. A sum gets one term per row, and is moved to the totals after at
// most MOST = 2^25 rows (`run` in `sums` below). With n rows of which l have the label 1, it is
// 2^26 n + l. Each term and each partial sum is an integer of at most 2^51 + 2^25 < 2^53, so that no addition
// rounds. l <= n < 2^26, so that the quotient by 2^26 is n, and the remainder l. A sum of ones (COUNT, or
// LABEL with such labels) is exact up to 2^53 rows for the same reason.
constexpr double PACKED = 1 << 26;
constexpr size_t MOST = 1 << 25;
static_assert(MOST < PACKED && MOST * (PACKED + 1) < 9007199254740992.0, "a packed sum must be exact");
static_assert(MOST % CHUNK == 0, "a run must end with a chunk");

// Reading: any numeric type, any stride. Values are numbered row by row.

struct Half { uint16_t bits; };  // float16, which C++17 does not have

template <class T> INLINE double number(T value) { return (double)value; }
template <> INLINE double number(Half h) {
  const int exponent = h.bits >> 10 & 31, mantissa = h.bits & 1023;
  const uint64_t power = (uint64_t)((exponent ? exponent : 1) + 998) << 52;  // 2^(exponent - 25)
  double scale;
  memcpy(&scale, &power, sizeof scale);
  double value = (double)(mantissa | (exponent ? 1024 : 0)) * scale;
  if (exponent == 31) value = mantissa ? NAN : INFINITY;
  return h.bits & 0x8000 ? -value : value;
}

template <class T> void widen(const Column& column, size_t classes, size_t start, size_t count, double* to) {
  const char* from = column.at(start, classes);
  T value;
  if (column.flat(sizeof value, classes))  // a separate loop that the compiler can vectorize
    for (size_t j = 0; j < count; j++) memcpy(&value, from + j * sizeof value, sizeof value), to[j] = number(value);
  else
    for (size_t j = 0, c = start % classes; j < count; j++) {
      memcpy(&value, from, sizeof value);
      to[j] = number(value);
      const bool last = ++c == classes;  // of the row
      from += last ? column.row - (ptrdiff_t)(classes - 1) * column.column : column.column;
      c = last ? 0 : c;
    }
}

// Returns some values as float64: in place, or copied to the buffer. They are padded to a multiple of
// four.
const double* read(const Column& column, size_t classes, size_t start, size_t count, double* buffer, double filler = 0) {
  const char* from = column.at(start, classes);
  if (column.kind == 'd' && column.flat(sizeof(double), classes) && count % 4 == 0 && (uintptr_t)from % sizeof(double) == 0)
    return (const double*)from;
  switch (column.kind) {
    case 'd': widen<double>(column, classes, start, count, buffer); break;
    case 'f': widen<float>(column, classes, start, count, buffer); break;
    case 'e': widen<Half>(column, classes, start, count, buffer); break;
    case 'b': widen<int8_t>(column, classes, start, count, buffer); break;
    case 'B': widen<uint8_t>(column, classes, start, count, buffer); break;
    case 'h': widen<int16_t>(column, classes, start, count, buffer); break;
    case 'H': widen<uint16_t>(column, classes, start, count, buffer); break;
    case 'i': widen<int32_t>(column, classes, start, count, buffer); break;
    case 'I': widen<uint32_t>(column, classes, start, count, buffer); break;
    case 'q': widen<int64_t>(column, classes, start, count, buffer); break;
    default: widen<uint64_t>(column, classes, start, count, buffer); break;
  }
  for (; count % 4; count++) buffer[count] = filler;
  return buffer;
}

// Adds the classes of each row, which may begin in one chunk and end in another, and checks the sums.
struct RowSums {
  size_t classes, c = 0;  // the next class
  double tolerance, p = 0, y = 0;
  bool valid = true;
  RowSums(const Job& job) : classes(job.classes), tolerance(job.tolerance) {}
  void add(const double* ps, const double* ys, size_t count) {
    for (size_t j = 0; j < count;) {
      const size_t end = j + (classes - c) < count ? j + (classes - c) : count;
      c += end - j;
      for (; j < end; j++) p += ps[j], y += ys[j];
      if (c < classes) break;
      valid &= fabs(p - 1) <= tolerance && fabs(y - 1) <= tolerance;
      p = y = 0;
      c = 0;
    }
  }
};

// Bins: for any p, even an invalid one, the place is -1 or that of a bin

INLINE int64_t search(const Bins& bins, double p) {
  p = p < 1 ? p : 1;  // also if p is NaN
  const double cell = p * (double)bins.cells;  // exact: the number of cells is a power of two
  const ptrdiff_t* start = bins.starts + (size_t)(cell > 0 ? cell : 0);
  if ((size_t)start[0] > (size_t)start[1] || (size_t)start[1] >= bins.count) return 0;  // no table of `Guide`
  ptrdiff_t low = start[0], edges = start[1] - low;  // inside the cell
  // Branch-free, because the processor cannot predict on which side of an edge p lies.
  for (; edges > 1; edges -= edges / 2) low += (edges / 2) & -(ptrdiff_t)(p >= bins.upper[low + edges / 2 - 1]);
  return low + (p >= bins.upper[low]);
}

// Writes the address of each value's sums. `base` has that of the first bin, for the value's class and the
// row's copy.
//
// For equal bins the place is the integer k nearest to p n, minus 1 if p is below its edge k / n. Adding
// 1.5 * 2^52 leaves k in the last bits. p n is clipped to at most n - 3/4, so k is never n. It is clipped
// to at least 1/4, where k is 0, so that a p below 0 has place -1.
void locate_equal(const Bins& bins, const double* p, size_t count, int shift, const int64_t* base, int64_t* at) {
  const double n = (double)bins.equal;
  const vec magic = all(6755399441055744.0), width = all(n), inverse = all(bins.inverse), top = all(n - 0.75);
  const vec low = all(1 / n), high = all((n - 1) / n);
  const ivec before = bits(magic) - (int64_t)bins.first;
  const int64_t after = (int64_t)(bins.count - bins.equal - bins.first);  // edges that cut the last bin
  const bool cut = bins.cut();
  for (size_t j = 0; j < count; j += LANES) {
    const vec x = load<vec>(p + j);
    const vec t = most(least(x * width, top), all(0.25)) + magic;
    ivec place = bits(t) - before + below(x, quotient(t - magic, width, inverse));
    const ivec at_0 = equal(x, all(0)), at_1 = equal(x, all(1));  // common, so they are not searched for
    if (cut) place += (at_1 & after) - (at_0 & (int64_t)bins.first);
    place = shifted(place, shift) + load<ivec>(base + j);
    memcpy(at + j, &place, sizeof place);
    if (cut && any((below(x, low) & ~at_0) | (~below(x, high) & ~at_1)))  // in the first or the last bin
      for (size_t i = j; i < j + LANES; i++) at[i] = search(bins, p[i]) * ((int64_t)1 << shift) + base[i];
  }
}

void locate(const Job& job, const int64_t* base, size_t start, const double* p, size_t count, int64_t* at) {
  const Bins& bins = job.bins;
  const int shift = job.shift();
  if (job.classes > 1) base += start % (4 * job.classes);  // start is a multiple of 4 otherwise
  if (bins.equal) locate_equal(bins, p, (count + 3) / 4 * 4, shift, base, at);
  else
    for (size_t j = 0; j < count; j++) at[j] = search(bins, p[j]) * ((int64_t)1 << shift) + base[j];
  for (size_t j = 0; j < count && job.cell.data; j++) {
    ptrdiff_t cell;
    memcpy(&cell, job.cell.at(start + j, 1), sizeof cell);
    at[j] += cell * (ptrdiff_t)bins.count * ((int64_t)1 << shift);
  }
}

// Sums

struct Watch {
  vec lowest, highest;  // below 0, or above 1, if a value is invalid
  vec light, heavy;     // the lowest and the highest positive weight
  ivec good;            // not 0 while all votes are valid
};

struct Chunk {
  size_t count;  // padded to a multiple of four
  const double *p, *y, *w, *m;
  alignas(64) int64_t at[CHUNK];  // the address of each value's sums
  alignas(64) double buffers[4][CHUNK];
};

typedef void Adder(const Chunk&, size_t half, Watch&);

template <bool WEIGHTS, Last LAST_GROUP>
void add_all(const Chunk& chunk, size_t half, Watch& seen) {
  if (WEIGHTS || LAST_GROUP == Last::votes) half = SLOTS / 2;  // the compiler then knows it
  const double *ps = chunk.p, *ys = chunk.y, *ws = chunk.w, *ms = chunk.m;
  const size_t values = chunk.count;
  const vec one = all(1), zero = all(0);
  vec lowest = seen.lowest, light = seen.light, heavy = seen.heavy;
  ivec good = seen.good;
  for (size_t j = 0; j < values; j += LANES) {
    double *to[LANES], *far[LANES];
    for (int i = 0; i < LANES; i++) to[i] = (double*)chunk.at[j + i], far[i] = to[i] + half;
    vec p = load<vec>(ps + j), y = load<vec>(ys + j), count = one;
    vec d = p - y, dd = d * d, p_var = p * (one - p), y_var = y * (one - y);
    vec e = p - only(below(all(0.5), y), one), ee = e * e;  // the residual of the hardened label
    lowest = least(least(p_var, y_var), lowest);  // p (1 - p) < 0 for a p outside [0, 1]
    const ivec outcome = equal(y_var, zero);  // the label is exactly 0 or 1
    vec dd_var = dd;
    if (WEIGHTS) {
      const vec w = load<vec>(ws + j), ww = w * w;
      const ivec none = equal(w, zero);
      light = least(w + only(none, one), light);  // weights of 0 are valid
      heavy = most(w, heavy);
      count = only(~none, one);
      dd_var = ww * dd;
      scatter(w, ww, dd_var, ww * ee, far, 0);
      p_var = ww * p_var; y_var = w * y_var; y = w * y; d = w * d; dd = w * dd; e = w * e; ee = w * ee;
    }
    scatter(d, dd, p_var, y_var, to, 0);
    scatter(count, y, e, ee, to, COUNT);
    if (LAST_GROUP == Last::outcomes) scatter(only(outcome, p_var), only(outcome, dd_var), zero, zero, far, COUNT);
    if (LAST_GROUP == Last::votes) {
      const vec m = load<vec>(ms + j), limit = all(9007199254740992.0), rest = limit - m;
      // 2^53 - m is rounded to an integer, so this is exact only for whole m from 1 to 2^53 - 1.
      good &= equal(limit - rest, m) & below(zero, rest) & below(rest, limit);
      const vec repeated = only(~below(m, all(2)), count);
      scatter(m * count, repeated, p_var / m, repeated * y_var / most(m - one, one), far, COUNT);
    }
  }
  seen = {lowest, seen.highest, light, heavy, good};
}

void add_outcomes(const Chunk& chunk, size_t, Watch& seen) {
  const double *ps = chunk.p, *ys = chunk.y;
  const size_t values = chunk.count;
  vec lowest = seen.lowest;
  for (size_t j = 0; j < values; j += LANES) {
    double* to[LANES];
    for (int i = 0; i < LANES; i++) to[i] = (double*)chunk.at[j + i];
    const vec p = load<vec>(ps + j), y = load<vec>(ys + j), d = p - y, p_var = p * (all(1) - p);
    lowest = least(p_var, lowest);
    scatter(d, d * d, p_var, y + all(PACKED), to, 0);
  }
  seen.lowest = lowest;
}

// For SMECE, two sums are enough: those of the residuals and the count.
void add_residuals(const Chunk& chunk, size_t, Watch& seen) {
  const double *ps = chunk.p, *ys = chunk.y;
  const size_t values = chunk.count;
  vec lowest = seen.lowest, highest = seen.highest;
  for (size_t j = 0; j < values; j += LANES) {
    double* to[LANES];
    for (int i = 0; i < LANES; i++) to[i] = (double*)chunk.at[j + i];
    const vec p = load<vec>(ps + j), y = load<vec>(ys + j);
    lowest = least(least(p, y), lowest);
    highest = most(most(p, y), highest);
    scatter(p - y, all(1), to);
  }
  seen.lowest = lowest;
  seen.highest = highest;
}

// Converts the sums of `add_outcomes` to those of `add_all`.
INLINE void unpack(const double* packed, double* near, double* far) {
  const double residual = packed[RESIDUAL], residual_sq = packed[RESIDUAL_SQ], p_var = packed[PROB_VAR];
  const double count = (double)(int64_t)(packed[LABEL_VAR] / PACKED), label = packed[LABEL_VAR] - count * PACKED;
  const double sums[SLOTS] = {residual, residual_sq, p_var, 0, count, label, residual, residual_sq, 0, 0, 0, 0, p_var, residual_sq, 0, 0};
  memcpy(near, sums, sizeof sums / 2);
  memcpy(far, sums + SLOTS / 2, sizeof sums / 2);
}

struct Labels { bool soft, outcome; };  // whether some label is inside (0, 1), or exactly 0 or 1

INLINE Labels labels_of(const double* y, size_t count) {
  ivec every = below(all(0), all(1)), some{};
  for (size_t j = 0; j < count; j += LANES) {
    const vec each = load<vec>(y + j);
    const ivec outcome = equal(each * (all(1) - each), all(0));
    every &= outcome;
    some |= outcome;
  }
  return {any(~every), any(some)};
}

// Adds the sums of one place to the totals, and resets them to 0.
INLINE void set_aside(const Job& job, double* __restrict near, size_t half, size_t ways, bool packed, double* __restrict total) {
  double sums[SLOTS] = {};
  if (job.lean) {
    for (size_t k = 0; k < 2 * ways; k++) sums[k % 2] += near[k], near[k] = 0;
    total[0] += sums[0], total[1] += sums[1];
    return;
  }
  for (size_t way = 0; way < ways; way++, near += job.unit()) {
    for (size_t s = 0; s < SLOTS / 2; s++) sums[s] += near[s], near[s] = 0;
    if (packed) continue;
    for (size_t s = 0; s < SLOTS / 2; s++) sums[SLOTS / 2 + s] += near[half + s], near[half + s] = 0;
  }
  if (packed) unpack(sums, sums, sums + SLOTS / 2);
  for (size_t s = 0; s < SLOTS; s++) total[s] += sums[s];
}

// Adds the rows of a block to the totals. A class matrix is read row by row, which is the usual order in
// memory.
bool sums(const Job& job, size_t start, size_t stop, double* first, const int64_t* base, double* totals) {
  static Adder* const adders[2][3] = {
      {add_all<false, Last::nothing>, add_all<false, Last::outcomes>, add_all<false, Last::votes>},
      {add_all<true, Last::nothing>, add_all<true, Last::outcomes>, add_all<true, Last::votes>}};
  const size_t classes = job.classes, ways = job.ways(), stride = job.stride(), half = job.half(), places = job.places();
  const size_t most = ways > 1 ? FULL * 2 * ways : MOST, run = (stop - start < most ? stop - start : most) * classes;
  Watch watch{all(0), all(1), all(1), all(1), below(all(0), all(1))};
  RowSums row_sums(job);
  Chunk chunk;
  for (size_t begin = start * classes; begin < stop * classes; begin += run) {
    const size_t end = begin + run < stop * classes ? begin + run : stop * classes;
    bool packed = !job.lean && !job.w.data && !job.m.data;  // until the first soft label
    for (size_t i = begin; i < end; i += CHUNK) {
      const size_t count = end - i < CHUNK ? end - i : CHUNK;
      chunk.count = (count + 3) / 4 * 4;
      chunk.p = read(job.p, classes, i, count, chunk.buffers[0]);
      chunk.y = read(job.y, classes, i, count, chunk.buffers[1]);
      if (job.w.data) chunk.w = read(job.w, classes, i, count, chunk.buffers[2]);
      if (job.m.data) chunk.m = read(job.m, classes, i, count, chunk.buffers[3], 1);
      if (classes > 1) row_sums.add(chunk.p, chunk.y, count);
      locate(job, base, i, chunk.p, count, chunk.at);
      for (size_t j = count; j < chunk.count; j++) chunk.at[j] = (int64_t)(first - stride);  // place -1
      Adder* adder = add_residuals;
      if (!job.lean) {
        const Labels labels = job.m.data ? Labels{true, false} : labels_of(chunk.y, chunk.count);
        if (packed && labels.soft) {
          packed = false;
          for (double* each = first; each < first + places * stride && i > begin; each += SLOTS / 2) unpack(each, each, each + half);
        }
        adder = packed ? add_outcomes : adders[job.w.data != nullptr][job.m.data ? 2 : labels.outcome];
      }
      adder(chunk, half, watch);
      if (ways > 1) continue;
      // With many bins, check the bins of one value in eight for full sums. Which values are checked seems
      // random, so that an order of rows that is not crafted reveals a full bin soon. Only rounding needs it.
      const size_t count_slot = job.lean ? 1 : packed ? LABEL_VAR : COUNT;
      for (size_t j = i / CHUNK * 0x9E3779B97F4A7C15 >> 61; j < count; j += 8) {
        double* const each = (double*)chunk.at[j];
        if (each[count_slot] >= (packed ? FULL * PACKED : FULL) && each >= first)
          set_aside(job, each, half, 1, packed, totals + (size_t)(each - first) / stride * job.slots());
      }
    }
    for (size_t place = 0; place < places; place++)
      set_aside(job, first + place * stride, half, ways, packed, totals + place * job.slots());
  }
  const ivec bad = below(watch.lowest, all(0)) | below(all(1), watch.highest) | below(watch.light, all(1e-100)) | below(all(1e100), watch.heavy) | ~watch.good;
  double sum = 0;
  for (size_t place = 0; place < places; place++) sum += totals[place * job.slots() + RESIDUAL];
  return row_sums.valid && !any(bad) && sum == sum;  // a NaN among the values makes the sum of the residuals NaN
}

// Adds the sums of w, w p, w p^2, and w^2 of some rows. Each is four sums, whatever the number of lanes.
template <bool WEIGHTS> void add_moments(const double* p, const double* w, size_t rows, double* sums) {
  constexpr size_t PARTS = 4 / LANES;
  vec found[4][PARTS] = {};
  for (size_t j = 0; j < rows; j += 4)  // padding is 0
    for (size_t k = 0; k < PARTS; k++) {
      const vec x = load<vec>(p + j + k * LANES);
      if (WEIGHTS) {
        const vec v = load<vec>(w + j + k * LANES), vx = v * x;
        found[0][k] += v, found[1][k] += vx, found[2][k] += vx * x, found[3][k] += v * v;
      } else found[1][k] += x, found[2][k] += x * x;
    }
  for (size_t each = 0; each < 4; each++) {
    double four[4];
    memcpy(four, found[each], sizeof four);
    const bool counted = !WEIGHTS && each % 3 == 0;  // without weights, w and w^2 are 1
    sums[each] += counted ? (double)rows : (four[0] + four[1]) + (four[2] + four[3]);
  }
}

// The lattice of smooth ECE: each residual w (p - y) is split between the two nodes next to p. Nodes are
// at 0, 1/cells, ..., 1. An unused node follows, to which p = 1 adds 0, and then the sums of w, w p, w p^2, and w^2.
bool lattice(const Job& job, size_t start, size_t stop, double* nodes) {
  double buffers[3][CHUNK];
  const double cells = (double)job.bins.cells;
  bool valid = true;
  for (size_t i = start; i < stop; i += CHUNK) {
    const size_t rows = stop - i < CHUNK ? stop - i : CHUNK;
    const double* p = read(job.p, 1, i, rows, buffers[0]);
    const double* y = read(job.y, 1, i, rows, buffers[1]);
    const double* w = job.w.data ? read(job.w, 1, i, rows, buffers[2]) : nullptr;
    for (size_t j = 0; j < rows; j++) {
      const double w_j = w ? w[j] : 1.0, d = w_j * (p[j] - y[j]);
      valid &= p[j] >= 0 && p[j] <= 1 && y[j] >= 0 && y[j] <= 1 && ((w_j >= 1e-100 && w_j <= 1e100) || w_j == 0);
      const double place = p[j] >= 0 && p[j] <= 1 ? p[j] * cells : 0;
      const size_t node = (size_t)place;
      const double right = d * (place - (double)node);
      nodes[node] += d - right;
      nodes[node + 1] += right;
    }
    double* sums = nodes + job.bins.cells + 2;
    if (w) add_moments<true>(p, w, rows, sums);
    else add_moments<false>(p, w, rows, sums);
  }
  return valid;
}

// Writes the highest probability of each row, and the label's mass on that class.
bool top(const Job& job, size_t start, size_t stop) {
  double buffers[2][CHUNK], worst = 0, best = -1, mass = 0;
  const size_t classes = job.classes;
  RowSums row_sums(job);  // NaN if any value is, so that the row does not sum to 1
  size_t row = start, c = 0;
  for (size_t i = start * classes; i < stop * classes; i += CHUNK) {
    const size_t count = stop * classes - i < CHUNK ? stop * classes - i : CHUNK;
    const double* p = read(job.p, classes, i, count, buffers[0]);
    const double* y = read(job.y, classes, i, count, buffers[1]);
    row_sums.add(p, y, count);
    for (size_t j = 0; j < count; j++) {
      const double p_var = p[j] * (1 - p[j]), y_var = y[j] * (1 - y[j]), lower = p_var < y_var ? p_var : y_var;
      worst = lower < worst ? lower : worst;
      mass = p[j] > best ? y[j] : mass;  // without a branch, which the processor could not predict
      best = p[j] > best ? p[j] : best;
      if (++c < classes) continue;
      job.best[row] = best;
      job.mass[row++] = mass;
      best = -1;
      c = 0;
    }
  }
  return row_sums.valid && worst >= 0;
}

extern const Level level{LEVEL_NAME, sums, lattice, top};
}  // namespace LEVEL
