// What compiling and calling cost: our passes, a cold start, warm ones, a call.
#include <unistd.h>

#include "driver/build_plan.h"
#include "driver/cpu_engine.h"
#include "example.h"
#include "measure.h"
#include "passes/pipeline.h"

namespace bench {
namespace {

using namespace tilewright;

// From a recorded program to C++ text, the launch plan included.
double passes_seconds(const Program& program) {
  return seconds_of([&] {
    Dump dump(program.name());
    const ir::TileProgram tiles =
        passes::run_passes(order_symbols(program.box().program), passes::all_passes(), [](auto&&...) {});
    build_plan(tiles);
    write_cpu(tiles, runtime::processor_features(), dump);
  });
}

double median_of(int times, const std::function<double()>& one) {
  std::vector<double> all;
  for (int i = 0; i < times; ++i) all.push_back(one());
  return median(all);
}

double warm_seconds(const Program& program) {
  return median_of(21, [&] { return seconds_of([&] { compile(program, {Engine::Cpu}); }); });
}

Program add_constant(int64_t n, double value) {
  Tensor A("A", {n}, f32), B("B", {n}, f32);
  return prim_func("add_constant", {A, B}, [&] {
    for (auto bx : Kernel(ceildiv(n, 64), {.threads = 64})) {
      for (auto i : Parallel(64)) B(bx * 64 + i) = A(bx * 64 + i) + value;
    }
  });
}

}  // namespace

nlohmann::json compile_time() {
  nlohmann::json rows = nlohmann::json::array();
  auto report = [&](const std::string& what, double value, const char* unit, double goal) {
    fmt::print("{:<62}{:>10.3f} {:<3} (goal {:g})\n", what, value, unit, goal);
    rows.push_back({{"what", what}, {"value", value}, {"unit", unit}, {"goal", goal}});
  };
  for (const examples::Example& e : examples::all_examples()) {
    const std::string name = e.name;
    if (name != "gemm_relu" && name != "flash_attention" && name != "mla_decode") continue;
    const examples::Case c = e.cases(examples::Size::Benchmark).front();
    report(fmt::format("our passes, {} {}", name, c.shape),
           1e3 * median_of(11, [&] { return passes_seconds(c.program); }), "ms", name == "gemm_relu" ? 10 : 30);
    compile(c.program, {Engine::Cpu});
    report(fmt::format("{} again, from the disk cache", name), 1e3 * warm_seconds(c.program), "ms", 5);
  }
  // Kernels that no cache holds: their constants differ from run to run.
  const double unique = static_cast<double>(getpid());
  int counter = 0;
  report(
      "a trivial kernel to a loaded object, nothing cached",
      1e3 * median_of(9,
                      [&] {
                        return seconds_of([&] { compile(add_constant(64, unique + 1e-3 * ++counter), {Engine::Cpu}); });
                      }),
      "ms", 300);
  const Program trivial = add_constant(64, 1);
  compile(trivial, {Engine::Cpu});
  report("the same kernel again, from the disk cache", 1e3 * warm_seconds(trivial), "ms", 5);
  const Executable executable = compile(trivial, {Engine::Cpu});
  const NDArray a = NDArray::zeros({64}, f32), b = NDArray::zeros({64}, f32);
  constexpr int kCalls = 200000;
  executable(a, b);
  const double call = median_of(5, [&] {
    return seconds_of([&] {
      for (int i = 0; i < kCalls; ++i) executable(a, b);
    });
  });
  report("a call of the trivial kernel (64 elements) from C++", 1e6 * call / kCalls, "us", 1);
  return rows;
}

}  // namespace bench
