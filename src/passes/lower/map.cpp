// Map and Gemm at the loop level.
#include "passes/lower/lowering.h"
#include "support/diagnostic.h"

namespace tilewright::passes {

using namespace ir;

Body lower(const Map& map, Lowering& l) {
  std::vector<Expr> vars;
  for (VarId v : map.vars) vars.push_back(var(v, l.program.var(v).type));
  return lower_box(vars, map.extents, map.body, l);
}

namespace {

// The region, copied to a buffer of its own if it lies in global memory, where part of it may not exist.
Region on_chip(const Region& region, const char* name, Body& before, Lowering& l) {
  if (!l.is_global(region.buffer)) return region;
  std::vector<int64_t> shape;
  Region tile;
  for (const Expr& e : region.extent) {
    const auto extent = constant_int(e);
    check_internal(extent.has_value(), "operand {} of a gemm has an extent that is not constant", name);
    shape.push_back(*extent);
    tile.min.push_back(wide(0)), tile.extent.push_back(e);
  }
  tile.buffer = l.temporary(name, l.type(region.buffer), shape, Space::Shared);
  Copy copy;
  copy.from = region, copy.to = tile;
  const Body code = lower(copy, l);
  before.insert(before.end(), code.begin(), code.end());
  return tile;
}

Region widened(const Region& r) { return {r.buffer, passes::widened(r.min), passes::widened(r.extent)}; }

}  // namespace

Body lower(const Gemm& gemm, Lowering& l) {
  Body out;
  Gemm g = gemm;
  g.a = widened(on_chip(gemm.a, "a_tile", out, l)), g.b = widened(on_chip(gemm.b, "b_tile", out, l));
  g.c = widened(on_chip(gemm.c, "c_tile", out, l));
  // A gemm clears or it does not; which of both is decided here.
  if (g.clear && !constant_int(g.clear)) {
    Fill zero{gemm.c, constant(l.type(gemm.c.buffer), int64_t{0})};
    out.push_back(l.make(If{guard_accesses(g.clear, l), lower(zero, l), {}}));
    g.clear = {};
  }
  if (g.clear && constant_int(g.clear) == 0) g.clear = {};
  out.push_back(l.make(g));
  if (l.is_global(gemm.c.buffer)) {
    Copy back;
    back.from = g.c, back.to = gemm.c;
    const Body code = lower(back, l);
    out.insert(out.end(), code.begin(), code.end());
  }
  return out;
}

}  // namespace tilewright::passes
