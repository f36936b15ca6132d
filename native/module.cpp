// softcal._native: the entry points, which validate the arguments from Python, and the threads.
#define Py_LIMITED_API 0x030B0000
#define PY_SSIZE_T_CLEAN
#include <Python.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstdlib>
#include <cstring>
#include <exception>
#include <memory>
#include <mutex>
#include <new>
#include <stdexcept>
#include <thread>
#include <vector>

#include "kernel.h"
#include "limits.h"
#include "table.h"

namespace portable { extern const Level level; }
namespace baseline { extern const Level level; }
namespace avx2 { extern const Level level; }

namespace {

// The instruction sets this machine can run, the fastest last.
const std::vector<const Level*>& levels() {
  static const std::vector<const Level*> found = [] {
    std::vector<const Level*> each{&portable::level};
#ifdef __GNUC__
    each.push_back(&baseline::level);
#ifdef __x86_64__
    __builtin_cpu_init();
    if (__builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma")) each.push_back(&avx2::level);
#endif
#endif
    return each;
  }();
  return found;
}

// How many rows a thread adds up at a time. Rounding depends on it, so it is the same everywhere.
size_t block_rows(size_t places) {
  const size_t rows = std::max({(size_t)1 << 14, std::min(32 * places, (size_t)1 << 17), 2 * places});
  return (rows + CHUNK - 1) / CHUNK * CHUNK;
}

// Runs blocks of rows in threads, and adds their sums to the totals in the order of the rows. `make`
// returns what a thread needs: run(start, stop, own) adds the rows of a block to `own`, and returns false
// if a value is invalid.
template <class Make> bool in_order(size_t rows, size_t block, size_t threads, double* total, size_t size, Make make) {
  if (rows <= block) return make()(0, rows, total);
  Zeros lost(size);
  std::atomic<size_t> next{0};
  std::atomic<bool> valid{true}, memory{true};
  std::mutex lock;
  std::condition_variable turn;
  size_t joined = 0;
  const auto work = [&] {
    try {
      Zeros own(size);
      auto run = make();
      for (size_t k; valid && (k = next++) * block < rows;) {
        const bool good = run(k * block, std::min(rows, (k + 1) * block), own.get());
        std::unique_lock<std::mutex> held(lock);
        turn.wait(held, [&] { return joined == k || !valid; });
        if (!good) valid = false;
        // Kahan summation: the rounding error of one block is added with the next block.
        for (size_t i = 0; i < size; i++) {
          const double addend = own[i] - lost[i], longer = total[i] + addend;
          lost[i] = (longer - total[i]) - addend;
          total[i] = longer;
          own[i] = 0;
        }
        joined++;
        turn.notify_all();
      }
    } catch (const std::bad_alloc&) {
      std::lock_guard<std::mutex> held(lock);
      valid = memory = false;
      turn.notify_all();
    }
  };
  std::vector<std::thread> others;
  for (size_t t = 1; t < threads && t * block < rows; t++) {
    try { others.emplace_back(work); } catch (const std::exception&) { break; }  // no more threads available: continue with fewer
  }
  work();
  for (auto& other : others) other.join();
  if (!memory) throw std::bad_alloc();
  return valid;
}

// Arguments

struct Wrong : std::invalid_argument { using invalid_argument::invalid_argument; };
struct Raised {};  // the Python error is already set
void require(bool holds, const char* rule) { if (!holds) throw Wrong(rule); }

template <class T> bool aligned(const T* data) { return (uintptr_t)data % alignof(T) == 0; }

struct View {
  Py_buffer buffer;
  bool held = false;
  View() = default;
  View(const View&) = delete;
  View& operator=(const View&) = delete;
  ~View() { if (held) PyBuffer_Release(&buffer); }
  void take(PyObject* from, int flags) {
    if (PyObject_GetBuffer(from, &buffer, flags)) throw Raised();
    held = true;
    require(!buffer.ndim || buffer.shape, "columns must have a shape");
  }
  ptrdiff_t stride(int axis) const {  // some exporters, such as ctypes, give none for contiguous memory
    if (buffer.strides) return buffer.strides[axis];
    ptrdiff_t bytes = buffer.itemsize;
    for (int k = buffer.ndim - 1; k > axis; k--) bytes *= buffer.shape[k];
    return bytes;
  }
  char kind() const {  // one letter; for integers it includes the size
    const char* format = buffer.format ? buffer.format : "B";
    const uint16_t probe = 1;
    const char own_order = *(const char*)&probe ? '<' : '>';
    if (*format == '@' || *format == '=' || *format == '^' || *format == own_order) format++;
    require(format[0] && !format[1], "columns must be of numbers in the byte order of this machine");
    const char* known = strchr("?bBhHiIlLqQnNefd", *format);
    require(known, "columns must be of real numbers");
    if (strchr("efd", *format)) {
      require(buffer.itemsize == (*format == 'e' ? 2 : *format == 'f' ? 4 : 8), "columns must have items of the usual size");
      return *format;
    }
    const bool is_signed = strchr("bhilqn", *format);
    switch (buffer.itemsize) {
      case 1: return is_signed ? 'b' : 'B';
      case 2: return is_signed ? 'h' : 'H';
      case 4: return is_signed ? 'i' : 'I';
      default: require(buffer.itemsize == 8, "columns must have items of the usual size"); return is_signed ? 'q' : 'Q';
    }
  }
  Column column(PyObject* from, size_t rows, size_t classes, int dimensions) {
    take(from, PyBUF_FORMAT | PyBUF_STRIDES);
    require(buffer.ndim == dimensions, "columns must have one dimension, or two for classes");
    require((size_t)buffer.shape[0] == rows && (dimensions == 1 || (size_t)buffer.shape[1] == classes), "columns must have the same shape");
    const ptrdiff_t column = dimensions == 2 ? stride(1) : classes == 1 ? stride(0) : 0;
    return {(const char*)buffer.buf, stride(0), column, kind()};
  }
  double* doubles(PyObject* to, size_t size, bool written) {
    take(to, PyBUF_FORMAT | PyBUF_C_CONTIGUOUS | (written ? PyBUF_WRITABLE : 0));
    require(kind() == 'd' && (size_t)buffer.len == size * sizeof(double) && aligned((double*)buffer.buf), "arrays of sums must be contiguous float64 of the right size");
    return (double*)buffer.buf;
  }
};

size_t size_of(PyObject* column) {
  const Py_ssize_t size = PyObject_Size(column);
  if (size < 0) throw Raised();
  return (size_t)size;
}

size_t whole(PyObject* from) {
  const size_t value = PyLong_AsSize_t(from);
  if (PyErr_Occurred()) throw Raised();
  return value;
}

const Level& level_of(PyObject* const* arguments, Py_ssize_t count, Py_ssize_t at) {
  if (count <= at) return *levels().back();
  const size_t chosen = whole(arguments[at]);
  require(chosen < levels().size(), "there is no such level");
  return *levels()[chosen];
}

struct Rows {  // p, y, and the optional weights and votes of each row
  View p, y, w, m;
  Job job;
  void take(PyObject* const* a, bool weights_and_votes) {
    p.take(a[0], PyBUF_FORMAT | PyBUF_STRIDES);
    const int dimensions = p.buffer.ndim;
    require(dimensions == 1 || dimensions == 2, "columns must have one dimension, or two for classes");
    job.rows = (size_t)p.buffer.shape[0];
    job.classes = dimensions == 2 ? (size_t)p.buffer.shape[1] : 1;
    require(job.classes > 0, "there must be a class");
    job.p = {(const char*)p.buffer.buf, p.stride(0), p.stride(dimensions - 1), p.kind()};
    job.y = y.column(a[1], job.rows, job.classes, dimensions);
    if (weights_and_votes && a[2] != Py_None) job.w = w.column(a[2], job.rows, job.classes, 1);
    if (weights_and_votes && a[3] != Py_None) job.m = m.column(a[3], job.rows, job.classes, 1);
  }
};

template <class Run> bool without_gil(size_t values, Run run) {
  if (values <= 1 << 14) return run();  // faster than releasing the lock
  bool valid = false;
  std::exception_ptr failed;
  PyThreadState* state = PyEval_SaveThread();
  try { valid = run(); } catch (...) { failed = std::current_exception(); }
  // While the interpreter exits, Python before 3.14 ends a daemon thread here. glibc does so by unwinding the
  // stack, which would release buffers without the lock. Wait for the end of the process instead, as 3.14 does.
  try { PyEval_RestoreThread(state); } catch (...) { for (;;) std::this_thread::sleep_for(std::chrono::hours(1)); }
  if (failed) std::rethrow_exception(failed);
  return valid;
}

template <class Body> PyObject* guarded(Body body) {
  try {
    return PyBool_FromLong(body());
  } catch (const Raised&) {
  } catch (const Wrong& wrong) {
    PyErr_SetString(PyExc_ValueError, wrong.what());
  } catch (const std::bad_alloc&) {
    PyErr_NoMemory();
  } catch (const std::exception& error) {
    PyErr_SetString(PyExc_RuntimeError, error.what());
  }
  return nullptr;
}

// Writes the slots of rows.h in the order of `softcal.table.kernel.Sums`, or only the weights and the
// residuals; -1 stands for a sum of 0.
void write_sums(const Job& job, const double* totals, size_t lines, double* out) {
  const bool w = job.w.data, m = job.m.data;
  int order[18] = {4, w ? 8 : 4, w ? 9 : 4, 5, 0, 1, w ? 10 : 1, 2, 3,
                   m ? 12 : -1, m ? 13 : -1, m ? 14 : -1, m ? 15 : -1,
                   6, 7, w ? 11 : 7, m ? -1 : 12, m ? -1 : 13};
  if (lines == 2) order[0] = job.lean ? 1 : order[1], order[1] = 0;
  for (size_t table = 0; table < job.classes * job.cells; table++, totals += job.bins.count * job.slots())
    for (size_t line = 0; line < lines; line++)
      for (size_t b = 0; b < job.bins.count; b++) *out++ = order[line] < 0 ? 0 : totals[b * job.slots() + (size_t)order[line]];
}

PyObject* sums(PyObject*, PyObject* const* a, Py_ssize_t count) {
  return guarded([&] {
    require(count == 14 || count == 15, "sums takes p, y, w, m, cell, equal, first, starts, upper, tolerance, tables, lines, out, threads and a level");
    const Level& level = level_of(a, count, 14);
    Rows rows;
    View cell, starts, upper, out;
    rows.take(a, true);
    Job& job = rows.job;
    job.tolerance = PyFloat_AsDouble(a[9]);
    if (PyErr_Occurred()) throw Raised();
    const size_t tables = whole(a[10]), threads = whole(a[13]);
    if (a[4] != Py_None) {
      job.cell = cell.column(a[4], job.rows, 1, 1);
      require(job.cell.kind == (sizeof(ptrdiff_t) == 8 ? 'q' : 'i') && job.classes == 1, "cells must be of type intp, and there are no classes then");
      job.cells = tables;
      for (size_t i = 0; i < job.rows; i++) {
        ptrdiff_t number;
        memcpy(&number, job.cell.data + (ptrdiff_t)i * job.cell.row, sizeof number);
        require((size_t)number < tables, "cells must be numbered from 0");
      }
    }
    require(tables > 0 && tables == job.classes * job.cells, "tables must be the number of classes, or of cells");
    Bins& bins = job.bins;
    bins.equal = whole(a[5]);
    bins.inverse = 1 / (double)std::max<size_t>(bins.equal, 1);
    bins.first = whole(a[6]);
    require(bins.equal <= 1 << 20, "there must be at most 2^20 bins");
    bins.count = bins.equal;
    if (a[7] != Py_None) {
      starts.take(a[7], PyBUF_FORMAT | PyBUF_C_CONTIGUOUS);
      require(starts.kind() == (sizeof(ptrdiff_t) == 8 ? 'q' : 'i') && starts.buffer.ndim == 1 && starts.buffer.shape[0] > 2, "starts must be a column of type intp");
      upper.take(a[8], PyBUF_FORMAT | PyBUF_C_CONTIGUOUS);
      require(upper.kind() == 'd' && upper.buffer.ndim == 1, "upper must be a column of float64");
      bins.cells = (size_t)starts.buffer.shape[0] - 2;
      bins.starts = (const ptrdiff_t*)starts.buffer.buf;
      bins.upper = (const double*)upper.buffer.buf;
      bins.count = (size_t)upper.buffer.shape[0];
      require(aligned(bins.starts) && aligned(bins.upper), "starts and upper must be aligned");
      require(bins.count > 0 && bins.upper[bins.count - 1] > 1, "there must be bins, of which the last ends above 1");
    }
    require(bins.equal <= bins.count && bins.first <= bins.count - bins.equal, "there must be no more equal bins than bins");
    require(bins.count > 0 && tables <= ((size_t)1 << 27) / bins.count, "there must be bins, and not too many");
    const size_t lines = whole(a[11]);
    require(lines == 18 || lines == 2, "there must be 18 sums, or the 2 of weights and residuals");
    double* written = out.doubles(a[12], job.places() * lines, true);
    job.lean = lines == 2 && !job.w.data && !job.m.data;
    Zeros totals(job.places() * job.slots());
    const bool valid = without_gil(job.rows * job.classes, [&] {
      return in_order(job.rows, block_rows(job.places()), threads, totals.get(), job.places() * job.slots(), [&] {
        return [&, table = std::make_unique<Table>(job)](size_t start, size_t stop, double* own) {
          return level.sums(job, start, stop, table->first, table->base.data(), own);
        };
      });
    });
    if (valid) write_sums(job, totals.get(), lines, written);
    return valid;
  });
}

PyObject* lattice(PyObject*, PyObject* const* a, Py_ssize_t count) {
  return guarded([&] {
    require(count == 6 || count == 7, "lattice takes p, y, w, cells, nodes, threads and a level");
    const Level& level = level_of(a, count, 6);
    PyObject* const columns[4] = {a[0], a[1], a[2], Py_None};
    Rows rows;
    View nodes;
    rows.take(columns, true);
    require(rows.p.buffer.ndim == 1, "columns must have one dimension");
    const size_t cells = whole(a[3]), size = size_of(a[4]);
    require(cells > 0 && size > 6 && size - 6 == cells, "there must be six more nodes than cells");
    double* total = nodes.doubles(a[4], size, true);
    rows.job.bins.cells = cells;
    const size_t threads = whole(a[5]);
    return without_gil(rows.job.rows, [&] {
      return in_order(rows.job.rows, block_rows(0), threads, total, size, [&] {
        return [&](size_t start, size_t stop, double* own) { return level.lattice(rows.job, start, stop, own); };
      });
    });
  });
}

PyObject* top(PyObject*, PyObject* const* a, Py_ssize_t count) {
  return guarded([&] {
    require(count == 6 || count == 7, "top takes p, y, tolerance, best, mass, threads and a level");
    const Level& level = level_of(a, count, 6);
    Rows rows;
    View best, mass;
    rows.take(a, false);
    Job& job = rows.job;
    job.tolerance = PyFloat_AsDouble(a[2]);
    if (PyErr_Occurred()) throw Raised();
    job.best = best.doubles(a[3], job.rows, true);
    job.mass = mass.doubles(a[4], job.rows, true);
    const size_t threads = whole(a[5]);
    return without_gil(job.rows * job.classes, [&] {
      return in_order(job.rows, block_rows(0), threads, nullptr, 0, [&] {
        return [&](size_t start, size_t stop, double*) { return level.top(job, start, stop); };
      });
    });
  });
}

PyObject* limits_of(PyObject*, PyObject* const* a, Py_ssize_t count) {
  return guarded([&] {
    require(count == 17, "limits takes 12 sums of each bin, rows, ways, method, grid and out");
    View ways, method, grid, out;
    const size_t bins = size_of(a[0]);
    const std::unique_ptr<double[]> copy(new double[12 * bins]);  // the sums may be slices
    limits::Table table;
    for (size_t k = 0; k < 12; k++) {
      View view;
      const Column line = view.column(a[k], bins, 1, 1);
      require(line.kind == 'd', "sums must be of type float64");
      for (size_t b = 0; b < bins; b++) memcpy(&copy[k * bins + b], line.data + (ptrdiff_t)b * line.row, sizeof(double));
      table.sums[k] = &copy[k * bins];
    }
    const double rows = PyFloat_AsDouble(a[12]);
    if (PyErr_Occurred()) throw Raised();
    const size_t numbers = size_of(a[13]), points = size_of(a[15]) / 2;
    const double* pairs = ways.doubles(a[13], numbers, false);
    require(bins > 0 && points > 1 && numbers % 2 == 0, "there must be bins, a grid, and ways in pairs");
    for (size_t k = 2; k < numbers; k += 2) require(pairs[k] >= 1 && pairs[k] <= (double)bins, "ways must have no more parts than bins");
    limits::Method constants;
    memcpy(&constants, method.doubles(a[14], sizeof constants / sizeof(double), false), sizeof constants);
    const double* mean = grid.doubles(a[15], 2 * points, false);
    double* written = out.doubles(a[16], sizeof(limits::Found) / sizeof(double), true);
    const limits::Found found = limits::of(table, bins, rows, pairs, numbers / 2, constants, {mean, mean + points, points});
    memcpy(written, &found, sizeof found);
    return true;
  });
}

PyObject* level_names(PyObject*, PyObject*) {
  PyObject* names = PyList_New(0);
  for (const Level* level : levels()) {
    PyObject* name = names ? PyUnicode_FromString(level->name) : nullptr;
    if (!name || PyList_Append(names, name)) Py_CLEAR(names);
    Py_XDECREF(name);
  }
  return names;
}

PyMethodDef methods[] = {
    {"sums", (PyCFunction)(void (*)(void))sums, METH_FASTCALL, "Add up the rows (or residuals) of each bin; return False if a value is invalid."},
    {"lattice", (PyCFunction)(void (*)(void))lattice, METH_FASTCALL, "Split each residual between the two nodes next to its prediction."},
    {"top", (PyCFunction)(void (*)(void))top, METH_FASTCALL, "Write the highest probability of each row and the label's mass there."},
    {"limits", (PyCFunction)(void (*)(void))limits_of, METH_FASTCALL, "Write the limits of SMECE of one table, and the sums of all its bins."},
    {"levels", level_names, METH_NOARGS, "List the instruction sets this machine can run, the fastest last."},
    {nullptr, nullptr, 0, nullptr}};
PyModuleDef_Slot slots[] = {{0, nullptr}};
PyModuleDef definition = {PyModuleDef_HEAD_INIT, "softcal._native", nullptr, 0, methods, slots, nullptr, nullptr, nullptr};

}  // namespace

PyMODINIT_FUNC PyInit__native(void) { return PyModuleDef_Init(&definition); }
