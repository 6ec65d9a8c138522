#include "plan/fit_steps.h"

#include "analysis/half_steps.h"
#include "analysis/own_schedule.h"
#include "ir/extent.h"
#include "plan/decide.h"

namespace tilewright::plan {

using namespace ir;
using analysis::HalfSteps;

namespace {

constexpr int64_t kRow = 128;   // bytes of a row of an operand that one step brings
constexpr int64_t kFewest = 4;  // steps of a loop, so that some are under way
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

int64_t at_once(const ProgramTables& p, const Products& of) {
  if (constant_int(of.loop->begin) != 0) return 1;
  const auto turns = constant_int(of.loop->extent);
  for (int64_t times = std::min(kRow / of.row, kMostAtOnce); times > 1; times /= 2) {
    if (turns && *turns < kFewest * times) continue;
    if ((turns && *turns % times == 0) || analysis::ends_with_tensors(p, *of.loop, of.steps.step)) return times;
  }
  return 1;
}

}  // namespace

Fit fit_steps(const ProgramTables& p, const Launch& launch, const target::GpuTarget& target, const Hints& hints) {
  if (hints.own_threads_and_steps || analysis::has_own_layouts(p, launch)) return {};
  for (size_t i = 0; i < launch.body.size(); ++i) {
    const auto of = products(p, launch, i);
    if (!of) continue;
    const bool is_named = hints.wide_steps_of == p.var(of->steps.loop).name;
    if (hints.fits_are_fixed() && !is_named) return {};
    const int64_t times = of->row > 0 && kRow % of->row == 0 ? at_once(p, *of) : 1;
    Fit fit;
    if (times > 1)
      fit.wide_steps_of = of->steps.loop, fit.at_once = times;
    else if (of->row > kRow && kEnoughSlots * of->bytes > target.shared_bytes && analysis::half_steps(p, launch, i))
      fit.half_steps_of = of->steps.loop;
    return fit;
  }
  return {};
}

}  // namespace tilewright::plan
