// The examples on a CUDA device: right against their references, and bit for bit against the interpreter where they are
// elementwise, at odd shapes and at those of the benchmarks; timed beside a copy in device memory.
#include <fmt/core.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <chrono>
#include <cstring>
#include <fstream>
#include <nlohmann/json.hpp>

#include "example.h"
#include "tilewright/cuda.h"
#include "tilewright/diagnostic.h"

namespace {

using namespace tilewright;
using Json = nlohmann::ordered_json;

constexpr Device kDevice{2, 0};
constexpr int64_t kCheckedElements = 4096;

struct Options {
  std::string only, json;
  int turns = 20;
  bool odd = true, timed = true;
};

std::vector<NDArray> arrays_of(const examples::Case& c, Device device) {
  std::vector<NDArray> out;
  for (const NDArray& array : examples::make_arrays(c)) out.push_back(array.to(device));
  return out;
}

bool same_bits(const NDArray& a, const NDArray& b) {
  return std::memcmp(a.data(), b.data(), static_cast<size_t>(bytes_of(a.dtype(), a.size()))) == 0;
}

// Seconds of one call, the median of several, the device idle before and after. Each is preceded by a copy larger than
// the second-level cache, so that none finds its data there.
template <class Call>
double seconds(int turns, const Call& call) {
  static const NDArray from = NDArray::zeros({64 << 20}, f32, kDevice);
  std::vector<double> times;
  call();
  cuda::synchronize();
  for (int i = 0; i < turns; ++i) {
    (void)from.clone();
    cuda::synchronize();
    const auto start = std::chrono::steady_clock::now();
    call();
    cuda::synchronize();
    times.push_back(std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count());
  }
  std::nth_element(times.begin(), times.begin() + static_cast<long>(times.size() / 2), times.end());
  return times[times.size() / 2];
}

struct Row {
  Json json;
  bool ok = true;
};

Row run(const examples::Example& example, const examples::Case& c, bool timed, const Options& options) {
  Row row;
  row.json = {{"program", example.name}, {"shape", c.shape}};
  try {
    const auto start = std::chrono::steady_clock::now();
    const Executable kernel = compile(c.program, {.engine = Engine::Cuda});
    row.json["compile_ms"] =
        std::chrono::duration<double, std::milli>(std::chrono::steady_clock::now() - start).count();
    const std::vector<NDArray> device = arrays_of(c, kDevice);
    examples::call_case(c, kernel, device);
    cuda::synchronize();
    std::vector<NDArray> host;
    for (const NDArray& a : device) host.push_back(a.to({}));
    const examples::Check check = c.check(host, timed ? kCheckedElements : INT64_MAX);
    row.ok = check.ok();
    row.json["error"] = check.max_error(), row.json["of_bound"] = check.worst_share();
    if (!check.ok()) row.json["bad"] = check.first_bad();
    if (c.elementwise && !timed) {
      const std::vector<NDArray> oracle = examples::run_case(c, compile(c.program, {.engine = Engine::Interpreter}));
      for (size_t i = 0; i < oracle.size(); ++i)
        if (!same_bits(host[i], oracle[i]))
          row.ok = false, row.json["bad"] = "not bit for bit what the interpreter gives";
    }
    if (timed && row.ok) {
      const double s = seconds(options.turns, [&] { examples::call_case(c, kernel, device); });
      row.json["us"] = s * 1e6;
      if (c.flops > 0) row.json["tflops"] = c.flops / s * 1e-12;
      if (c.bytes > 0) row.json["gbs"] = c.bytes / s * 1e-9;
    }
  } catch (const Error& e) {
    row.json["refused"] = e.what();
    row.ok = c.cpu_refuses != nullptr;  // what only the interpreter runs
  }
  return row;
}

void print(const Row& row) {
  auto number = [&](const char* key, const char* unit) {
    return row.json.contains(key) ? fmt::format("{:>10.1f} {}", row.json[key].get<double>(), unit) : std::string();
  };
  fmt::print("{} {:<18}{:<42}{:>8.1f}%{}{}{}{}\n", row.ok ? "ok  " : "FAIL", row.json["program"].get<std::string>(),
             row.json["shape"].get<std::string>(), row.json.value("of_bound", 0.0) * 100, number("us", "us"),
             number("tflops", "TFLOP/s"), number("gbs", "GB/s"),
             row.json.contains("bad")       ? "  " + row.json["bad"].get<std::string>()
             : row.json.contains("refused") ? "  " + row.json["refused"].get<std::string>().substr(0, 300)
                                            : "");
  std::fflush(stdout);
}

}  // namespace

int main(int argc, char** argv) {
  CLI::App app("The examples on a CUDA device");
  Options options;
  app.add_option("--only", options.only, "Examples whose names contain this");
  app.add_option("--json", options.json, "Write the rows to this file");
  app.add_option("--turns", options.turns, "Timed calls of each");
  app.add_flag("!--no-odd", options.odd, "Without the odd shapes");
  app.add_flag("!--no-timed", options.timed, "Without the benchmark shapes");
  CLI11_PARSE(app, argc, argv);
  if (cuda::device_count() == 0) {
    fmt::print("no CUDA device\n");
    return 2;
  }
  Json rows = Json::array();
  int failures = 0;
  const NDArray block = NDArray::zeros({256 << 20}, f32, kDevice);
  const double copy =
      2.0 * static_cast<double>(block.size()) * 4 / seconds(options.turns, [&] { (void)block.clone(); });
  fmt::print("copy with its allocation: {:.0f} GB/s read and written\n", copy * 1e-9);
  for (const examples::Example& example : examples::all_examples()) {
    if (std::string(example.name).find(options.only) == std::string::npos) continue;
    for (examples::Size size : {examples::Size::Odd, examples::Size::Benchmark}) {
      const bool timed = size == examples::Size::Benchmark;
      if (timed ? !options.timed : !options.odd) continue;
      int good = 0;
      for (const examples::Case& c : example.cases(size)) {
        const Row row = run(example, c, timed, options);
        failures += !row.ok, good += row.ok;
        rows.push_back(row.json);
        if (timed || !row.ok) print(row);
      }
      if (!timed) fmt::print("     {:<18}{} odd shapes right\n", example.name, good);
    }
  }
  if (!options.json.empty())
    std::ofstream(options.json) << Json{{"copy_gbs", copy * 1e-9}, {"rows", rows}}.dump(1) << "\n";
  fmt::print("{} rows, {} failures\n", rows.size(), failures);
  return failures > 0;
}
