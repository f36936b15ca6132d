// The memory of one thread.
#pragma once
#include <algorithm>
#include <cstdlib>
#include <new>
#include <vector>

#include "kernel.h"

// Doubles that are 0 and aligned to a cache line. The system allocates large arrays lazily, so bins
// without rows use no memory.
class Zeros {
 public:
  explicit Zeros(size_t size) : bytes_(calloc(size + 8, sizeof(double))) {
    if (!bytes_) throw std::bad_alloc();
    data_ = (double*)(((uintptr_t)bytes_ + 63) / 64 * 64);
  }
  ~Zeros() { free(bytes_); }
  Zeros(const Zeros&) = delete;
  Zeros& operator=(const Zeros&) = delete;
  double* get() { return data_; }
  double& operator[](size_t i) { return data_[i]; }

 private:
  void* bytes_;
  double* data_;
};

// The table to which one thread adds, and the address of the first bin's sums, for each class of four rows,
// and again for as many values as a chunk has.
struct Table {
  Zeros sums;
  std::vector<int64_t> base;
  double* first;  // place -1 is before it
  explicit Table(const Job& job) : sums(job.size()), base(4 * job.classes + std::min(CHUNK, job.rows * job.classes + 3)), first(sums.get() + job.stride()) {
    size_t known = 0;
    for (size_t row = 0; row < 4; row++)
      for (size_t c = 0; c < job.classes; c++) base[known++] = (int64_t)(first + c * job.bins.count * job.stride() + row % job.ways() * job.unit());
    for (size_t more; known < base.size(); known += more) {
      more = std::min(known, base.size() - known);
      std::copy_n(base.data(), more, base.data() + known);
    }
  }
};
