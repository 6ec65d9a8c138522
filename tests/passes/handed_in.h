// Products under plans that are handed in: their operands, what becomes of them, and why they are refused.
#pragma once
#include "passes/lower_to_threads.h"
#include "passes/planned.h"
#include "simulator/lowered_programs.h"
#include "tilewright/compile.h"

namespace tilewright {

inline std::vector<NDArray> arguments_of(const simulator::Product& p) {
  const auto program = ir::parse(p.text(), "p.tile");
  std::vector<NDArray> out;
  for (size_t i = 0; i < 2; ++i) {
    const ir::Buffer& b = program.buffer(program.params[i].buffer);
    out.push_back(
        numbers({*ir::constant_int(b.shape[0]), *ir::constant_int(b.shape[1])}, b.type, static_cast<int>(i) + 1));
  }
  return out;
}

inline passes::ThreadLowering lowered(const std::string& text) {
  return passes::lower_to_threads(passes::canonicalize(ir::parse(text, "p.tile")), target::GpuTarget::of(90));
}

// The lines of the first launch's plan, as they are handed in.
inline std::string lines_to_hand_in(const passes::ThreadLowering& l) {
  std::string lines;
  for (const std::string& line : plan::lines_of(l.plans[0], l.tiles))
    lines += fmt::format("{}\"{}\"", lines.empty() ? "" : ", ", line);
  return lines;
}

// What is said, with the notes; "" if nothing.
inline std::string refusal(const std::string& text) {
  try {
    lowered(text);
  } catch (const CompileError& e) {
    std::string out = e.diagnostic().message;
    for (const auto& note : e.diagnostic().notes) out += "\n" + note.message;
    return out;
  }
  return "";
}

inline std::string replaced(std::string text, const std::string& from, const std::string& to) {
  const size_t at = text.find(from);
  return at == std::string::npos ? "no '" + from + "' in the text" : text.replace(at, from.size(), to);
}

}  // namespace tilewright
