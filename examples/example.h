// The frame of the examples: a program, what it is called with, and how its results are checked against plain loops.
#pragma once
#include <algorithm>
#include <cmath>
#include <cstdint>
#include <functional>
#include <initializer_list>
#include <string>
#include <variant>
#include <vector>

#include "tilewright/compile.h"
#include "tilewright/language.h"

namespace examples {

using tilewright::DType;
using tilewright::NDArray;

// Benchmark: the shapes of the table that `make demo` prints. Odd: shapes that divide nothing, static and dynamic. Gpu:
// shapes that fill a large GPU, in tiles for one (128 or 256 threads, shared memory within that of sm_90 and, where it
// can be, of sm_80).
enum class Size : uint8_t { Benchmark, Odd, Gpu };

// An array that is made when it is asked for: those of the GPU's shapes are gigabytes, and to list the cases must not
// cost that.
class LazyArray {
 public:
  // `fill` gets zeros and writes what differs.
  LazyArray(std::initializer_list<int64_t> shape, DType dtype, std::function<void(const NDArray&)> fill)
      : shape_(shape), dtype_(dtype), fill_(std::move(fill)) {}
  NDArray make() const;  // a new one each time, with the same elements
  void fill(const NDArray& array) const { fill_(array); }
  operator NDArray() const { return make(); }
  int64_t size() const;
  int64_t shape(int dim) const { return shape_[static_cast<size_t>(dim)]; }
  DType dtype() const { return dtype_; }

 private:
  std::vector<int64_t> shape_;
  DType dtype_;
  std::function<void(const NDArray&)> fill_;
};

// What compared elements say: the worst error relative to its bound, and the first element beyond its bound.
class Check {
 public:
  // `at` names the element, as in "C[3, 5]"; it is called only for the first bad one. Equal infinities agree; NaN
  // agrees with NaN only.
  template <class Name>
  void compare(double actual, double expected, double bound, const Name& at) {
    ++compared_;
    const bool same = actual == expected || (std::isnan(actual) && std::isnan(expected));
    const double error = same ? 0 : std::abs(actual - expected);
    if (error > max_error_) max_error_ = error;
    const double share = same ? 0 : error / bound;
    if (share > worst_share_) worst_share_ = share, bound_ = bound;
    if (!same && !(error <= bound) && first_bad_.empty()) report(actual, expected, bound, at());
  }
  bool ok() const { return first_bad_.empty() && compared_ > 0; }
  double max_error() const { return max_error_; }
  double bound() const { return bound_; }              // of the element whose error is the largest share of its bound
  double worst_share() const { return worst_share_; }  // that share
  int64_t compared() const { return compared_; }
  const std::string& first_bad() const { return first_bad_; }  // a sentence, empty if there is none
 private:
  void report(double actual, double expected, double bound, const std::string& at);
  double max_error_ = 0, worst_share_ = 0, bound_ = 0;
  int64_t compared_ = 0;
  std::string first_bad_;
};

// With whom a row is compared, by the rate of its operations or bytes.
struct Peer {
  enum class Kind : uint8_t {
    None,
    OpenBlasGemm,      // (m, k) x (k, n) in float32
    OpenBlasProducts,  // the products of an attention without what lies between: count times (m, k) x (k, n), (m, n) x
                       // (n, v)
    Copy,              // as many bytes, half read and half written
  } kind = Kind::None;
  int64_t m = 0, n = 0, k = 0, v = 0, count = 1;
  static Peer openblas(int64_t m, int64_t n, int64_t k) { return {Kind::OpenBlasGemm, m, n, k}; }
  static Peer openblas_products(int64_t m, int64_t n, int64_t k, int64_t v, int64_t count) {
    return {Kind::OpenBlasProducts, m, n, k, v, count};
  }
  static Peer copy() { return {Kind::Copy}; }
};

using CaseArgument = std::variant<LazyArray, int64_t, double>;

struct Case {
  std::string shape;
  tilewright::Program program;
  std::vector<CaseArgument> arguments;
  // Compares results with a reference; where they are many, a sample of about max_elements of them. The arrays are the
  // arguments in order, scalars left out.
  std::function<Check(const std::vector<NDArray>& arrays, int64_t max_elements)> check;
  bool elementwise = false;     // then all engines agree bit for bit
  bool any_order = false;       // the order of some results is free, and so not the same in two calls
  double flops = 0, bytes = 0;  // work of one call; bytes as the least that must move
  Peer peer = {};
  bool names_instructions = false;  // of a GPU, which may refuse it: they do not take every type and shape
};

struct Example {
  const char* name;
  const char* what;
  std::vector<Case> (*cases)(Size);
};
const std::vector<Example>& all_examples();

std::vector<NDArray> make_arrays(const Case& c);
// Runs on arrays made for it and gives them back.
std::vector<NDArray> run_case(const Case& c, const tilewright::Executable& executable);
// Calls with these arrays instead of the case's own.
void call_case(const Case& c, const tilewright::Executable& executable, const std::vector<NDArray>& arrays);

// ---- inputs

// Uniform in [low, high), the same for the same seed, rounded to the type.
LazyArray random_array(std::initializer_list<int64_t> shape, DType dtype, uint64_t seed, double low = -1,
                       double high = 1);
// What products multiply. A GPU is measured on normal numbers: the power it draws, and so its clock, depends on the
// bits.
enum class Data : uint8_t { Uniform, Normal };  // in [-1, 1); with mean 0 and deviation 1
LazyArray input_array(std::initializer_list<int64_t> shape, DType dtype, uint64_t seed, Data data);
// Filled with NaN (floats) or a pattern: results are written there, and what was forgotten shows.
LazyArray output_array(std::initializer_list<int64_t> shape, DType dtype);
// Calls `work(begin, end)` for parts of 0..total-1, on all cores; the parts begin at even numbers.
void for_each_part(int64_t total, const std::function<void(int64_t begin, int64_t end)>& work);

// ---- references

// The elements of a row-major array as doubles, decoded by the formats' definitions.
class Elements {
 public:
  explicit Elements(const NDArray& array);
  double operator[](int64_t i) const { return decode_(data_, i); }
  int64_t size() const { return size_; }

 private:
  double (*decode_)(const void* data, int64_t i);
  const void* data_;
  int64_t size_;
  NDArray keeps_;
};

// At most about max_elements of the indices 0..total-1, with the first and the last, spread without a pattern.
std::vector<int64_t> sample(int64_t total, int64_t max_elements);
// "C[3, 5]" from a row-major position.
std::string element_name(const std::string& array, std::initializer_list<int64_t> shape, int64_t position);
// Half the distance of neighbours at 1: the relative error of one rounding to nearest.
double unit_roundoff(DType dtype);
// One rounding of values of this size to the type, where it also covers the smallest (denormal) steps.
double rounding_error(DType dtype, double value);

}  // namespace examples
