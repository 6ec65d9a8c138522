// tilewright doctor
#include <nlohmann/json.hpp>

#include "driver/machine.h"
#include "driver/tool/commands.h"
#include "support/diagnostic.h"

namespace tilewright::tool {
namespace {

using Json = nlohmann::ordered_json;

std::string text(const Json& j) { return j.get<std::string>(); }

double mebibytes(const Json& bytes) { return static_cast<double>(bytes.get<int64_t>()) / 1048576; }

void show_cuda(const Json& nvrtc, const Json& driver) {
  const auto row = [](const char* name, const Json& part, const std::string& good) {
    fmt::print("{:<11} {}\n", name, part["works"].get<bool>() ? good : text(part["problem"]));
    if (part.contains("help")) fmt::print("            {}\n", text(part["help"]));
  };
  const auto known = [](const Json& part, const char* name) { return part.contains(name) ? text(part[name]) : ""; };
  row("nvrtc", nvrtc, fmt::format("{} {}: works", known(nvrtc, "path"), known(nvrtc, "version")));
  row("cuda", driver, fmt::format("{} {}", known(driver, "path"), known(driver, "version")));
  for (size_t i = 0; i < driver["devices"].size(); ++i) {
    const Json& d = driver["devices"][i];
    fmt::print("cuda:{:<6} {}, {}, {} SMs, {:.0f} MiB, L2 {:.0f} MiB, {} bytes shared a block\n", i, text(d["name"]),
               text(d["architecture"]), d["sms"].get<int>(), mebibytes(d["memory_bytes"]), mebibytes(d["l2_bytes"]),
               d["shared_bytes_per_block"].get<int>());
  }
}

void show(const Json& r) {
  fmt::print("tilewright  {}\n", text(r["version"]));
  std::vector<std::string> engines;
  for (const Json& e : r["engines"]) engines.push_back(text(e));
  fmt::print("engines     {}\n", fmt::join(engines, ", "));
  const Json& compiler = r["compiler"];
  if (compiler["works"].get<bool>()) {
    fmt::print("compiler    {}\n            {}: works\n", text(compiler["path"]), text(compiler["version"]));
  } else {
    fmt::print("compiler    {}\n", text(compiler["problem"]));
    if (compiler.contains("help")) fmt::print("            {}\n", text(compiler["help"]));
  }
  for (const Json& other : r["compilers"])
    if (!compiler.contains("path") || other["path"] != compiler["path"])
      fmt::print("            also {} {}\n", text(other["path"]), text(other["version"]));
  fmt::print("processor   {}\n", text(r["processor"]));
  if (r["processor"] != r["processor_used"])
    fmt::print("            of these are used: {}\n", text(r["processor_used"]));
  fmt::print("threads     {}\n", r["threads"].get<int>());
  show_cuda(r["nvrtc"], r["driver"]);
  const Json& cache = r["cache"];
  if (text(cache["directory"]).empty()) {
    fmt::print("cache       none\n");
  } else if (!cache["exists"].get<bool>()) {
    fmt::print("cache       {} (not there yet)\n", text(cache["directory"]));
  } else {
    fmt::print("cache       {}: {} entries, {:.1f} MiB{}\n", text(cache["directory"]), cache["entries"].get<int64_t>(),
               static_cast<double>(cache["bytes"].get<int64_t>()) / 1048576,
               cache["usable"].get<bool>() ? "" : "; not used, because it is not a private directory of this user");
  }
  for (const auto& [name, value] : r["switches"].items()) fmt::print("switch      {}={}\n", name, text(value));
}

}  // namespace

int doctor(const DoctorOptions& options) {
  const Json r = Json::parse(machine_report(true));
  if (options.json) {
    fmt::print("{}\n", r.dump(2));
  } else {
    show(r);
  }
  return r["compiler"]["works"].get<bool>() ? kOk : kWrong;
}

}  // namespace tilewright::tool
