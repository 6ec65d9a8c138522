// tilewright run
#include <chrono>
#include <nlohmann/json.hpp>

#include "driver/npy.h"
#include "driver/tool/commands.h"
#include "driver/tool/program_call.h"
#include "runtime/report.h"
#include "support/diagnostic.h"
#include "tilewright/compile.h"

namespace tilewright::tool {
namespace {

using Json = nlohmann::ordered_json;

struct Outcome {
  std::string engine;
  std::vector<NDArray> arrays;
  double best_ms = 0, median_ms = 0;
};

Outcome execute(const ProgramCall& call, Engine engine, int repeat) {
  const Program handle(std::make_shared<const ir::TileProgramBox>(ir::TileProgramBox{call.program()}));
  const Executable executable = compile(handle, {engine});
  Outcome out{executable.engine(), call.fresh()};
  std::vector<double> times;
  for (int i = 0; i < repeat; ++i) {
    const std::vector<NDArray> arrays = i == 0 ? out.arrays : call.fresh();
    const std::vector<Argument> list = call.list(arrays);
    const auto start = std::chrono::steady_clock::now();
    executable.call(list);
    times.push_back(std::chrono::duration<double, std::milli>(std::chrono::steady_clock::now() - start).count());
  }
  if (times.size() > 1) times.erase(times.begin());  // it made workspaces and threads
  std::sort(times.begin(), times.end());
  out.best_ms = times.front(), out.median_ms = times[times.size() / 2];
  return out;
}

uint64_t checksum(const NDArray& array) {
  uint64_t h = 0xcbf29ce484222325ull;  // FNV-1a over the elements in row-major order
  const auto* bytes = static_cast<const unsigned char*>(array.data());
  for (int64_t i = 0; i < bytes_of(array.dtype(), array.size()); ++i) h = (h ^ bytes[i]) * 0x100000001b3ull;
  return h;
}

Json number_json(double v) { return std::isfinite(v) ? Json(v) : Json(fmt::format("{}", v)); }

Json summary(const std::string& name, const NDArray& array) {
  Json out = {{"name", name},
              {"dtype", array.dtype().name()},
              {"shape", std::vector<int64_t>(array.shape().begin(), array.shape().end())}};
  double low = INFINITY, high = -INFINITY;
  int64_t nan = 0;
  for (double v : array.to_floats()) {
    nan += std::isnan(v);
    if (v < low) low = v;
    if (v > high) high = v;
  }
  if (low <= high) out["min"] = number_json(low), out["max"] = number_json(high);
  if (nan) out["nan"] = nan;
  out["checksum"] = fmt::format("{:016x}", checksum(array));
  return out;
}

std::string text_of(const Json& number) {
  return number.is_string() ? number.get<std::string>() : fmt::format("{:.7g}", number.get<double>());
}

// What the last bits may differ by: sums in another order. 64 units of the last place of the largest value.
double default_tolerance(DType type) {
  if (!type.is_float()) return 0;
  switch (type.kind) {
    case Kind::BFloat: return 64 * 0x1p-8;
    case Kind::Float: return 64 * (type.bits == 16 ? 0x1p-11 : type.bits == 32 ? 0x1p-24 : 0x1p-53);
    case Kind::TFloat: return 64 * 0x1p-11;
    default: return 0.25;  // float8 and float4: steps of up to a quarter of the value
  }
}

struct Difference {
  int64_t elements = 0;  // that are not the same
  double largest = 0, allowed = 0;
  bool ok() const { return largest <= allowed; }
};

Difference compare(const NDArray& want, const NDArray& got, double tolerance) {
  const std::vector<double> a = want.to_floats(), b = got.to_floats();
  std::vector<int64_t> whole, other;  // a double does not hold all of 64 bits
  if (want.dtype().is_integral()) whole = want.to_ints(), other = got.to_ints();
  Difference d;
  double scale = 0;
  for (size_t i = 0; i < a.size(); ++i) {
    if (std::isfinite(a[i])) scale = std::max(scale, std::abs(a[i]));
    if (!whole.empty() ? whole[i] == other[i] : a[i] == b[i] || (std::isnan(a[i]) && std::isnan(b[i]))) continue;
    ++d.elements;
    const double by = std::max(std::abs(a[i] - b[i]), whole.empty() ? 0.0 : 1.0);
    d.largest = std::max(d.largest, std::isnan(by) ? INFINITY : by);
  }
  d.allowed = (tolerance < 0 ? default_tolerance(want.dtype()) : tolerance) * scale;
  return d;
}

// Both engines' arrays; the JSON says what was found. True: they agree.
bool compare_all(const ProgramCall& call, const Outcome& want, const Outcome& got, double tolerance, Json& out) {
  bool ok = true;
  out["comparison"] = Json::array();
  for (size_t i = 0; i < want.arrays.size(); ++i) {
    if (!call.is_written(i)) continue;
    const Difference d = compare(want.arrays[i], got.arrays[i], tolerance);
    ok = ok && d.ok();
    out["comparison"].push_back({{"name", call.name(i)},
                                 {"elements_that_differ", d.elements},
                                 {"largest_difference", number_json(d.largest)},
                                 {"allowed", number_json(d.allowed)},
                                 {"ok", d.ok()}});
  }
  return ok;
}

void show(const Json& r) {
  auto text = [](const Json& j) { return j.get<std::string>(); };
  for (const Json& o : r["outputs"]) {
    std::vector<int64_t> shape = o["shape"];
    fmt::print("{}: {}[{}]", text(o["name"]), text(o["dtype"]), fmt::join(shape, ", "));
    if (o.contains("min")) fmt::print("  min {}  max {}", text_of(o["min"]), text_of(o["max"]));
    if (o.contains("nan")) fmt::print("  nan {}", o["nan"].get<int64_t>());
    fmt::print("  checksum {}\n", text(o["checksum"]));
  }
  for (const Json& t : r["times"])
    fmt::print("{}: best {:.3f} ms, median {:.3f} ms\n", text(t["engine"]), t["best_ms"].get<double>(),
               t["median_ms"].get<double>());
  if (!r.contains("comparison")) return;
  for (const Json& c : r["comparison"])
    fmt::print("{}: {}: {} elements differ, at most by {} ({} allowed)\n", text(c["name"]),
               c["ok"].get<bool>() ? "the engines agree" : "THE ENGINES DIFFER",
               c["elements_that_differ"].get<int64_t>(), text_of(c["largest_difference"]), text_of(c["allowed"]));
}

void save_outputs(const ProgramCall& call, const std::vector<NDArray>& arrays, const std::vector<std::string>& files) {
  for (const std::string& text : files) {
    const auto [key, path] = name_and_value(text, "--output");
    bool found = false;
    for (size_t i = 0; i < arrays.size(); ++i)
      if (call.name(i) == key) write_file(path, to_npy(arrays[i])), found = true;
    if (!found) throw UsageError(fmt::format("--output: the program has no tensor '{}'", key));
  }
}

Engine engine_of(const std::string& name) {
  return name == "cpu"           ? Engine::Cpu
         : name == "interpreter" ? Engine::Interpreter
         : name == "simulator"   ? Engine::Simulator
                                 : Engine::Auto;
}

}  // namespace

int run(const RunArguments& arguments) {
  if (arguments.compare && !arguments.engine.empty()) throw UsageError("--compare runs both engines: no --engine");
  const ProgramCall call(arguments.call);
  if (arguments.json) runtime::replace_print_sink([](std::string_view line) { fmt::print(stderr, "{}", line); });
  std::vector<Outcome> outcomes;
  if (arguments.compare) outcomes.push_back(execute(call, Engine::Interpreter, 1));
  outcomes.push_back(execute(call, arguments.compare ? Engine::Cpu : engine_of(arguments.engine), arguments.repeat));
  const std::vector<NDArray>& arrays = outcomes.back().arrays;
  Json out = {{"program", call.program().name}, {"seed", arguments.call.seed}, {"outputs", Json::array()}};
  for (size_t i = 0; i < arrays.size(); ++i)
    if (call.is_written(i)) out["outputs"].push_back(summary(call.name(i), arrays[i]));
  for (const Outcome& o : outcomes)
    out["times"].push_back({{"engine", o.engine}, {"best_ms", o.best_ms}, {"median_ms", o.median_ms}});
  const bool ok = !arguments.compare || compare_all(call, outcomes[0], outcomes[1], arguments.tolerance, out);
  save_outputs(call, arrays, arguments.outputs);
  if (arguments.json) {
    fmt::print("{}\n", out.dump(2));
  } else {
    show(out);
  }
  return ok ? kOk : kWrong;
}

}  // namespace tilewright::tool
