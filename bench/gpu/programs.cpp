#include "programs.h"

#include <fmt/core.h>

#include <chrono>

#include "codegen/cuda_functions.h"
#include "compare.h"
#include "driver/arguments.h"
#include "driver/explain.h"
#include "driver/hand_in_plan.h"
#include "example.h"
#include "tilewright/cuda.h"
#include "tilewright/diagnostic.h"

namespace bench::gpu {
namespace {

using examples::Case;
using examples::Example;
using tilewright::Engine;
using tilewright::Executable;
using tilewright::NDArray;

constexpr tilewright::Device kDevice{2, 0};
constexpr int64_t kSampledElements = 1 << 12;
constexpr double kLargestCopy = 4e9;
constexpr size_t kMostPlans = 16;  // of a launch: more than there are lines

using Clock = std::chrono::steady_clock;
double milliseconds_since(Clock::time_point start) {
  return std::chrono::duration<double, std::milli>(Clock::now() - start).count();
}

struct Row {
  Json json;
  bool ok = true;
  void fail(const std::string& why) {
    ok = false;
    if (!json.contains("bad")) json["bad"] = why;
  }
};

std::vector<NDArray> to_device(const std::vector<NDArray>& host) {
  std::vector<NDArray> out;
  for (const NDArray& a : host) out.push_back(a.to(kDevice));
  return out;
}

std::vector<NDArray> to_host(const std::vector<NDArray>& device) {
  std::vector<NDArray> out;
  for (const NDArray& a : device) out.push_back(a.to({}));
  return out;
}

void check_sample(const Case& c, const std::vector<NDArray>& got, int64_t elements, Row& row) {
  const examples::Check check = c.check(got, elements);
  row.json["error"] = check.max_error(), row.json["of_bound"] = check.worst_share();
  if (!check.ok()) row.fail(check.compared() == 0 ? "nothing was compared" : check.first_bad());
}

// Whether the device's bits are those of every other engine.
bool bit_for_bit(const Case& c) {
  return c.elementwise && tilewright::codegen::device_units(c.program.box().program) == 0;
}

// Of every array, arguments that are only read among them.
void compare_all(const Case& c, const std::vector<NDArray>& got, const std::vector<NDArray>& want, Row& row) {
  double worst = 0;
  bool same = true;
  for (size_t i = 0; i < got.size(); ++i) {
    const double allowed = bit_for_bit(c) ? 0 : allowed_difference(got[i].dtype(), got[0].dtype());
    const Agreement a = compare_stretches(got[i], want[i], allowed);
    worst = std::max(worst, a.stretch), same &= a.same_bits;
    if (!a.ok()) row.fail(fmt::format("argument {}: {}", i, a.first_bad));
  }
  row.json["all_elements"] = {{"against", "the CPU engine"}, {"same_bits", same}, {"worst_stretch", worst}};
}

Row odd_row(const Example& example, const Case& c) {
  Row row;
  row.json = {{"program", example.name}, {"shape", c.shape}};
  const auto start = Clock::now();
  const Executable kernel = compile(c.program, {.engine = Engine::Cuda});
  row.json["compile_ms"] = milliseconds_since(start);
  const std::vector<NDArray> device = to_device(make_arrays(c));
  call_case(c, kernel, device);
  const std::vector<NDArray> got = to_host(device);
  check_sample(c, got, INT64_MAX, row);
  if (!bit_for_bit(c)) return row;
  const std::vector<NDArray> want = run_case(c, compile(c.program, {.engine = Engine::Interpreter}));
  for (size_t i = 0; i < got.size(); ++i)
    if (!compare_stretches(got[i], want[i], 0).same_bits) row.fail("not bit for bit what the interpreter gives");
  return row;
}

// Whom a case is timed beside: cuBLAS where the case names a product and cuBLAS has its types, copies where the memory
// is the bound.
class Peers {
 public:
  Peers(const Blas* blas, double largest_bytes)
      : blas_(blas), copies_(static_cast<int64_t>(std::min(kLargestCopy, largest_bytes))) {}

  std::vector<Peer> of(const Case& c) const {
    std::vector<Peer> out;
    if (!Work{c.flops, c.bytes}.is_arithmetic()) {
      const double bytes = std::min(kLargestCopy, c.bytes);
      for (const bool driver : {true, false}) {
        const auto copied = static_cast<int64_t>(bytes);
        out.push_back({driver ? copies_.by_driver(copied) : copies_.by_kernel(copied), {0, bytes}});
      }
    }
    if (blas_ && c.peer.kind == examples::Peer::Kind::OpenBlasGemm) add_product(c, out);
    return out;
  }

 private:
  void add_product(const Case& c, std::vector<Peer>& out) const {
    const auto* input = std::get_if<examples::LazyArray>(&c.arguments.front());
    const Product p{c.peer.m, c.peer.n, c.peer.k, input->dtype(), input->dtype()};
    if (!Blas::has(p)) return;
    const auto array = [&](int64_t rows, int64_t columns, uint64_t seed) {
      return NDArray(examples::input_array({rows, columns}, p.input, seed, examples::Data::Normal)).to(kDevice);
    };
    const NDArray a = array(p.m, p.k, 1), b = array(p.k, p.n, 2),
                  result = NDArray::zeros({p.m, p.n}, p.output, kDevice);
    const double elements = static_cast<double>(p.m * p.k + p.k * p.n + p.m * p.n);
    const Work work{2.0 * static_cast<double>(p.m) * static_cast<double>(p.n) * static_cast<double>(p.k),
                    elements * p.input.storage_bits() / 8};
    out.push_back({{"cuBLAS", [=, blas = blas_] { blas->gemm(p, a, b, result); }}, work});
  }

  const Blas* blas_;
  Copies copies_;
};

void time(const Case& c, const Executable& kernel, const std::vector<NDArray>& device, const std::vector<Peer>& peers,
          int turns, Row& row) {
  std::vector<Contestant> contestants = {{"ours", [&] { call_case(c, kernel, device); }}};
  for (const Peer& p : peers) contestants.push_back(p.contestant);
  const std::vector<Times> times = race(contestants, turns);
  const Work work{c.flops, c.bytes};
  row.json["flops"] = c.flops, row.json["bytes"] = c.bytes;
  row.json.update(json_of(times[0], work));
  for (size_t i = 0; i < peers.size(); ++i)
    row.json["peers"].push_back(
        {{"peer", peers[i].contestant.name},
         {"times", json_of(times[i + 1], peers[i].work)},
         {"ratio_burst", ratio(work, times[0].burst, peers[i].work, times[i + 1].burst)},
         {"ratio_sustained", ratio(work, times[0].sustained, peers[i].work, times[i + 1].sustained)}});
}

// Every plan that a launch might have instead, one line otherwise than its own, in turns with it: what was expected of
// it (plan/price.h), and what it took. What it gives must be what the program gives.
void time_plans(const Case& c, const Executable& kernel, const std::vector<NDArray>& device,
                const std::vector<NDArray>& got, int turns, Row& row) {
  const auto& program = c.program.box().program;
  std::vector<std::vector<int64_t>> shapes;
  for (const NDArray& a : got) shapes.emplace_back(a.shape().begin(), a.shape().end());
  const tilewright::Explanation page = tilewright::explain_gpu(program, tilewright::symbol_values(program, shapes),
                                                               tilewright::cuda::architecture(), false, kMostPlans);
  std::vector<Contestant> contestants = {{"ours", [&] { call_case(c, kernel, device); }}};
  std::vector<std::vector<NDArray>> arrays;
  Json plans = Json::array();
  for (size_t i = 0; i < page.gpu->launches.size(); ++i)
    for (const auto& next : page.gpu->launches[i].priced.next) {
      const std::string& launch = page.launches[i].name;
      Json plan = {{"launch", launch}, {"line", next.line}, {"expected_us", next.price.microseconds}};
      if (const auto& own = page.gpu->launches[i].priced.price) plan["expected_us_of_ours"] = own->microseconds;
      try {
        const tilewright::Program with =
            tilewright::with_plan(c.program, fmt::format("launch {}\n{}\n", launch, next.line));
        const Executable other = compile(with, {.engine = Engine::Cuda});
        arrays.push_back(to_device(make_arrays(c)));
        call_case(c, other, arrays.back());
        const std::vector<NDArray> found = to_host(arrays.back());
        for (size_t a = 0; a < found.size() && !c.any_order; ++a)
          if (const Agreement same =
                  compare_stretches(found[a], got[a], allowed_difference(found[a].dtype(), got[0].dtype()));
              !same.ok())
            row.fail(fmt::format("with the plan '{}': argument {}: {}", next.line, a, same.first_bad));
        contestants.push_back({next.line, [&c, other, given = arrays.back()] { call_case(c, other, given); }});
        plan["contestant"] = contestants.size() - 1;
      } catch (const tilewright::CompileError& e) {
        plan["refused"] = e.diagnostic().message;  // by the device compiler's verdict
      }
      plans.push_back(std::move(plan));
    }
  const std::vector<Times> times = race(contestants, turns);
  for (Json& plan : plans) {
    if (!plan.contains("contestant")) continue;
    const Times& took = times[plan["contestant"].get<size_t>()];
    plan.erase("contestant");
    plan["burst"] = {{"us", took.burst * 1e6}, {"of_ours", took.burst / times[0].burst}};
    plan["sustained"] = {{"us", took.sustained * 1e6}, {"of_ours", took.sustained / times[0].sustained}};
    fmt::print("       {:>6.3f} {:>6.3f} of its time with '{}' ({:.0f} us expected, {:.0f} taken)\n",
               took.burst / times[0].burst, took.sustained / times[0].sustained, plan["line"].get<std::string>(),
               plan["expected_us"].get<double>(), took.burst * 1e6);
  }
  row.json["plans"] = std::move(plans);
}

Row full_row(const Example& example, const Case& c, const Peers& peers, const ProgramOptions& options) {
  Row row;
  row.json = {{"program", example.name}, {"shape", c.shape}};
  auto start = Clock::now();
  const Executable kernel = compile(c.program, {.engine = Engine::Cuda});
  row.json["compile_ms"] = milliseconds_since(start);
  start = Clock::now();
  compile(c.program, {.engine = Engine::Cuda});
  row.json["compile_again_ms"] = milliseconds_since(start);

  std::vector<NDArray> host = make_arrays(c);
  const std::vector<NDArray> device = to_device(host);
  call_case(c, kernel, device);
  tilewright::cuda::synchronize();
  const std::vector<NDArray> got = to_host(device);
  check_sample(c, got, kSampledElements, row);
  if (options.full && !c.any_order) {
    call_case(c, compile(c.program, {.engine = Engine::Cpu}), host);
    compare_all(c, got, host, row);
  }
  host.clear();
  if (row.ok) time(c, kernel, device, peers.of(c), options.turns, row);
  if (row.ok && options.plans) time_plans(c, kernel, device, got, options.turns, row);
  // What moves from call to call is a race.
  const std::vector<NDArray> after = to_host(device);
  for (size_t i = 0; i < got.size() && !c.any_order; ++i)
    if (!compare_stretches(after[i], got[i], 0).same_bits)
      row.fail(fmt::format("argument {} changes from call to call", i));
  return row;
}

void print(const Row& row) {
  const Json& j = row.json;
  std::string line = fmt::format("{} {:<17} {:<44}", row.ok ? "ok  " : "FAIL", j["program"].get<std::string>(),
                                 j["shape"].get<std::string>());
  if (j.contains("of_bound")) line += fmt::format(" {:>5.1f}%", j["of_bound"].get<double>() * 100);
  for (const char* regime : {"burst", "sustained"}) {
    if (!j.contains(regime)) continue;
    const double seconds = j[regime]["us"].get<double>() * 1e-6;
    line += fmt::format("  {:>8.1f} us {}", seconds * 1e6, rate_text({j["flops"], j["bytes"]}, seconds));
  }
  if (j.contains("peers"))
    for (const Json& p : j["peers"])
      line += fmt::format("  {:.2f} {:.2f} x {}", p["ratio_burst"].get<double>(), p["ratio_sustained"].get<double>(),
                          p["peer"].get<std::string>());
  for (const char* key : {"bad", "refused"})
    if (j.contains(key)) line += "  " + j[key].get<std::string>().substr(0, 300);
  fmt::print("{}\n", line);
  std::fflush(stdout);
}

template <class Run>
Row guarded(const Example& example, const Case& c, const Run& run) {
  try {
    return run();
  } catch (const tilewright::Error& e) {
    Row row;
    row.json = {{"program", example.name}, {"shape", c.shape}, {"refused", e.what()}};
    row.ok = c.names_instructions;
    return row;
  } catch (const std::exception& e) {
    Row row;
    row.json = {{"program", example.name}, {"shape", c.shape}, {"bad", e.what()}};
    row.ok = false;
    return row;
  }
}

// The host compiler's work, on all cores at once. What it refuses is refused again, and reported, where it is needed.
void compile_for_cpu(const std::vector<Case>& cases) {
#pragma omp parallel for schedule(dynamic)
  for (size_t i = 0; i < cases.size(); ++i) {
    try {
      if (!cases[i].any_order) compile(cases[i].program, {.engine = Engine::Cpu});
    } catch (const std::exception&) {
    }
  }
}

}  // namespace

Json programs(const ProgramOptions& options, const Blas* blas, int& failures) {
  Json rows = Json::array();
  std::vector<Case> full;
  double bytes = 1e6;
  const std::vector<Example>& all = examples::all_examples();
  const auto is_chosen = [&](const Example& e) { return options.selection.contains(e.name, all); };
  for (const Example& e : all)
    if (is_chosen(e) && options.timed)
      for (Case& c : e.cases(examples::Size::Gpu)) bytes = std::max(bytes, c.bytes), full.push_back(std::move(c));
  if (options.full) compile_for_cpu(full);
  const Peers peers(blas, bytes);
  const auto add = [&](Row row, bool shown) {
    if (shown || !row.ok) print(row);
    failures += !row.ok;
    rows.push_back(std::move(row.json));
  };
  for (const Example& e : all) {
    if (!is_chosen(e)) continue;
    if (options.odd)
      for (const Case& c : e.cases(examples::Size::Odd)) add(guarded(e, c, [&] { return odd_row(e, c); }), false);
    if (options.timed)
      for (const Case& c : e.cases(examples::Size::Gpu))
        add(guarded(e, c, [&] { return full_row(e, c, peers, options); }), true);
  }
  return rows;
}

}  // namespace bench::gpu
