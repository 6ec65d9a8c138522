// Measures on a CUDA device: copies, the cost of a launch, the examples, matrix products by tile sizes. Prints tables
// and writes JSON; docs/measuring.md says how times are taken and what the fields mean.
#include <fmt/chrono.h>
#include <fmt/core.h>

#include <CLI/CLI.hpp>
#include <fstream>
#include <thread>

#include "blas.h"
#include "compile_times.h"
#include "copy.h"
#include "example.h"
#include "gemm_sweep.h"
#include "programs.h"
#include "rates.h"
#include "runtime/cuda_device.h"
#include "runtime/nvrtc.h"
#include "tilewright/cuda.h"
#include "tilewright/diagnostic.h"

namespace {

using namespace bench::gpu;
namespace rt = tilewright::runtime;

struct Options {
  ProgramOptions programs;
  GemmSweep gemm;
  std::string json, cublas;
  int turns = 30;
  bool run_programs = true, run_gemm = true, run_copies = true, run_compile = false, list = false;
};

void add_options(CLI::App& app, Options& o) {
  app.add_option("--filter", o.programs.selection.words,
                 "The example of this name, or else those whose names contain it")
      ->delimiter(',');
  app.add_option("--turns", o.turns, "Timed calls of each contestant in each regime")->check(CLI::Range(1, 10000));
  app.add_option("--json", o.json, "Write everything to this file");
  app.add_option("--cublas", o.cublas, "Folder of libcublas and libcublasLt; else where the dynamic linker looks");
  app.add_flag("!--no-odd", o.programs.odd, "Without the odd shapes of the examples");
  app.add_flag("!--no-timed", o.programs.timed, "Without the full-size shapes of the examples");
  app.add_flag("!--no-full", o.programs.full, "Full-size results against a sample alone, not all of the CPU engine's");
  app.add_flag("--plans", o.programs.plans, "The plans that launches might have instead, beside those that they have");
  app.add_flag("!--no-programs", o.run_programs, "Without the examples");
  app.add_flag("!--no-gemm", o.run_gemm, "Without the products by tile sizes");
  app.add_flag("!--no-copies", o.run_copies, "Without the copies and the cost of a launch");
  app.add_flag("--compile", o.run_compile, "What compiling costs, each program in a process of its own");
  app.add_flag("--list", o.list, "The names of the examples, and nothing else");
  app.add_option("--gemm-forms", o.gemm.forms, "Types and orders in memory: bf16:nt")->delimiter(',');
  app.add_option("--gemm-shapes", o.gemm.shapes, "M x N x K: 4096x7168x16384")->delimiter(',');
  app.add_option("--gemm-tiles", o.gemm.tiles, "Tiles, stages and threads: 128x256x64:3:256")->delimiter(',');
}

// Without the folders of the machine that measured.
std::string command_line(int count, char** arguments) {
  std::string out = "tilewright_bench_gpu";
  for (int i = 1; i < count; ++i) {
    const std::string word = arguments[i];
    out += " " + (word.starts_with('/') ? word.substr(word.rfind('/') + 1) : word);
  }
  return out;
}

// "580.159.03"; empty where the driver does not say so there.
std::string driver_release() {
  std::ifstream file("/proc/driver/nvidia/version");
  std::string line, word;
  std::getline(file, line);
  std::istringstream words(line);
  while (words >> word)
    if (word.find_first_not_of("0123456789.") == std::string::npos && word.find('.') != std::string::npos) return word;
  return "";
}

Json machine(const Blas* blas, const std::string& blas_problem) {
  const rt::cuda::CudaDevice& device = rt::cuda::CudaDevice::get(0);
  const rt::cuda::DeviceProperties& p = device.properties;
  const int version = device.driver.version;
  return {{"device", p.name},
          {"arch", p.arch()},
          {"multiprocessors", p.sm_count},
          {"memory_bytes", p.memory_bytes},
          {"l2_bytes", p.l2_bytes},
          {"driver", driver_release()},
          {"driver_cuda", fmt::format("{}.{}", version / 1000, version % 1000 / 10)},
          {"nvrtc", rt::Nvrtc::get().version()},
          {"cublas", blas ? blas->version() : "none: " + blas_problem},
          {"cores", std::thread::hardware_concurrency()}};
}

Json copies(int turns) {
  Json rows = Json::array();
  for (const int64_t bytes : {int64_t{64} << 20, int64_t{512} << 20, int64_t{4} << 30}) {
    const Copies copies(bytes);
    const std::vector<Contestant> list = {copies.by_driver(bytes), copies.by_kernel(bytes)};
    const std::vector<Times> times = race(list, turns);
    for (size_t i = 0; i < list.size(); ++i) {
      const Work work{0, static_cast<double>(bytes)};
      fmt::print("{:<26} {:>5} MiB  {} {}\n", list[i].name, bytes >> 20, rate_text(work, times[i].burst),
                 rate_text(work, times[i].sustained));
      Json row = {{"copy", list[i].name}, {"bytes", bytes}};
      row.update(json_of(times[i], work));
      rows.push_back(std::move(row));
    }
  }
  return rows;
}

int run(const Options& o, const std::string& command) {
  // Before this process uses the device.
  const Json compiling = o.run_compile ? compile_times(o.programs.selection) : Json();
  if (tilewright::cuda::device_count() == 0) {
    fmt::print("no CUDA device\n");
    return 2;
  }
  std::string problem;
  const std::unique_ptr<Blas> blas = Blas::find(o.cublas, problem);
  Json out = {{"date", fmt::format("{:%Y-%m-%d}", fmt::gmtime(std::time(nullptr)))},
              {"command", command},
              {"machine", machine(blas.get(), problem)},
              {"turns", o.turns}};
  fmt::print("{}\n", out["machine"].dump());
  if (o.run_compile) out["compile"] = compiling;
  int failures = 0;
  const auto save = [&] {
    if (!o.json.empty()) std::ofstream(o.json) << out.dump(1) << "\n";
  };
  if (o.run_copies) {
    out["copies"] = copies(o.turns);
    const LaunchCost cost = launch_cost();
    out["launch"] = {{"ours_us", cost.ours * 1e6}, {"driver_us", cost.driver * 1e6}};
    fmt::print("a launch on the host: {:.2f} us, by the driver's entry point {:.2f} us\n", cost.ours * 1e6,
               cost.driver * 1e6);
    save();
  }
  if (o.run_programs) {
    ProgramOptions programs_options = o.programs;
    programs_options.turns = o.turns;
    out["programs"] = programs(programs_options, blas.get(), failures);
    save();
  }
  if (o.run_gemm) out["gemm"] = sweep(o.gemm, blas.get(), o.turns, failures);
  out["failures"] = failures;
  save();
  fmt::print("{} failures\n", failures);
  return failures > 0;
}

}  // namespace

int main(int argc, char** argv) {
  CLI::App app("Measures on a CUDA device");
  Options options;
  add_options(app, options);
  CLI11_PARSE(app, argc, argv);
  if (options.list) {
    for (const examples::Example& e : examples::all_examples()) fmt::print("{}\n", e.name);
    return 0;
  }
  try {
    return run(options, command_line(argc, argv));
  } catch (const std::exception& e) {
    fmt::print("{}\n", e.what());
    return 2;
  }
}
