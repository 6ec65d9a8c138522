#include "plan/fit_steps.h"

#include "analysis/half_steps.h"
#include "analysis/slope.h"
#include "ir/extent.h"
#include "ir/operators.h"
#include "ir/rewrite.h"

namespace tilewright::plan {

using namespace ir;
using analysis::HalfSteps;

namespace {

constexpr int64_t kRow = 128;   // bytes of a row of an operand that one step brings
constexpr int64_t kFewest = 4;  // steps of a loop, so that some are under way
constexpr int64_t kEnough = 3;  // slots of a ring that lose nothing to more
constexpr int64_t kMostAtOnce = 8;

struct Products {
  const For* loop;
  HalfSteps steps;
  int64_t row = 0, bytes = 0;  // of a step: of a row of the operands, and in all
};

std::optional<Products> products(const ProgramTables& p, const Launch& launch, size_t at) {
  const auto steps = analysis::product_steps(p, launch, at);
  if (!steps) return std::nullopt;
  Products out{launch.body[at].as<For>(), *steps};
  for (const auto& [id, dim] : steps->cut) {
    out.row = std::max(out.row, steps->step * p.buffer(id).type.bits / 8);
    out.bytes += bytes_on_chip(p.buffer(id));
  }
  return out;
}

// Whether the loop takes all of the dimension that its copies walk over, so that there is nothing but zeros behind.
bool ends_with_tensors(const ProgramTables& p, const Products& of) {
  for (const Stmt& s : of.loop->body) {
    const auto* c = s.as<Copy>();
    if (!c) continue;
    const Buffer& tensor = p.buffer(c->from.buffer);
    if (tensor.fill || tensor.is_view()) return false;
    for (size_t d = 0; d < c->from.min.size(); ++d) {
      if (analysis::slope(c->from.min[d], of.loop->var).value_or(0) == 0) continue;
      const auto from = constant_int(substitute(c->from.min[d], {{of.loop->var, of.loop->begin}}));
      const Expr whole = tensor.shape[d], step = constant(whole->type, of.steps.step);
      const Expr turns = binary(BinaryOp::FloorDiv, add(whole, constant(whole->type, of.steps.step - 1)), step);
      const auto taken = constant_int(of.loop->extent), elements = constant_int(whole);
      const bool all = taken && elements ? *taken * of.steps.step >= *elements
                                         : equal(cast(turns, of.loop->extent->type), of.loop->extent);
      if (from != 0 || !all) return false;
    }
  }
  return true;
}

int64_t at_once(const ProgramTables& p, const Products& of) {
  if (constant_int(of.loop->begin) != 0) return 1;
  const auto turns = constant_int(of.loop->extent);
  for (int64_t times = std::min(kRow / of.row, kMostAtOnce); times > 1; times /= 2) {
    if (turns && *turns < kFewest * times) continue;
    if ((turns && *turns % times == 0) || ends_with_tensors(p, of)) return times;
  }
  return 1;
}

}  // namespace

bool has_own_layouts(const ProgramTables& p, const Launch& launch) {
  return std::ranges::any_of(used_buffers(launch.body), [&](BufferId id) {
    return p.buffer(id).space != Space::Global && p.buffer(id).layout.kind != LayoutHint::None;
  });
}

Fit fit_steps(const ProgramTables& p, const Launch& launch, const target::GpuTarget& target, const Hints& hints) {
  if (hints.own_threads_and_steps || has_own_layouts(p, launch)) return {};
  for (size_t i = 0; i < launch.body.size(); ++i) {
    const auto of = products(p, launch, i);
    if (!of) continue;
    const bool is_named = hints.wide_steps_of == p.var(of->steps.loop).name;
    if (hints.fits_are_fixed() && !is_named) return {};
    const int64_t times = of->row > 0 && kRow % of->row == 0 ? at_once(p, *of) : 1;
    Fit fit;
    if (times > 1)
      fit.wide_steps_of = of->steps.loop, fit.at_once = times;
    else if (of->row > kRow && kEnough * of->bytes > target.shared_bytes && analysis::half_steps(p, launch, i))
      fit.half_steps_of = of->steps.loop;
    return fit;
  }
  return {};
}

}  // namespace tilewright::plan
