// tilewright fuzz
#include <sys/stat.h>

#include <charconv>
#include <nlohmann/json.hpp>

#include "driver/fuzz/session.h"
#include "driver/tool/commands.h"

namespace tilewright::tool {
namespace {

constexpr int64_t kDefaultPrograms = 100;

uint64_t number(std::string_view text) {
  uint64_t value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || end != text.data() + text.size())
    throw UsageError(fmt::format("'{}' is not a seed", text));
  return value;
}

void choose_seeds(const FuzzArguments& arguments, fuzz::SessionOptions& options) {
  if (arguments.seed >= 0) {
    options.first = options.last = static_cast<uint64_t>(arguments.seed);
  } else if (!arguments.seeds.empty()) {
    const size_t dots = arguments.seeds.find("..");
    if (dots == std::string::npos) throw UsageError("--seeds takes a range, as in 1..1000");
    options.first = number(std::string_view(arguments.seeds).substr(0, dots));
    options.last = number(std::string_view(arguments.seeds).substr(dots + 2));
    if (options.last < options.first) throw UsageError("--seeds: the range is empty");
  } else {
    options.first = 1;
    options.last = arguments.seconds > 0 ? UINT64_MAX - 1 : kDefaultPrograms;
  }
}

std::string first_line(const std::string& text) { return text.substr(0, text.find('\n')); }

}  // namespace

int fuzz(const FuzzArguments& arguments) {
  fuzz::SessionOptions options;
  choose_seeds(arguments, options);
  options.seconds = arguments.seconds, options.jobs = arguments.jobs;
  options.invalid = arguments.invalid, options.minimize = arguments.minimize;
  if (arguments.quick) options.engines = fuzz::Engines::BothQuickly;
  if (arguments.engine == "simulator") options.engines = fuzz::Engines::Simulator;
  if (arguments.engine == "cuda") options.engines = fuzz::Engines::Cuda;
  if (arguments.engine == "interpreter") options.engines = fuzz::Engines::Interpreter;
  if (!arguments.out.empty()) mkdir(arguments.out.c_str(), 0777);
  nlohmann::ordered_json list = nlohmann::ordered_json::array();
  const fuzz::Summary summary = fuzz::run_session(options, [&](const fuzz::Found& f) {
    std::string file;
    if (!arguments.out.empty() && !f.text.empty()) {
      file = fmt::format("{}/seed_{}.tile", arguments.out, f.seed);
      write_file(file, f.text);
    }
    if (arguments.json) {
      list.push_back({{"seed", f.seed}, {"kind", name_of(f.finding.kind)}, {"message", f.finding.message}});
      if (!file.empty()) list.back()["file"] = file;
    } else {
      fmt::print("seed {}: {}: {}{}\n", f.seed, name_of(f.finding.kind), first_line(f.finding.message),
                 file.empty() ? "" : " (" + file + ")");
      std::fflush(stdout);
    }
  });
  const double rate = static_cast<double>(summary.programs) / std::max(summary.seconds, 1e-9);
  if (arguments.json) {
    const nlohmann::ordered_json out = {{"programs", summary.programs},
                                        {"seconds", summary.seconds},
                                        {"programs_per_second", rate},
                                        {"refused", summary.refused},
                                        {"findings", list}};
    fmt::print("{}\n", out.dump(2));
  } else {
    const bool on_gpu = options.engines == fuzz::Engines::Simulator || options.engines == fuzz::Engines::Cuda;
    fmt::print("{} {}programs in {:.1f} s ({:.1f}/s){}: {} findings\n", summary.programs,
               arguments.invalid ? "invalid " : "", summary.seconds, rate,
               on_gpu ? fmt::format(", {} of them more than a block can do", summary.refused) : "",
               summary.found.size());
  }
  return summary.found.empty() ? kOk : kWrong;
}

}  // namespace tilewright::tool
