// tilewright_bench [compile_time] [cpu] [--turns N] [--only TEXT] [--no-torch] [--json FILE]
#include <sys/utsname.h>

#include <CLI/CLI.hpp>
#include <ctime>
#include <fstream>

#include "measure.h"
#include "runtime/processor.h"

int main(int count, char** arguments) {
  CLI::App app("Measures compile times and the CPU engine beside its peers");
  std::vector<std::string> parts;
  std::string json, only;
  int turns = 11;
  bool no_torch = false;
  app.add_option("part", parts, "compile_time, cpu; both if none is named")
      ->check(CLI::IsMember({"compile_time", "cpu"}));
  app.add_option("--json", json, "write the rows to this file");
  app.add_option("--turns", turns, "turns of each contest")->check(CLI::Range(1, 1000));
  app.add_option("--only", only, "of the CPU's rows, those whose program's name holds this");
  app.add_flag("--no-torch", no_torch, "leave PyTorch out");
  CLI11_PARSE(app, count, arguments);
  if (parts.empty()) parts = {"compile_time", "cpu"};

  nlohmann::json out;
  char date[32];
  const std::time_t now = std::time(nullptr);
  std::strftime(date, sizeof date, "%Y-%m-%d", std::gmtime(&now));
  utsname machine{};
  uname(&machine);
  out["date"] = date;
  out["machine"] =
      fmt::format("{} {}, {}", machine.sysname, machine.machine, tilewright::runtime::detect_processor().to_string());
  for (int i = 1; i < count; ++i) out["arguments"].push_back(arguments[i]);
  for (const std::string& part : parts)
    out[part] = part == "cpu" ? bench::cpu(!no_torch, turns, only) : bench::compile_time();
  if (!json.empty()) std::ofstream(json) << out.dump(1) << "\n";
  return 0;
}
