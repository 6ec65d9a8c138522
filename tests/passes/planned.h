// Programs under a plan of rings and roles, beside the plain ones.
#pragma once
#include <gtest/gtest.h>

#include "interpreter/run.h"
#include "ir/parse.h"
#include "ir/verify.h"
#include "passes/canonicalize.h"
#include "passes/schedule/apply_plan.h"
#include "passes/schedule/decide_plan.h"
#include "passes/tile/guard_returns.h"
#include "passes/tile/split_masks.h"

namespace tilewright {

// On a GPU of two multiprocessors, so that small grids take several waves.
inline target::GpuTarget small_gpu() {
  target::GpuTarget t = target::GpuTarget::of(90);
  t.multiprocessors = 2;
  return t;
}

struct Planned {
  ir::TileProgram plain, program;
  plan::Plan plan;
};

inline void decide_and_apply(Planned& p, plan::Limits limits = {}) {
  for (size_t i = 0; i < p.program.launches.size(); ++i) {
    plan::Plan plan = passes::decide_plan(p.program, i, small_gpu(), limits);
    passes::apply_plan(plan, p.program, i);
    if (i == 0) p.plan = std::move(plan);
  }
  ir::check_valid(p.program, "apply_plan");
}

// The tiles of the plan's rings, by name.
inline std::vector<std::vector<std::string>> ring_tiles(const Planned& p) {
  std::vector<std::vector<std::string>> out;
  for (const plan::Ring& r : p.plan.rings) out.push_back(names_of(r, p.program));
  return out;
}

inline Planned planned(const std::string& text, plan::Limits limits = {}) {
  Planned out;
  out.plain = passes::canonicalize(ir::parse(text, "p.tile"));
  out.program = passes::guard_returns(out.plain);
  passes::split_masks(out.program, small_gpu());
  decide_and_apply(out, limits);
  return out;
}

inline NDArray numbers(std::vector<int64_t> shape, DType type, int seed) {
  NDArray a = NDArray::zeros(shape, type);
  uint64_t state = static_cast<uint64_t>(seed) * 7919 + 1;
  std::vector<double> values;
  int64_t count = 1;
  for (int64_t extent : shape) count *= extent;
  for (int64_t i = 0; i < count; ++i) {
    state = state * 6364136223846793005ull + 1442695040888963407ull;
    values.push_back(static_cast<double>(static_cast<int64_t>(state >> 59)) - 16);  // whole: sums are exact
  }
  a.assign_floats(values);
  return a;
}

inline void expect_same_meaning(const Planned& p, std::vector<NDArray> arguments, std::vector<int64_t> shape,
                                DType type, const std::map<std::string, int64_t>& symbols = {}) {
  arguments.push_back({});
  auto run = [&](const ir::TileProgram& program) {
    arguments.back() = numbers(shape, type, 99);
    const Program boxed(std::make_shared<ir::TileProgramBox>(ir::TileProgramBox{program}));
    interpreter::run(boxed, arguments, {.ints = symbols});
    return arguments.back().to_floats();
  };
  EXPECT_EQ(run(p.program), run(p.plain));
}

}  // namespace tilewright
