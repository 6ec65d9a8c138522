// The table of `make demo`: twelve programs on the compiled engine, timed beside a peer. With --all every example at
// all its benchmark shapes, and on the interpreter at odd shapes. Fails if any result is beyond its bound.
#include <cblas.h>
#include <fmt/core.h>
#include <omp.h>

#include <chrono>
#include <cstring>
#include <thread>

#include "example.h"
#include "tilewright/diagnostic.h"

extern "C" void openblas_set_num_threads(int);

namespace examples {
namespace {

using Clock = std::chrono::steady_clock;

// Enough elements that every block of the benchmarks is looked at, few enough for references of plain loops.
constexpr int64_t checked_elements = 4096;

template <class Call>
double seconds_of(const Call& call) {
  const auto start = Clock::now();
  call();
  return std::chrono::duration<double>(Clock::now() - start).count();
}

double median(std::vector<double> values) {
  std::nth_element(values.begin(), values.begin() + static_cast<ptrdiff_t>(values.size() / 2), values.end());
  return values[values.size() / 2];
}

// What a row is compared with, called alternately with it.
class PeerRun {
 public:
  PeerRun(const Peer& peer, double bytes) : peer_(peer) {
    if (peer.kind == Peer::Kind::Copy) {
      a_.resize(static_cast<size_t>(bytes) / 8 + 1, 1.0f);
      c_.resize(a_.size());
    } else if (peer.kind != Peer::Kind::None) {
      a_.resize(static_cast<size_t>(peer.m * peer.k), 1.0f);
      b_.resize(static_cast<size_t>(peer.n * std::max(peer.k, peer.v)), 1.0f);
      c_.resize(static_cast<size_t>(peer.m * peer.n));
      d_.resize(static_cast<size_t>(peer.m * peer.v));
    }
  }
  bool present() const { return peer_.kind != Peer::Kind::None; }
  const char* name() const {
    switch (peer_.kind) {
      case Peer::Kind::Copy: return "copy";
      case Peer::Kind::OpenBlasGemm: return "OpenBLAS f32";
      case Peer::Kind::OpenBlasProducts: return "OpenBLAS f32, products only";
      case Peer::Kind::None: break;
    }
    return "";
  }
  // How many times the peer's rate a call with these operations or bytes has, if it takes `own` seconds.
  double ratio(const Case& c, double own, double other) const {
    if (peer_.kind == Peer::Kind::Copy) return other / own;
    const double inner = static_cast<double>(peer_.k + peer_.v), count = static_cast<double>(peer_.count);
    return c.flops / own / (2 * count * static_cast<double>(peer_.m * peer_.n) * inner / other);
  }
  void operator()() {
    if (peer_.kind == Peer::Kind::Copy) return copy();
    for (int64_t i = 0; i < peer_.count; ++i) {
      multiply(a_, b_, c_, peer_.m, peer_.n, peer_.k);
      if (peer_.v > 0) multiply(c_, b_, d_, peer_.m, peer_.v, peer_.n);
    }
  }
  // OpenBLAS' threads keep spinning for a while after a call, on the cores that the next call needs.
  void let_rest() const {
    if (peer_.kind != Peer::Kind::Copy) std::this_thread::sleep_for(std::chrono::milliseconds(20));
  }

 private:
  static void multiply(const std::vector<float>& a, const std::vector<float>& b, std::vector<float>& c, int64_t m,
                       int64_t n, int64_t k) {
    cblas_sgemm(CblasRowMajor, CblasNoTrans, CblasNoTrans, static_cast<int>(m), static_cast<int>(n),
                static_cast<int>(k), 1, a.data(), static_cast<int>(k), b.data(), static_cast<int>(n), 0, c.data(),
                static_cast<int>(n));
  }
  void copy() {
    const size_t parts = static_cast<size_t>(omp_get_max_threads()), share = (a_.size() + parts - 1) / parts;
#pragma omp parallel for schedule(static)
    for (size_t p = 0; p < parts; ++p) {
      const size_t begin = std::min(p * share, a_.size()), end = std::min(begin + share, a_.size());
      if (begin < end) std::memcpy(c_.data() + begin, a_.data() + begin, (end - begin) * sizeof(float));
    }
  }
  Peer peer_;
  std::vector<float> a_, b_, c_, d_;
};

struct Times {
  double own = 0, peer = 0;
};

// Medians of alternating calls: at least 3 of each, at most 30, about 0.3 s.
Times measure(const Case& c, const tilewright::Executable& executable, const std::vector<NDArray>& arrays,
              PeerRun& peer) {
  std::vector<double> own, other;
  const auto start = Clock::now();
  while (own.size() < 3 || (own.size() < 30 && Clock::now() - start < std::chrono::milliseconds(300))) {
    own.push_back(seconds_of([&] { call_case(c, executable, arrays); }));
    if (peer.present()) {
      other.push_back(seconds_of([&] { peer(); }));
      peer.let_rest();
    }
  }
  return {median(own), other.empty() ? 0 : median(other)};
}

std::string rate_of(const Case& c, double seconds) {
  // Below ten operations a byte the memory decides.
  if (c.peer.kind == Peer::Kind::Copy || c.flops < 10 * c.bytes)
    return fmt::format("{:7.1f} GB/s", c.bytes / seconds * 1e-9);
  return fmt::format("{:7.1f} GFLOP/s", c.flops / seconds * 1e-9);
}

class Table {
 public:
  Table() {
    fmt::print("{:<17} {:<40} {:<12} {:>9} {:>9}  {:>10}  {:>15}  {}\n", "program", "shape", "engine", "error",
               "of bound", "time", "rate", "against");
  }
  void benchmark(const Example& e, const Case& c, tilewright::Engine engine) {
    guarded(e, c, [&] {
      const auto executable = tilewright::compile(c.program, {.engine = engine});
      const std::vector<NDArray> arrays = run_case(c, executable);
      const Check check = c.check(arrays, checked_elements);
      PeerRun peer(engine == tilewright::Engine::Cpu ? c.peer : Peer{}, c.bytes);
      const Times times = engine == tilewright::Engine::Cpu
                              ? measure(c, executable, arrays, peer)
                              : Times{seconds_of([&] { call_case(c, executable, arrays); })};
      row(e, c.shape, executable.engine(), check, times.own, rate_of(c, times.own),
          peer.present() ? fmt::format("{:5.2f} x {}", peer.ratio(c, times.own, times.peer), peer.name()) : "");
      if (!check.ok()) wrong(e, c.shape, check);
    });
  }
  // All odd shapes of an example on the interpreter, as one row with the worst error.
  void odd_shapes(const Example& e) {
    const std::vector<Case> cases = e.cases(Size::Odd);
    Check worst;
    double seconds = 0;
    for (const Case& c : cases) {
      guarded(e, c, [&] {
        const auto executable = tilewright::compile(c.program, {.engine = tilewright::Engine::Interpreter});
        std::vector<NDArray> arrays;
        seconds += seconds_of([&] { arrays = run_case(c, executable); });
        const Check check = c.check(arrays, checked_elements);
        if (!check.ok()) wrong(e, c.shape, check);
        if (worst.compared() == 0 || check.worst_share() > worst.worst_share()) worst = check;
      });
    }
    row(e, fmt::format("{} odd shapes", cases.size()), "interpreter", worst, seconds, "", "");
  }
  int failures() const { return failures_; }
  int rows() const { return rows_; }

 private:
  template <class Body>
  void guarded(const Example& e, const Case& c, const Body& body) {
    try {
      body();
    } catch (const tilewright::Error& error) {
      ++failures_;
      fmt::print("{:<17} {:<40} FAILED\n{}\n", e.name, c.shape, error.what());
    }
  }
  void row(const Example& e, const std::string& shape, const std::string& engine, const Check& check, double seconds,
           const std::string& rate, const std::string& against) {
    ++rows_;
    const double percent = check.worst_share() * 100;
    fmt::print("{:<17} {:<40} {:<12} {:>9.1e} {:>9}  {:>7.2f} ms  {:>15}  {}\n", e.name, shape, engine,
               check.max_error(), percent < 1000 ? fmt::format("{:.1f}%", percent) : "beyond", seconds * 1e3, rate,
               against);
    std::fflush(stdout);
  }
  void wrong(const Example& e, const std::string& shape, const Check& check) {
    ++failures_;
    fmt::print("WRONG: {} {}: {}\n", e.name, shape,
               check.compared() == 0 ? std::string("nothing was compared") : check.first_bad());
  }
  int failures_ = 0, rows_ = 0;
};

void print_copy_bandwidth() {
  constexpr double bytes = 256e6;
  PeerRun copy(Peer::copy(), bytes);
  std::vector<double> seconds;
  for (int i = 0; i < 7; ++i) seconds.push_back(seconds_of([&] { copy(); }));
  fmt::print("{} cores; copying {} MB from one array to another: {:.1f} GB/s read and written\n", omp_get_max_threads(),
             bytes / 2e6, bytes / median(seconds) * 1e-9);
}

// What a newcomer sees, at the first of its benchmark shapes each.
const std::vector<std::string> kShown = {"gemm",    "int4_gemm", "convolution", "flash_attention",
                                         "softmax", "rms_norm",  "transpose",   "add",
                                         "cumsum",  "histogram", "topk_gate",   "per_token_cast"};

bool has(const std::vector<std::string>& names, const char* name) {
  return std::find(names.begin(), names.end(), name) != names.end();
}

void explain_columns() {
  fmt::print(
      "error: the largest; of bound: the largest share that an error has of what is allowed where it is (100% is the "
      "limit)\nagainst: how many times as fast as that peer, in the same minute\n");
}

struct Shown {
  std::vector<std::string> names;  // or all
  bool all_shapes = true, interpreter = false;
};

int run(const Shown& shown) {
  openblas_set_num_threads(omp_get_max_threads());
  const auto start = Clock::now();
  print_copy_bandwidth();
  Table table;
  for (const Example& e : all_examples()) {
    if (!shown.names.empty() && !has(shown.names, e.name)) continue;
    for (const Case& c : e.cases(Size::Benchmark)) {
      table.benchmark(e, c, tilewright::Engine::Cpu);
      if (shown.interpreter) table.benchmark(e, c, tilewright::Engine::Interpreter);
      if (!shown.all_shapes) break;
    }
    if (shown.all_shapes) table.odd_shapes(e);
  }
  explain_columns();
  fmt::print("{} rows, {} failures, {:.0f} s\n", table.rows(), table.failures(),
             std::chrono::duration<double>(Clock::now() - start).count());
  return table.failures() == 0 && table.rows() > 0 ? 0 : 1;
}

}  // namespace
}  // namespace examples

// demo [--all] [--interpreter] [name...]: twelve programs, or all, or the named ones. --interpreter also interprets the
// benchmark shapes.
int main(int count, char** arguments) {
  examples::Shown shown{{arguments + 1, arguments + count}};
  shown.interpreter = std::erase(shown.names, "--interpreter") > 0;
  const bool all = std::erase(shown.names, "--all") > 0;
  if (shown.names.empty() && !all) shown.names = examples::kShown, shown.all_shapes = false;
  return examples::run(shown);
}
