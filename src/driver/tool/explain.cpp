// tilewright explain
#include "driver/explain.h"

#include <charconv>
#include <nlohmann/json.hpp>

#include "driver/tool/commands.h"
#include "ir/parse.h"

namespace tilewright::tool {
namespace {

using Json = nlohmann::ordered_json;
using Count = std::optional<int64_t>;

Json count_json(Count n) { return n ? Json(*n) : Json(nullptr); }

Json operation_json(const OperationFacts& op) {
  Json out = {{"operation", op.operation},        {"text", op.text},
              {"line", op.location.line},         {"executions", count_json(op.executions)},
              {"conditional", op.conditional},    {"flops", count_json(op.flops)},
              {"bytes", count_json(op.bytes)},    {"innermost_loops", op.loops},
              {"vectorized_loops", op.vectorized}};
  if (!op.becomes.empty()) out["becomes"] = op.becomes;
  if (!op.warnings.empty()) out["warnings"] = op.warnings;
  return out;
}

Json launch_json(const LaunchFacts& launch) {
  Json out = {{"name", launch.name},
              {"grid", launch.grid},
              {"blocks", count_json(launch.blocks)},
              {"threads", launch.threads},
              {"bytes_on_chip", launch.bytes_on_chip},
              {"buffers", Json::array()},
              {"operations", Json::array()}};
  for (const OnChipBuffer& b : launch.buffers)
    out["buffers"].push_back({{"name", b.name},
                              {"space", b.space},
                              {"dtype", b.dtype},
                              {"shape", b.shape},
                              {"bytes", b.bytes},
                              {"view", b.is_view}});
  for (const OperationFacts& op : launch.operations) out["operations"].push_back(operation_json(op));
  return out;
}

Json to_json(const Explanation& e) {
  Json out = {{"program", e.program},
              {"engine", "cpu"},
              {"processor", e.processor},
              {"flops", count_json(e.flops)},
              {"moved_bytes", count_json(e.moved_bytes)},
              {"tensor_bytes", count_json(e.tensor_bytes)},
              {"launches", Json::array()},
              {"warnings", Json::array()}};
  for (const LaunchFacts& launch : e.launches) out["launches"].push_back(launch_json(launch));
  for (const Diagnostic& d : e.warnings) out["warnings"].push_back(Json::parse(d.to_json()));
  if (e.refused) out["refused"] = Json::parse(e.refused->to_json());
  return out;
}

std::string text_of(Count n) { return n ? fmt::format("{}", *n) : "unknown"; }

void show(const OperationFacts& op) {
  fmt::print("  {:>4}  {}\n", op.location.line, op.text.empty() ? op.operation : op.text);
  std::string facts = fmt::format("{}{} times", op.conditional ? "at most " : "", text_of(op.executions));
  if (op.flops != 0) facts += fmt::format(", {} flops each", text_of(op.flops));
  if (op.bytes != 0) facts += fmt::format(", {} bytes each", text_of(op.bytes));
  if (op.loops > 0) facts += fmt::format("; innermost loops {}, vectorized {}", op.loops, op.vectorized);
  fmt::print("        {}\n", facts);
  for (const std::string& fact : op.becomes) fmt::print("        {}\n", fact);
  for (const std::string& warning : op.warnings) fmt::print("        warning: {}\n", warning);
}

void show(const Explanation& e) {
  fmt::print("{} on the cpu engine ({})\n", e.program, e.processor);
  for (const LaunchFacts& launch : e.launches) {
    fmt::print("launch {}: grid {} = {} blocks, threads {}\n", launch.name, fmt::join(launch.grid, " x "),
               text_of(launch.blocks), fmt::join(launch.threads, " x "));
    fmt::print("  {} bytes on chip\n", launch.bytes_on_chip);
    for (const OnChipBuffer& b : launch.buffers)
      fmt::print("    {:<9}{}: {}[{}]  {} bytes{}\n", b.space, b.name, b.dtype, fmt::join(b.shape, ", "), b.bytes,
                 b.is_view ? " (a view)" : "");
    for (const OperationFacts& op : launch.operations) show(op);
  }
  fmt::print("one call: {} flops, {} bytes moved, {} bytes of tensors\n", text_of(e.flops), text_of(e.moved_bytes),
             text_of(e.tensor_bytes));
  if (e.flops && e.moved_bytes && e.tensor_bytes && *e.moved_bytes > 0 && *e.tensor_bytes > 0) {
    const auto flops = static_cast<double>(*e.flops);
    fmt::print("          {:.3g} flops a byte moved, {:.3g} a byte of tensors\n",
               flops / static_cast<double>(*e.moved_bytes), flops / static_cast<double>(*e.tensor_bytes));
  }
  for (const Diagnostic& d : e.warnings) fmt::print("{}\n", d.to_string());
  if (e.refused) fmt::print("the cpu engine refuses it:\n{}\n", e.refused->to_string());
}

}  // namespace

int explain(const ExplainArguments& arguments) {
  NamedValues values;
  for (const std::string& text : arguments.set) {
    const size_t at = text.find('=');
    int64_t value = 0;
    const char* end = text.data() + text.size();
    if (at == std::string::npos || std::from_chars(text.data() + at + 1, end, value).ptr != end)
      throw UsageError(fmt::format("--set takes name=number, not '{}'", text));
    values[text.substr(0, at)] = value;
  }
  const ir::TileProgram program = ir::parse(read_file(arguments.file), arguments.file);
  const Explanation e = tilewright::explain(program, values, runtime::processor_features());
  if (arguments.json) {
    fmt::print("{}\n", to_json(e).dump(2));
  } else {
    show(e);
  }
  return kOk;
}

}  // namespace tilewright::tool
