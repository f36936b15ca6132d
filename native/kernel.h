// The arguments of the loops, and the loops of each instruction set.
#pragma once
#include <cstddef>
#include <cstdint>

constexpr size_t CHUNK = 256;    // rows that are read, located and added at a time
constexpr size_t SLOTS = 16;    // sums per bin, listed in rows.h
constexpr size_t FULL = 512;    // rows after which the sums of a bin are moved to the totals

// One column (or one matrix) in the caller's memory. `kind` is a letter of Python's struct module; for
// integers it includes the size.
struct Column {
  const char* data = nullptr;
  ptrdiff_t row = 0, column = 0;  // bytes from one row, or one class, to the next; both for one class
  char kind = 0;
  const char* at(size_t value, size_t classes) const {
    if (classes == 1) return data + (ptrdiff_t)value * row;  // a division takes long
    return data + (ptrdiff_t)(value / classes) * row + (ptrdiff_t)(value % classes) * column;
  }
  bool flat(size_t size, size_t classes) const { return column == (ptrdiff_t)size && row == (ptrdiff_t)(classes * size); }
};

// Bins of [0, 1]. If `equal` is not 0, every k / equal is an edge, and the other edges cut the first
// and the last of these bins: `first` of them cut the first. Otherwise `starts` and `upper` locate any
// bin, as described in `softcal.bins.Guide`.
struct Bins {
  size_t count = 0, equal = 0, first = 0, cells = 0;
  const ptrdiff_t* starts = nullptr;
  const double* upper = nullptr;
  double inverse = 0;  // 1 / equal
  bool cut() const { return equal != count; }
};

struct Job {
  Column p, y, w, m, cell;   // data is null for w, m, and cell if they were not given
  size_t rows = 0, classes = 1, cells = 1;
  Bins bins;
  double tolerance = 0;      // how far from 1 the classes of a row may sum
  double *best = nullptr, *mass = nullptr;  // what `top` writes

  bool lean = false;         // only the sums of residuals and the counts are wanted

  size_t places() const { return bins.count * classes * cells; }
  size_t slots() const { return lean ? 2 : SLOTS; }
  // Four copies of each bin's sums, if they fit the L1 cache: consecutive rows of the same bin then do
  // not wait for each other.
  size_t ways() const { return places() <= 128 ? 4 : 1; }
  // Doubles from one copy to the next. Without weights and votes, the sums that are rarely needed are apart, in
  // the far half of the table.
  size_t unit() const { return lean ? 2 : full() ? SLOTS : SLOTS / 2; }
  size_t stride() const { return ways() * unit(); }
  int shift() const { return (lean ? 4 : full() ? 7 : 6) + (ways() == 4 ? 2 : 0); }  // log2 of the stride in bytes
  size_t side() const { return (places() + 1) * stride(); }  // place -1 is never read
  size_t half() const { return lean ? 0 : full() ? SLOTS / 2 : side(); }  // from the first half of a place's sums to the second
  size_t size() const { return lean || full() ? side() : 2 * side(); }  // of the table
  bool full() const { return w.data || m.data; }
};

struct Level {
  const char* name;
  // Each processes the rows from start to stop, and returns false if a value is invalid.
  bool (*sums)(const Job&, size_t start, size_t stop, double* table, const int64_t* base, double* totals);
  bool (*lattice)(const Job&, size_t start, size_t stop, double* nodes);
  bool (*top)(const Job&, size_t start, size_t stop);
};
