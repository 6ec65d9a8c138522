#include "compile_times.h"

#include <fmt/core.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <filesystem>

#include "driver/build_plan.h"
#include "driver/cuda_engine.h"
#include "example.h"
#include "passes/pipeline.h"
#include "tilewright/cuda.h"

namespace bench::gpu {
namespace {

using Json = nlohmann::ordered_json;
using examples::Case;
using namespace tilewright;

constexpr int kTimes = 9;  // of which the median counts

// What must not be exceeded by a cold start, in milliseconds.
struct Goal {
  const char* program;
  double cold;
};
constexpr Goal kGoals[] = {{"add", 100}, {"gemm", 500}, {"flash_attention", 800}, {"attention_backward", 1500}};
constexpr double kFromDisk = 10;  // by a warm one of any program

template <class Work>
double milliseconds_of(const Work& work) {
  const auto start = std::chrono::steady_clock::now();
  work();
  return std::chrono::duration<double, std::milli>(std::chrono::steady_clock::now() - start).count();
}

template <class Work>
double median_of(const Work& work) {
  std::vector<double> all;
  for (int i = 0; i < kTimes; ++i) all.push_back(milliseconds_of(work));
  std::nth_element(all.begin(), all.begin() + kTimes / 2, all.end());
  return all[kTimes / 2];
}

void passes_of(const Program& program, const std::string& arch) {
  Dump dump(program.name());
  const ir::TileProgram tiles =
      passes::run_passes(order_symbols(program.box().program), passes::all_passes(), [](auto&&...) {});
  build_plan(tiles);
  write_cuda(tiles, arch, dump);
}

Json times_of(const Case& c) {
  const CompileOptions options{.engine = Engine::Cuda};
  char folder[] = "/tmp/tilewright_cache_XXXXXX";
  if (!mkdtemp(folder)) throw std::runtime_error("no folder for a cache");
  const std::shared_ptr<void> remove(nullptr, [&](void*) { std::filesystem::remove_all(folder); });
  setenv("TILEWRIGHT_CACHE_DIR", folder, 1);
  setenv("TILEWRIGHT_CACHE_SIZE", "0", 1);  // nothing is kept,
  setenv("CUDA_CACHE_DISABLE", "1", 1);     // neither by NVRTC, which else knows a text again
  Json row;
  row["first_ms"] = milliseconds_of([&] { compile(c.program, options); });
  const std::string arch = cuda::architecture();
  row["passes_ms"] = median_of([&] { passes_of(c.program, arch); });
  row["cold_ms"] = median_of([&] { compile(c.program, options); });
  unsetenv("TILEWRIGHT_CACHE_SIZE");
  compile(c.program, options);
  row["disk_ms"] = median_of([&] { compile(c.program, options); });
  return row;
}

// What `work` gives, computed in another process.
template <class Work>
Json apart(const Work& work) {
  int ends[2];
  if (pipe(ends) != 0) return {{"bad", "no pipe"}};
  std::fflush(stdout);
  const pid_t child = fork();
  if (child < 0) return {{"bad", "no process"}};
  if (child == 0) {
    close(ends[0]);
    std::string text;
    try {
      text = work().dump();
    } catch (const std::exception& e) {
      text = Json{{"bad", e.what()}}.dump();
    }
    const bool written = write(ends[1], text.data(), text.size()) == static_cast<ssize_t>(text.size());
    _exit(written ? 0 : 1);
  }
  close(ends[1]);
  std::string text;
  char buffer[4096];
  for (ssize_t n; (n = read(ends[0], buffer, sizeof buffer)) > 0;) text.append(buffer, static_cast<size_t>(n));
  close(ends[0]);
  int status = 0;
  waitpid(child, &status, 0);
  if (status != 0) return {{"bad", fmt::format("its process ended with status {}", status)}};
  return Json::parse(text);
}

void print(const Json& row) {
  const std::string name = fmt::format("{} {}", row["program"].get<std::string>(), row["shape"].get<std::string>());
  if (row.contains("bad")) {
    fmt::print("{:<72} {}\n", name, row["bad"].get<std::string>());
    return;
  }
  const auto ms = [&](const char* key) { return row[key].get<double>(); };
  fmt::print("{:<72} passes {:6.1f}  first {:7.1f}  cold {:7.1f}{}  disk {:6.1f} (goal {:.0f}) ms\n", name,
             ms("passes_ms"), ms("first_ms"), ms("cold_ms"),
             row.contains("goal_ms") ? fmt::format(" (goal {:.0f})", row["goal_ms"].get<double>()) : "", ms("disk_ms"),
             ms("goal_disk_ms"));
}

}  // namespace

Json compile_times(const Selection& selection) {
  Json rows = Json::array();
  const std::vector<examples::Example>& all = examples::all_examples();
  for (const examples::Example& e : all) {
    if (!selection.contains(e.name, all)) continue;
    const std::vector<Case> cases = e.cases(examples::Size::Gpu);
    if (cases.empty()) continue;
    const Case& c = cases.front();
    Json row = {{"program", e.name}, {"shape", c.shape}};
    row.update(apart([&] { return times_of(c); }));
    row["goal_disk_ms"] = kFromDisk;
    for (const Goal& goal : kGoals)
      if (row["program"] == goal.program) row["goal_ms"] = goal.cold;
    print(row);
    rows.push_back(std::move(row));
  }
  return rows;
}

}  // namespace bench::gpu
