// The loops over rows. Included once per instruction set, after LEVEL and LANES are defined.
//
// Rows are processed in chunks (CHUNK in kernel.h): convert the values to float64, locate their bins, then
// add them. The processor can overlap the rows within each of these steps.
//
// The order of all additions depends only on the index of a row, not on the instruction set or the
// thread. The compiler may not fuse a product with a sum (-ffp-contract=off). Results are therefore
// bitwise identical.
//
// The rounding error of a long sum grows: 0.1 added a million times is wrong in the eleventh digit. At
// most about a thousand rows are added to a sum before it is moved to the totals, which keeps the
// error below 1e-13.

namespace LEVEL {
#include "lanes.h"

// The sums of a bin, in four groups of four; one vector instruction adds a group. Two groups are in the
// near half of the table and two in the far half. Data without weights, votes, and labels of exactly 0
// or 1 never touch the far half.
enum Slot {
  RESIDUAL, RESIDUAL_SQ, PROB_VAR, LABEL_VAR,
  COUNT, LABEL, HARD, HARD_SQ,
  WEIGHT, WEIGHT_SQ, RESIDUAL_VAR, HARD_VAR,
  LAST,  // what the last group holds differs
};
enum class Last { nothing, outcomes, votes };

// If all labels are 0 or 1, the most common case, four sums are enough: those of the residuals, of their
// squares, and of p (1 - p), and that of 2^13 + y, which encodes both the count and the sum of labels.
constexpr double PACKED = 8192;

// Reading: any numeric type, any stride

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

template <class T> void widen(const char* from, ptrdiff_t step, size_t rows, double* to) {
  T value;
  if (step == (ptrdiff_t)sizeof value)  // a separate loop that the compiler can vectorize
    for (size_t j = 0; j < rows; j++) memcpy(&value, from + j * sizeof value, sizeof value), to[j] = number(value);
  else
    for (size_t j = 0; j < rows; j++) memcpy(&value, from + (ptrdiff_t)j * step, sizeof value), to[j] = number(value);
}

// Returns some rows of a column as float64: in place, or copied to the buffer. The rows are padded to a
// multiple of four.
const double* read(const Column& column, size_t start, size_t c, size_t rows, double* buffer, double filler = 0) {
  const char* from = column.data + (ptrdiff_t)start * column.row + (ptrdiff_t)c * column.column;
  if (column.kind == 'd' && column.row == sizeof(double) && rows % 4 == 0 && (uintptr_t)from % sizeof(double) == 0)
    return (const double*)from;
  switch (column.kind) {
    case 'd': widen<double>(from, column.row, rows, buffer); break;
    case 'f': widen<float>(from, column.row, rows, buffer); break;
    case 'e': widen<Half>(from, column.row, rows, buffer); break;
    case 'b': widen<int8_t>(from, column.row, rows, buffer); break;
    case 'B': widen<uint8_t>(from, column.row, rows, buffer); break;
    case 'h': widen<int16_t>(from, column.row, rows, buffer); break;
    case 'H': widen<uint16_t>(from, column.row, rows, buffer); break;
    case 'i': widen<int32_t>(from, column.row, rows, buffer); break;
    case 'I': widen<uint32_t>(from, column.row, rows, buffer); break;
    case 'q': widen<int64_t>(from, column.row, rows, buffer); break;
    default: widen<uint64_t>(from, column.row, rows, buffer); break;
  }
  for (; rows % 4; rows++) buffer[rows] = filler;
  return buffer;
}

// Bins: for any p, even an invalid one, the place is -1 or that of a bin

INLINE int64_t search(const Bins& bins, double p) {
  p = p < 1 ? p : 1;  // also if p is NaN
  const double cell = p * (double)bins.cells;  // exact: the number of cells is a power of two
  const ptrdiff_t* start = bins.starts + (size_t)(cell > 0 ? cell : 0);
  ptrdiff_t low = start[0], edges = start[1] - low;  // inside the cell
  // Branch-free, because the processor cannot predict on which side of an edge p lies.
  for (; edges > 1; edges -= edges / 2) low += (edges / 2) & -(ptrdiff_t)(p >= bins.upper[low + edges / 2 - 1]);
  return low + (p >= bins.upper[low]);
}

// Writes where the sums of each row's bin begin in the table: its place, scaled, plus the row's copy.
//
// For equal bins the place is the integer k nearest to p n, minus 1 if p is below its edge k / n. Adding
// 1.5 * 2^52 leaves k in the last bits. p n is clipped to at most n - 3/4, so k is never n. It is clipped
// to at least 1/4, where k is 0, so that a p below 0 has place -1.
void locate_equal(const Bins& bins, const double* p, size_t rows, int shift, const int64_t* way, int64_t* at) {
  const double n = (double)bins.equal;
  const vec magic = all(6755399441055744.0), width = all(n), inverse = all(bins.inverse), top = all(n - 0.75);
  const vec low = all(1 / n), high = all((n - 1) / n);
  const ivec before = bits(magic) - (int64_t)bins.first;
  const int64_t after = (int64_t)(bins.count - bins.equal - bins.first);  // edges that cut the last bin
  const bool cut = bins.cut();
  for (size_t j = 0; j < rows; j += LANES) {
    const vec x = load<vec>(p + j);
    const vec t = most(least(x * width, top), all(0.25)) + magic;
    ivec place = bits(t) - before + below(x, quotient(t - magic, width, inverse));
    const ivec at_0 = equal(x, all(0)), at_1 = equal(x, all(1));  // common, so they are not searched for
    if (cut) place += (at_1 & after) - (at_0 & (int64_t)bins.first);
    ivec mine;
    memcpy(&mine, way + j % 4, sizeof mine);
    mine += place << shift;
    memcpy(at + j, &mine, sizeof mine);
    if (cut && any((below(x, low) & ~at_0) | (~below(x, high) & ~at_1)))  // in the first or the last bin
      for (size_t i = j; i < j + LANES; i++) at[i] = search(bins, p[i]) * ((int64_t)1 << shift) + way[i % 4];
  }
}

void locate(const Job& job, size_t start, const double* p, size_t padded, size_t rows, int shift, const int64_t* way, int64_t* at) {
  const Bins& bins = job.bins;
  if (bins.equal) locate_equal(bins, p, padded, shift, way, at);
  else
    for (size_t j = 0; j < rows; j++) at[j] = search(bins, p[j]) * ((int64_t)1 << shift) + way[j % 4];
  for (size_t j = 0; j < rows && job.cell.data; j++) {
    ptrdiff_t cell;
    memcpy(&cell, job.cell.data + (ptrdiff_t)(start + j) * job.cell.row, sizeof cell);
    at[j] += cell * (ptrdiff_t)bins.count * ((int64_t)1 << shift);
  }
}

// Sums

struct Watch {
  vec worst;  // the lowest p (1 - p) and y (1 - y) so far: below 0 for a value outside [0, 1]
  ivec good;  // not 0 while all weights and votes are valid
};

struct Chunk {
  const double *p, *y, *w, *m;
  int64_t at[CHUNK];  // where each row's sums begin in the table
  double buffers[4][CHUNK];
};

INLINE void move(double** to, ptrdiff_t by) {
  for (int i = 0; i < LANES; i++) to[i] += by;
}

template <bool WEIGHTS, Last LAST_GROUP>
void add_chunk(const Chunk& chunk, size_t rows, double* __restrict table, size_t half, Watch& seen) {
  const double *ps = chunk.p, *ys = chunk.y, *ws = chunk.w, *ms = chunk.m;
  const vec one = all(1), zero = all(0);
  Watch watch = seen;
  for (size_t j = 0; j < rows; j += LANES) {
    double* to[LANES];
    for (int i = 0; i < LANES; i++) to[i] = table + chunk.at[j + i];
    vec p = load<vec>(ps + j), y = load<vec>(ys + j), count = one;
    vec d = p - y, dd = d * d, p_var = p * (one - p), y_var = y * (one - y);
    vec e = p - only(below(all(0.5), y), one), ee = e * e;  // the residual of the hardened label
    watch.worst = least(least(p_var, y_var), watch.worst);
    const ivec outcome = equal(y_var, zero);  // the label is exactly 0 or 1
    vec dd_var = dd;
    if (WEIGHTS) {
      const vec w = load<vec>(ws + j), ww = w * w;
      watch.good &= (~below(w, all(1e-100)) & ~below(all(1e100), w) & equal(w, w)) | equal(w, zero);
      count = only(below(zero, w), one);
      dd_var = ww * dd;
      const vec ee_var = ww * ee;
      p_var = ww * p_var; y_var = w * y_var; y = w * y; d = w * d; dd = w * dd; e = w * e; ee = w * ee;
      move(to, (ptrdiff_t)half);
      scatter(w, ww, dd_var, ee_var, to);
      move(to, -(ptrdiff_t)half);
    }
    scatter(d, dd, p_var, y_var, to);
    move(to, COUNT);
    scatter(count, y, e, ee, to);
    if (LAST_GROUP == Last::nothing) continue;
    move(to, (ptrdiff_t)half);
    if (LAST_GROUP == Last::outcomes) {
      scatter(only(outcome, p_var), only(outcome, dd_var), zero, zero, to);
    } else {
      const vec m = load<vec>(ms + j), whole = all(4503599627370496.0);  // 2^52: every double from here on is an integer
      watch.good &= ~below(m, one) & below(m, all(9007199254740992.0)) & (equal((m + whole) - whole, m) | ~below(m, whole));
      const vec repeated = only(~below(m, all(2)), count);
      scatter(m * count, repeated, p_var / m, repeated * y_var / most(m - one, one), to);
    }
  }
  seen = watch;
}

void add_outcomes(const Chunk& chunk, size_t rows, double* __restrict table, Watch& seen) {
  const double *ps = chunk.p, *ys = chunk.y;
  vec worst = seen.worst;
  for (size_t j = 0; j < rows; j += LANES) {
    double* to[LANES];
    for (int i = 0; i < LANES; i++) to[i] = table + chunk.at[j + i];
    const vec p = load<vec>(ps + j), y = load<vec>(ys + j), d = p - y, p_var = p * (all(1) - p);
    worst = least(p_var, worst);
    scatter(d, d * d, p_var, y + all(PACKED), to);
  }
  seen.worst = worst;
}

// Converts the sums of `add_outcomes` to those of `add_chunk`.
INLINE void unpack(const double* packed, double* near, double* far) {
  const double residual = packed[RESIDUAL], residual_sq = packed[RESIDUAL_SQ], p_var = packed[PROB_VAR];
  const double count = (double)(int64_t)(packed[LABEL_VAR] / PACKED), label = packed[LABEL_VAR] - count * PACKED;
  const double sums[SLOTS] = {residual, residual_sq, p_var, 0, count, label, residual, residual_sq, 0, 0, 0, 0, p_var, residual_sq, 0, 0};
  memcpy(near, sums, sizeof sums / 2);
  memcpy(far, sums + SLOTS / 2, sizeof sums / 2);
}

struct Labels { bool soft, outcome; };  // whether some label is inside (0, 1), or exactly 0 or 1

INLINE Labels labels_of(const double* y, size_t rows) {
  ivec every = below(all(0), all(1)), some{};
  for (size_t j = 0; j < rows; j += LANES) {
    const vec each = load<vec>(y + j);
    const ivec outcome = equal(each * (all(1) - each), all(0));
    every &= outcome;
    some |= outcome;
  }
  int64_t lanes[2][LANES];
  memcpy(lanes[0], &every, sizeof every);
  memcpy(lanes[1], &some, sizeof some);
  Labels found{false, false};
  for (int i = 0; i < LANES; i++) found.soft |= !lanes[0][i], found.outcome |= lanes[1][i] != 0;
  return found;
}

// Adds the sums of one place to the totals, and resets them to 0.
INLINE void set_aside(double* __restrict near, size_t half, size_t ways, bool packed, double* __restrict total) {
  double sums[SLOTS] = {};
  for (size_t way = 0; way < ways; way++, near += SLOTS / 2) {
    for (size_t s = 0; s < SLOTS / 2; s++) sums[s] += near[s], near[s] = 0;
    if (packed) continue;
    for (size_t s = 0; s < SLOTS / 2; s++) sums[SLOTS / 2 + s] += near[half + s], near[half + s] = 0;
  }
  if (packed) unpack(sums, sums, sums + SLOTS / 2);
  for (size_t s = 0; s < SLOTS; s++) total[s] += sums[s];
}

template <bool WEIGHTS, bool VOTES>
bool add_block(const Job& job, size_t start, size_t stop, double* table, double* totals) {
  const size_t ways = job.ways(), stride = job.stride(), half = job.half(), places = job.places();
  const int shift = ways == 4 ? 5 : 3;  // log2 of the stride of a place
  const int64_t way[4] = {0, ways == 4 ? 8 : 0, ways == 4 ? 16 : 0, ways == 4 ? 24 : 0};
  const size_t step = job.classes > 1 ? CHUNK / 4 : CHUNK;  // rows of all classes fit the L1 cache
  const size_t run = ways > 1 ? FULL * 2 * ways : stop - start;
  double* const first = table + stride;  // place -1 is before it
  Watch watch{all(0), below(all(0), all(1))};
  Chunk chunk;
  bool sums_to_one = true;
  for (size_t begin = start; begin < stop; begin += run) {
    const size_t end = begin + run < stop ? begin + run : stop;
    bool packed = !WEIGHTS && !VOTES;  // until the first soft label
    for (size_t i = begin; i < end; i += step) {
      const size_t rows = end - i < step ? end - i : step, padded = (rows + 3) / 4 * 4;
      double p_sum[CHUNK], y_sum[CHUNK];
      for (size_t j = 0; j < CHUNK && job.classes > 1; j++) p_sum[j] = y_sum[j] = 0;
      if (WEIGHTS) chunk.w = read(job.w, i, 0, rows, chunk.buffers[2]);
      if (VOTES) chunk.m = read(job.m, i, 0, rows, chunk.buffers[3], 1);
      for (size_t c = 0; c < job.classes; c++) {
        double* const mine = first + c * job.bins.count * stride;
        chunk.p = read(job.p, i, c, rows, chunk.buffers[0]);
        chunk.y = read(job.y, i, c, rows, chunk.buffers[1]);
        if (job.classes > 1)
          for (size_t j = 0; j < rows; j++) p_sum[j] += chunk.p[j], y_sum[j] += chunk.y[j];
        locate(job, i, chunk.p, padded, rows, shift, way, chunk.at);
        for (size_t j = rows; j < padded; j++) chunk.at[j] = table - mine;  // never read
        if (VOTES) {
          add_chunk<WEIGHTS, Last::votes>(chunk, padded, mine, half, watch);
        } else {
          const Labels labels = labels_of(chunk.y, padded);
          if (packed && labels.soft) {
            packed = false;
            for (size_t k = 0; k < places * ways && (i > begin || c); k++) unpack(first + k * SLOTS / 2, first + k * SLOTS / 2, first + k * SLOTS / 2 + half);
          }
          if (packed) add_outcomes(chunk, padded, mine, watch);
          else if (labels.outcome) add_chunk<WEIGHTS, Last::outcomes>(chunk, padded, mine, half, watch);
          else add_chunk<WEIGHTS, Last::nothing>(chunk, padded, mine, half, watch);
        }
        // With many bins, check the bins of one row in eight for full sums. Which rows are checked differs
        // between chunks, so that every order of rows reveals a full bin soon.
        const double full = packed ? FULL * PACKED : FULL;
        if (ways == 1)
          for (size_t j = i / CHUNK * 5 % 8; j < rows; j += 5 + j % 7)
            if (mine[chunk.at[j] + (packed ? LABEL_VAR : COUNT)] >= full && chunk.at[j] >= 0)
              set_aside(mine + chunk.at[j], half, 1, packed, totals + (c * job.bins.count + (size_t)chunk.at[j] / stride) * SLOTS);
      }
      for (size_t j = 0; j < rows && job.classes > 1; j++)
        sums_to_one &= fabs(p_sum[j] - 1) <= job.tolerance && fabs(y_sum[j] - 1) <= job.tolerance;
    }
    for (size_t place = 0; place < places; place++)
      set_aside(first + place * stride, half, ways, packed, totals + place * SLOTS);
  }
  double worst[LANES], sum = 0;
  int64_t good[LANES];
  memcpy(worst, &watch.worst, sizeof worst);
  memcpy(good, &watch.good, sizeof good);
  bool valid = sums_to_one;
  for (int j = 0; j < LANES; j++) valid = valid && worst[j] >= 0 && good[j];
  for (size_t place = 0; place < places; place++) sum += totals[place * SLOTS + RESIDUAL];
  return valid && sum == sum;  // a NaN among the values makes the sum of the residuals NaN
}

bool sums(const Job& job, size_t start, size_t stop, double* table, double* totals) {
  if (job.w.data) return (job.m.data ? add_block<true, true> : add_block<true, false>)(job, start, stop, table, totals);
  return (job.m.data ? add_block<false, true> : add_block<false, false>)(job, start, stop, table, totals);
}

// The lattice of smooth ECE: each residual w (p - y) is split between the two nodes next to p. Nodes are
// at 0, 1/cells, ..., 1. An unused node follows, to which p = 1 adds 0, and then the sum of w.
bool lattice(const Job& job, size_t start, size_t stop, double* nodes) {
  double buffers[3][CHUNK];
  const double cells = (double)job.bins.cells;
  bool valid = true;
  for (size_t i = start; i < stop; i += CHUNK) {
    const size_t rows = stop - i < CHUNK ? stop - i : CHUNK;
    const double* p = read(job.p, i, 0, rows, buffers[0]);
    const double* y = read(job.y, i, 0, rows, buffers[1]);
    const double* w = job.w.data ? read(job.w, i, 0, rows, buffers[2]) : nullptr;
    double weight = 0;
    for (size_t j = 0; j < rows; j++) {
      const double w_j = w ? w[j] : 1.0, d = w_j * (p[j] - y[j]);
      valid &= p[j] >= 0 && p[j] <= 1 && y[j] >= 0 && y[j] <= 1 && ((w_j >= 1e-100 && w_j <= 1e100) || w_j == 0);
      const double place = p[j] >= 0 && p[j] <= 1 ? p[j] * cells : 0;
      const size_t node = (size_t)place;
      const double right = d * (place - (double)node);
      nodes[node] += d - right;
      nodes[node + 1] += right;
      weight += w_j;
    }
    nodes[job.bins.cells + 2] += weight;
  }
  return valid;
}

// Writes the highest probability of each row, and the label's mass on that class. Branch-free, because
// the processor cannot predict which class has the highest probability.
bool top(const Job& job, size_t start, size_t stop) {
  double buffers[2][CHUNK];
  bool valid = true;
  for (size_t i = start; i < stop; i += CHUNK) {
    const size_t rows = stop - i < CHUNK ? stop - i : CHUNK;
    double p_sum[CHUNK] = {}, y_sum[CHUNK] = {}, best[CHUNK] = {}, mass[CHUNK] = {}, worst[CHUNK] = {};
    for (size_t c = 0; c < job.classes; c++) {
      const double* p = read(job.p, i, c, rows, buffers[0]);
      const double* y = read(job.y, i, c, rows, buffers[1]);
      for (size_t j = 0; j < rows; j++) {
        const double p_var = p[j] * (1 - p[j]), y_var = y[j] * (1 - y[j]), lower = p_var < y_var ? p_var : y_var;
        worst[j] = lower < worst[j] ? lower : worst[j];
        mass[j] = c == 0 || p[j] > best[j] ? y[j] : mass[j];
        best[j] = c == 0 || p[j] > best[j] ? p[j] : best[j];
        p_sum[j] += p[j];  // NaN if any value is, so that the row does not sum to 1
        y_sum[j] += y[j];
      }
    }
    for (size_t j = 0; j < rows; j++)
      valid &= worst[j] >= 0 && fabs(p_sum[j] - 1) <= job.tolerance && fabs(y_sum[j] - 1) <= job.tolerance;
    memcpy(job.best + i, best, rows * sizeof(double));
    memcpy(job.mass + i, mass, rows * sizeof(double));
  }
  return valid;
}

extern const Level level{LEVEL_NAME, sums, lattice, top};
}  // namespace LEVEL
