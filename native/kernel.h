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
  ptrdiff_t row = 0, column = 0;  // bytes from one row, or one class, to the next
  char kind = 0;
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

  size_t places() const { return bins.count * classes * cells; }
  // Four copies of each bin's sums, if they fit the L1 cache: consecutive rows of the same bin then do
  // not wait for each other.
  size_t ways() const { return places() <= 128 ? 4 : 1; }
  size_t stride() const { return ways() * SLOTS / 2; }
  size_t half() const { return (places() + 1) * stride(); }  // of the table; place -1 is never read
};

struct Level {
  const char* name;
  // Each processes the rows from start to stop, and returns false if a value is invalid.
  bool (*sums)(const Job&, size_t start, size_t stop, double* table, double* totals);
  bool (*lattice)(const Job&, size_t start, size_t stop, double* nodes);
  bool (*top)(const Job&, size_t start, size_t stop);
};
