#include "gemm_sweep.h"

#include <fmt/core.h>

#include <charconv>
#include <chrono>
#include <cmath>
#include <stdexcept>

#include "compare.h"
#include "example.h"
#include "rates.h"
#include "tilewright/cuda.h"
#include "tilewright/diagnostic.h"

namespace bench::gpu {
namespace {

using namespace tilewright;
using examples::Elements;

constexpr Device kDevice{2, 0};
constexpr int64_t kSampledElements = 2048;

DType sum_type(const Product& p) { return p.input == i8 ? i32 : p.input == f64 ? f64 : f32; }

// C = op(A) * op(B), as the examples write it, for any order in memory and any types.
Program product_program(const Product& p, const GemmTiles& t) {
  const bool ta = p.transpose_a, tb = p.transpose_b;
  Tensor A("A", {ta ? p.k : p.m, ta ? p.m : p.k}, p.input), B("B", {tb ? p.n : p.k, tb ? p.k : p.n}, p.input);
  Tensor C("C", {p.m, p.n}, p.output);
  return prim_func("product", {A, B, C}, [&] {
    for (auto [bx, by] : Kernel({ceildiv(p.n, t.n), ceildiv(p.m, t.m)}, {.threads = t.threads})) {
      auto A_shared = alloc_shared({ta ? t.k : t.m, ta ? t.m : t.k}, p.input);
      auto B_shared = alloc_shared({tb ? t.n : t.k, tb ? t.k : t.n}, p.input);
      auto C_local = alloc_fragment({t.m, t.n}, sum_type(p));
      use_swizzle(10);
      clear(C_local);
      for (auto k : Pipelined(ceildiv(p.k, t.k), {.num_stages = t.stages})) {
        copy(ta ? A(k * t.k, by * t.m) : A(by * t.m, k * t.k), A_shared);
        copy(tb ? B(bx * t.n, k * t.k) : B(k * t.k, bx * t.n), B_shared);
        gemm(A_shared, B_shared, C_local, {.transpose_A = ta, .transpose_B = tb});
      }
      copy(C_local, C(by * t.m, bx * t.n));
    }
  });
}

std::vector<std::string> split(const std::string& text, char at) {
  std::vector<std::string> out(1);
  for (const char c : text)
    if (c == at)
      out.emplace_back();
    else
      out.back() += c;
  return out;
}

int64_t number(const std::string& text, const std::string& all) {
  int64_t value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || end != text.data() + text.size() || value <= 0)
    throw std::invalid_argument(fmt::format("'{}' in '{}' is no positive number", text, all));
  return value;
}

std::array<int64_t, 3> three(const std::string& text, const std::string& all) {
  const std::vector<std::string> parts = split(text, 'x');
  if (parts.size() != 3) throw std::invalid_argument(fmt::format("'{}' is not M x N x K", all));
  return {number(parts[0], all), number(parts[1], all), number(parts[2], all)};
}

examples::LazyArray operand(std::initializer_list<int64_t> shape, DType type, uint64_t seed) {
  if (type.is_int()) return examples::random_array(shape, type, seed, -128, 128);
  return examples::input_array(shape, type, seed, examples::Data::Normal);
}

struct Operands {
  NDArray a, b;  // of the processor
  NDArray device_a, device_b;
  explicit Operands(const Product& p)
      : a(operand({p.transpose_a ? p.k : p.m, p.transpose_a ? p.m : p.k}, p.input, 1)),
        b(operand({p.transpose_b ? p.n : p.k, p.transpose_b ? p.k : p.n}, p.input, 2)),
        device_a(a.to(kDevice)),
        device_b(b.to(kDevice)) {}
};

// Against plain loops in double.
Agreement check_sample(const Product& p, const Operands& o, const GemmBound& bound, const NDArray& result) {
  const Elements a(o.a), b(o.b), c(result);
  examples::Check check;
  for (const int64_t at : examples::sample(p.m * p.n, kSampledElements)) {
    const int64_t i = at / p.n, j = at % p.n;
    double sum = 0;
    for (int64_t k = 0; k < p.k; ++k)
      sum += a[p.transpose_a ? k * p.m + i : i * p.k + k] * b[p.transpose_b ? j * p.k + k : k * p.n + j];
    check.compare(c[at], sum, bound(at, sum), [&] { return examples::element_name("C", {p.m, p.n}, at); });
  }
  Agreement out;
  out.elements = check.compared(), out.share = check.worst_share(), out.first_bad = check.first_bad();
  return out;
}

// One product: its operands, the peers, and what a right result is.
class Arena {
 public:
  Arena(const Product& p, const Blas* blas) : product_(p), operands_(p), bound_(p, operands_.a, operands_.b) {
    if (!blas) return;
    const NDArray result = output();
    const auto add = [&](const std::string& name, auto call) {
      try {
        call();
        peers_.push_back({name, call});
        if (reference_.is_null()) reference_ = result.to({}), reference_name_ = name;
      } catch (const std::exception& e) {
        peer_problems_ += fmt::format("{}: {}; ", name, e.what());
      }
    };
    if (Blas::has(p))
      add("cuBLAS", [=, this] { blas->gemm(product_, operands_.device_a, operands_.device_b, result); });
    for (const bool fast : {false, true}) {
      if (fast && !p.input.is_float8()) continue;
      const auto plan = blas->plan(p, {.fast_accumulation = fast});
      if (!plan) continue;
      add(fast ? "cuBLASLt, fast sums" : "cuBLASLt",
          [=, this] { blas->run(*plan, operands_.device_a, operands_.device_b, result); });
    }
  }
  Arena(const Arena&) = delete;

  NDArray output() const {
    return NDArray(examples::output_array({product_.m, product_.n}, product_.output)).to(kDevice);
  }
  const Operands& operands() const { return operands_; }
  const std::vector<Contestant>& peers() const { return peers_; }
  const std::string& peer_problems() const { return peer_problems_; }
  const std::string& reference() const { return reference_name_; }

  // All elements against the peer's, or a sample against plain loops where there is no peer.
  Agreement check(const NDArray& result) const {
    return reference_.is_null()
               ? check_sample(product_, operands_, bound_, result)
               : compare_elements(result, reference_, [this](int64_t i, double want) { return bound_(i, want); });
  }
  // Whether the peer was called as we mean it.
  Agreement check_reference() const { return check_sample(product_, operands_, bound_, reference_); }

 private:
  Product product_;
  Operands operands_;
  GemmBound bound_;
  std::vector<Contestant> peers_;
  NDArray reference_;
  std::string reference_name_, peer_problems_;
};

struct Entry {
  Json json;
  Contestant contestant;
};

// Compiled, run once and checked; the contestant is empty where that failed.
Entry enter(const Arena& arena, const Product& p, const GemmTiles& tiles, int& failures) {
  Entry e;
  e.json = {{"tiles", tiles.text()}};
  try {
    const auto start = std::chrono::steady_clock::now();
    const Executable kernel = compile(product_program(p, tiles), {.engine = Engine::Cuda});
    e.json["compile_ms"] = std::chrono::duration<double, std::milli>(std::chrono::steady_clock::now() - start).count();
    const NDArray result = arena.output();
    const auto call = [kernel, &o = arena.operands(), result] { kernel(o.device_a, o.device_b, result); };
    call();
    const Agreement agreement = arena.check(result.to({}));
    e.json["of_bound"] = agreement.share, e.json["error_norm"] = agreement.norm;
    e.json["same_bits"] = agreement.same_bits;
    if (agreement.ok())
      e.contestant = {tiles.text(), call};
    else
      e.json["bad"] = agreement.first_bad, ++failures;
  } catch (const CompileError& error) {
    e.json["refused"] = error.what();
  } catch (const std::exception& error) {
    e.json["bad"] = error.what(), ++failures;
  }
  return e;
}

void print(const Json& row) {
  std::string line = fmt::format("{:<9} {:<17} {:<24}", row["form"].get<std::string>(), row["shape"].get<std::string>(),
                                 row["tiles"].get<std::string>());
  if (row.contains("burst"))
    line += fmt::format(" {:>7.1f} {:>7.1f} TFLOP/s", row["burst"]["tflops"].get<double>(),
                        row["sustained"]["tflops"].get<double>());
  if (row.contains("of_bound")) line += fmt::format("  {:>5.1f}% of bound", row["of_bound"].get<double>() * 100);
  if (row.contains("ratios"))
    for (const auto& [peer, ratio] : row["ratios"].items())
      line += fmt::format("  {:.3f} {:.3f} x {}", ratio["burst"].get<double>(), ratio["sustained"].get<double>(), peer);
  for (const char* key : {"bad", "refused"})
    if (row.contains(key)) line += "  " + row[key].get<std::string>().substr(0, 200);
  fmt::print("{}\n", line);
  std::fflush(stdout);
}

void sweep_product(const std::string& form, const std::string& shape, const std::vector<GemmTiles>& tiles,
                   const Blas* blas, int turns, Json& rows, int& failures) {
  const Product p = product_of(form, shape);
  const Arena arena(p, blas);
  std::vector<Entry> entries;
  for (const GemmTiles& t : tiles) entries.push_back(enter(arena, p, t, failures));
  for (const Contestant& c : arena.peers()) entries.push_back({{{"tiles", c.name}}, c});
  std::vector<Contestant> contestants;
  for (const Entry& e : entries)
    if (e.contestant.call) contestants.push_back(e.contestant);
  const std::vector<Times> times = contestants.empty() ? std::vector<Times>() : race(contestants, turns);
  const double elements = static_cast<double>(p.m * p.k + p.k * p.n), results = static_cast<double>(p.m * p.n);
  const Work work{2.0 * results * static_cast<double>(p.k),
                  (elements * p.input.storage_bits() + results * p.output.storage_bits()) / 8};
  const size_t first_peer = contestants.size() - arena.peers().size();
  size_t next = 0;
  for (Entry& e : entries) {
    Json row = {{"form", form}, {"shape", shape}};
    row.update(e.json);
    if (e.contestant.call) {
      const size_t at = next++;
      row.update(json_of(times[at], work));
      for (size_t i = first_peer; i < contestants.size() && at < first_peer; ++i)
        row["ratios"][contestants[i].name] = {{"burst", times[i].burst / times[at].burst},
                                              {"sustained", times[i].sustained / times[at].sustained}};
    }
    print(row);
    rows.push_back(std::move(row));
  }
  if (arena.reference().empty()) {
    if (blas) fmt::print("{} {}: no peer: {}\n", form, shape, arena.peer_problems());
    return;
  }
  if (const Agreement peer = arena.check_reference(); !peer.ok()) {
    fmt::print("FAIL {} {}: {} itself: {}\n", form, shape, arena.reference(), peer.first_bad);
    ++failures;
  }
}

}  // namespace

GemmTiles GemmTiles::parse(const std::string& text) {
  const std::vector<std::string> parts = split(text, ':');
  if (parts.size() > 3) throw std::invalid_argument(fmt::format("'{}' is not MxNxK:stages:threads", text));
  const auto [m, n, k] = three(parts[0], text);
  GemmTiles t{m, n, k};
  if (parts.size() > 1) t.stages = number(parts[1], text);
  if (parts.size() > 2) t.threads = number(parts[2], text);
  return t;
}

std::string GemmTiles::text() const { return fmt::format("{}x{}x{}:{}:{}", m, n, k, stages, threads); }

Product product_of(const std::string& form, const std::string& shape) {
  const std::vector<std::string> parts = split(form, ':');
  const std::string order = parts.size() == 2 ? parts[1] : "";
  const bool is_order = order.size() == 2 && order.find_first_not_of("nt") == std::string::npos;
  const auto input = tilewright::parse_dtype(parts[0]);
  if (!is_order || !input) throw std::invalid_argument(fmt::format("'{}' is not TYPE:nn, :nt, :tn or :tt", form));
  const auto [m, n, k] = three(shape, shape);
  const DType output = input->is_float8() ? bf16 : *input == i8 ? i32 : *input == tf32 ? f32 : *input;
  return {m, n, k, *input, output, order[0] == 't', order[1] == 't'};
}

GemmBound::GemmBound(const Product& p, const NDArray& a, const NDArray& b) : product_(p) {
  if (p.output.is_int()) return;
  const auto norms = [&](const NDArray& array, bool along_rows, int64_t lines) {
    const Elements x(array);
    const int64_t columns = array.shape(1);
    std::vector<double> out(static_cast<size_t>(lines));
#pragma omp parallel for schedule(static)
    for (int64_t line = 0; line < lines; ++line) {
      double sum = 0;
      for (int64_t k = 0; k < p.k; ++k) {
        const double v = along_rows ? x[line * columns + k] : x[k * columns + line];
        sum += v * v;
      }
      out[static_cast<size_t>(line)] = std::sqrt(sum);
    }
    return out;
  };
  rows_ = norms(a, !p.transpose_a, p.m), columns_ = norms(b, p.transpose_b, p.n);
  // Products that a matrix unit adds in one step (PTX, the k of mma and wgmma): 32 bytes of each operand.
  const bool in_units = p.input.storage_bits() <= 16 || p.input == tf32;
  const double depth = in_units ? 256.0 / p.input.storage_bits() : 1;
  const double u = p.input == f64 ? 0x1p-53 : p.input.is_float8() ? 0x1p-13 : 0x1p-23, k = static_cast<double>(p.k);
  sums_ = 8 * (k / depth * u + (p.input == tf32 ? 0x1p-10 : 0)) / std::sqrt(k);
}

double GemmBound::operator()(int64_t i, double want) const {
  if (product_.output.is_int()) return 0;
  const double sums =
      sums_ * rows_[static_cast<size_t>(i / product_.n)] * columns_[static_cast<size_t>(i % product_.n)];
  return sums + 2 * examples::rounding_error(product_.output, std::abs(want) + sums);
}

nlohmann::ordered_json sweep(const GemmSweep& what, const Blas* blas, int turns, int& failures) {
  std::vector<GemmTiles> tiles;
  for (const std::string& t : what.tiles) tiles.push_back(GemmTiles::parse(t));
  for (const std::string& form : what.forms)
    for (const std::string& shape : what.shapes) product_of(form, shape);  // mistakes first
  Json rows = Json::array();
  for (const std::string& form : what.forms)
    for (const std::string& shape : what.shapes) {
      try {
        sweep_product(form, shape, tiles, blas, turns, rows, failures);
      } catch (const std::exception& e) {
        fmt::print("FAIL {} {}: {}\n", form, shape, e.what());
        rows.push_back({{"form", form}, {"shape", shape}, {"bad", e.what()}});
        ++failures;
      }
    }
  return rows;
}

}  // namespace bench::gpu
