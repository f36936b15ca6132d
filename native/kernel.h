// What the Python side hands to the loops, and the loops of each instruction set.
#pragma once
#include <cstddef>
#include <cstdint>

constexpr size_t CHUNK = 256;    // rows that are read, located and added at a time
constexpr size_t SLOTS = 16;    // sums per bin: rows.h says which
constexpr size_t FULL = 512;    // rows after which the sums of a bin are set aside

// One column (or one matrix) as the caller holds it. `kind` is a letter of Python's struct module;
// whole numbers carry their size in it already.
struct Column {
  const char* data = nullptr;
  ptrdiff_t row = 0, column = 0;  // bytes from one row, or one class, to the next
  char kind = 0;
};

// Bins of [0, 1]. Where `equal` is not 0, the edges k / equal are all there, and the others cut the
// first and the last of these bins: `first` of them the first. Else `starts` and `upper` find any bin,
// as `softcal.bins.Guide` says.
struct Bins {
  size_t count = 0, equal = 0, first = 0, cells = 0;
  const ptrdiff_t* starts = nullptr;
  const double* upper = nullptr;
  double inverse = 0;  // 1 / equal
  bool cut() const { return equal != count; }
};

struct Job {
  Column p, y, w, m, cell;   // w, m and cell have no data where they were not given
  size_t rows = 0, classes = 1, cells = 1;
  Bins bins;
  double tolerance = 0;      // how far from 1 the classes of a row may sum
  double *best = nullptr, *mass = nullptr;  // what `top` writes

  size_t places() const { return bins.count * classes * cells; }
  // Four private copies of each bin's sums, where they fit the first cache: rows that follow each
  // other into the same bin then do not wait for each other.
  size_t ways() const { return places() <= 128 ? 4 : 1; }
  size_t stride() const { return ways() * SLOTS / 2; }
  size_t half() const { return (places() + 1) * stride(); }  // of the table; place -1 is never read
};

struct Level {
  const char* name;
  // Each handles the rows from start to stop; false says that some value breaks the rules.
  bool (*sums)(const Job&, size_t start, size_t stop, double* table, double* totals);
  bool (*lattice)(const Job&, size_t start, size_t stop, double* nodes);
  bool (*top)(const Job&, size_t start, size_t stop);
};
