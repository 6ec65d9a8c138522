#include "passes/long_steps.h"

#include <algorithm>

#include "analysis/half_steps.h"
#include "ir/extent.h"
#include "ir/operators.h"
#include "ir/rewrite.h"
#include "passes/schedule/other_steps.h"
#include "passes/tile/inline_lets.h"

namespace tilewright::passes {

using namespace ir;

namespace {

// With 512 bytes a product of AMX spends a fifth of its time on loads and stores of sums, with 64 two thirds; rows of
// both operands and sums of a 32 x 32 block stay in a first-level cache of 48 KiB, tiles in half of a second one of 1
// MiB.
constexpr int64_t kRow = 512, kMostBytes = 524288;

// How many steps are one: a power of two, so that it divides what tiles usually have.
int64_t at_once(const TileProgram& p, const For& loop, const analysis::HalfSteps& steps) {
  int64_t row = 0, bytes = 0;
  for (const auto& [id, dim] : steps.cut) {
    const Buffer& b = p.buffer(id);
    row = std::max(row, steps.step * b.type.storage_bits() / 8), bytes += bytes_on_chip(b);
  }
  const auto turns = constant_int(loop.extent);
  int64_t times = 1;
  while (2 * times * row <= kRow && 2 * times * bytes <= kMostBytes && (!turns || 2 * times <= *turns)) times *= 2;
  return times;
}

// The launch with the loop at this place in longer steps.
std::optional<Launch> with_long_steps(TileProgram& p, const Launch& launch, size_t at) {
  const auto* given = launch.body[at].as<For>();
  if (!given || (given->kind != LoopKind::Serial && given->kind != LoopKind::Pipelined)) return std::nullopt;
  if (constant_int(given->begin) != 0) return std::nullopt;
  For loop = *given;
  loop.kind = LoopKind::Pipelined, loop.stages = std::max<int64_t>(1, loop.stages);
  const LocationId place = launch.body[at]->location;
  Launch out = launch;
  out.body[at] = make_stmt(loop, place);
  const auto steps = analysis::product_steps(p, out, at);
  if (!steps) return std::nullopt;
  const int64_t times = at_once(p, loop, *steps);
  if (times == 1) return std::nullopt;

  const DType type = p.var(loop.var).type;
  const Expr several = constant(loop.extent->type, times);
  For whole = loop;
  whole.extent = mul(binary(BinaryOp::FloorDiv, loop.extent, several), several);
  out.body[at] = make_stmt(whole, place);
  plan::Fit fit;
  fit.wide_steps_of = loop.var, fit.at_once = times;
  out = fitted(p, out, fit);
  if (constant_int(loop.extent).value_or(1) % times == 0) return out;
  For rest = *given;
  rest.var = p.new_var(p.var(loop.var).name, type);
  rest.begin = cast(whole.extent, loop.begin->type), rest.extent = sub(loop.extent, whole.extent);
  rest.body = rewrite_exprs(loop.body, [&](const Expr& e) -> std::optional<Expr> {
    const auto* v = e.as<Var>();
    return v && v->id == loop.var ? std::optional(var(rest.var, type)) : std::nullopt;
  });
  out.body.insert(out.body.begin() + static_cast<std::ptrdiff_t>(at) + 1, make_stmt(std::move(rest), place));
  return out;
}

bool has_names(const Launch& launch) {
  return std::ranges::any_of(launch.body, [](const Stmt& s) {
    const auto* loop = s.as<For>();
    return loop && std::ranges::any_of(loop->body, [](const Stmt& x) { return x.as<Let>() != nullptr; });
  });
}

bool lengthen(TileProgram& p, Launch& launch) {
  bool longer = false;
  for (size_t k = 0; k < launch.body.size(); ++k)
    if (auto other = with_long_steps(p, launch, k)) launch = std::move(*other), longer = true;
  return longer;
}

}  // namespace

TileProgram long_steps(TileProgram program) {
  for (size_t i = 0; i < program.launches.size(); ++i) {
    Launch launch = program.launches[i];
    bool longer = lengthen(program, launch);
    if (!longer && has_names(launch)) {  // of places, in which the step is not seen
      launch = inline_lets(program).launches[i];
      longer = lengthen(program, launch);
    }
    if (longer) program.launches[i] = std::move(launch);
  }
  return program;
}

}  // namespace tilewright::passes
