// Prints a hash of the loops' results for each instruction set of this machine. `make aarch64` compares the
// hashes of this processor with those of an emulated aarch64: all digits must be equal.
#include <cstdio>
#include <cstring>

#include "kernel.h"
#include "table.h"

namespace portable { extern const Level level; }
namespace baseline { extern const Level level; }
#ifdef __x86_64__
namespace avx2 { extern const Level level; }
#endif

namespace {

constexpr size_t ROWS = 20'001, CLASSES = 3, CELLS = 5;

uint64_t state = 1;
uint64_t random_bits() { return (state = state * 6364136223846793005 + 1442695040888963407) >> 11; }
double random_number() { return (double)random_bits() / 9007199254740992.0; }

struct Hash {
  uint64_t value = 14695981039346656037u;
  void add(const double* from, size_t size) {
    const unsigned char* bytes = (const unsigned char*)from;
    for (size_t i = 0; i < size * sizeof(double); i++) value = (value ^ bytes[i]) * 1099511628211u;
  }
};

struct Data {
  std::vector<double> p, soft, hard, w, m;
  std::vector<float> narrow;
  std::vector<uint16_t> half;  // float16 from 0 to 1
  std::vector<ptrdiff_t> cell;
  std::vector<double> p_rows, y_rows, upper;
  std::vector<ptrdiff_t> starts;
  Data() {
    for (size_t i = 0; i < ROWS; i++) {
      p.push_back(i % 7 ? random_number() : (double)(i % 11) / 10);  // every edge of ten bins too
      soft.push_back(random_number());
      hard.push_back(random_number() < p[i]);
      w.push_back(i % 9 ? random_number() : 0);
      m.push_back((double)(1 + random_bits() % 9));
      narrow.push_back((float)p[i]);
      half.push_back((uint16_t)(random_bits() % 0x3C01));
      cell.push_back((ptrdiff_t)(random_bits() % CELLS));
      const double a = random_number() / 2, b = random_number() / 2;
      for (double each : {a, b, 1 - a - b}) p_rows.push_back(each);
      for (double each : {b, 1 - a - b, a}) y_rows.push_back(each);
    }
    upper = {0.1, 0.35, 0.5, 0.9, 2};  // bins of unequal width, found by a search in 4 cells
    starts = {0, 1, 2, 3, 4, 4};
  }
};

template <class T> Column column(const std::vector<T>& from, char kind, size_t classes = 1) {
  return {(const char*)from.data(), (ptrdiff_t)(classes * sizeof(T)), sizeof(T), kind};
}

void add_sums(const Level& level, Job job, Hash& hash) {
  for (bool lean : {false, true}) {
    job.lean = lean && !job.full();
    Table table(job);
    std::vector<double> totals(job.places() * job.slots());
    if (!level.sums(job, 0, job.rows, table.first, table.base.data(), totals.data())) puts("invalid");
    hash.add(totals.data(), totals.size());
  }
}

uint64_t hash_of(const Level& level, const Data& data) {
  Hash hash;
  for (size_t bins : {(size_t)10, (size_t)200, (size_t)3600, (size_t)0}) {  // 0 stands for unequal width
    Job job;
    job.rows = ROWS;
    job.tolerance = 1e-3;
    job.bins.count = bins ? bins : data.upper.size();
    job.bins.equal = bins;
    job.bins.inverse = 1 / (double)(bins ? bins : 1);
    if (!bins) job.bins.cells = 4, job.bins.starts = data.starts.data(), job.bins.upper = data.upper.data();
    for (const Column& p : {column(data.p, 'd'), column(data.narrow, 'f'), column(data.half, 'e')})
      for (const Column& y : {column(data.soft, 'd'), column(data.hard, 'd')})
        for (int kind = 0; kind < 4; kind++) {
          job.p = p, job.y = y;
          job.w = kind & 1 ? column(data.w, 'd') : Column{};
          job.m = kind & 2 ? column(data.m, 'd') : Column{};
          add_sums(level, job, hash);
        }
    job.w = job.m = Column{};
    job.cell = column(data.cell, 'q'), job.cells = CELLS;
    add_sums(level, job, hash);
    job.cell = Column{}, job.cells = 1, job.classes = CLASSES;
    job.p = column(data.p_rows, 'd', CLASSES), job.y = column(data.y_rows, 'd', CLASSES);
    add_sums(level, job, hash);
    std::vector<double> best(ROWS), mass(ROWS), nodes(1030);
    job.best = best.data(), job.mass = mass.data();
    if (!level.top(job, 0, ROWS)) puts("invalid");
    job.p = column(data.p, 'd'), job.y = column(data.soft, 'd'), job.classes = 1, job.bins.cells = nodes.size() - 6;
    if (!level.lattice(job, 0, ROWS, nodes.data())) puts("invalid");
    for (const auto* each : {&best, &mass, &nodes}) hash.add(each->data(), each->size());
  }
  return hash.value;
}

}  // namespace

int main() {
  const Data data;
  std::vector<const Level*> levels{&portable::level, &baseline::level};
#ifdef __x86_64__
  if (__builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma")) levels.push_back(&avx2::level);
#endif
  for (const Level* level : levels) printf("%016llx %s\n", (unsigned long long)hash_of(*level, data), level->name);
}
