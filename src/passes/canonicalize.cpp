#include "passes/canonicalize.h"

#include "ir/effects.h"
#include "ir/operators.h"
#include "ir/rewrite.h"

namespace tilewright::passes {
namespace {

using ir::Binary;
using ir::BinaryOp;
using ir::Body;
using ir::Expr;
using ir::Stmt;

// ---- fma

bool contracts(DType type) { return type.is_float() && !type.is_float8() && !type.is_packed(); }

const Binary* product(const Expr& e) {
  const auto* b = e.as<Binary>();
  return b && b->op == BinaryOp::Mul ? b : nullptr;
}

std::optional<Expr> form_fma(const Expr& e) {
  const auto* b = e.as<Binary>();
  if (!b || !contracts(e->type)) return std::nullopt;
  if (b->op == BinaryOp::Add) {
    if (const Binary* p = product(b->a)) return ir::fma(p->a, p->b, b->b);
    if (const Binary* p = product(b->b)) return ir::fma(p->a, p->b, b->a);
  }
  if (b->op == BinaryOp::Sub) {
    if (const Binary* p = product(b->a)) return ir::fma(p->a, p->b, ir::neg(b->b));
    if (const Binary* p = product(b->b)) return ir::fma(ir::neg(p->a), p->b, b->a);
  }
  return std::nullopt;
}

// ---- roles

struct ThreadRange {
  int64_t begin, end;
};

// The threads for which a condition holds, if that is one range. `tx` is the thread variable of a block of `threads`.
std::optional<ThreadRange> threads_where(const Expr& condition, ir::VarId tx, int64_t threads) {
  const auto* b = condition.as<Binary>();
  if (!b) return std::nullopt;
  if (b->op == BinaryOp::And) {
    const auto x = threads_where(b->a, tx, threads), y = threads_where(b->b, tx, threads);
    if (!x || !y) return std::nullopt;
    return ThreadRange{std::max(x->begin, y->begin), std::min(x->end, y->end)};
  }
  // tx, or tx // size
  auto group_of = [&](const Expr& e) -> std::optional<int64_t> {
    if (const auto* v = e.as<ir::Var>()) return v->id == tx ? std::optional<int64_t>(1) : std::nullopt;
    const auto* d = e.as<Binary>();
    if (!d || d->op != BinaryOp::FloorDiv) return std::nullopt;
    const auto* v = d->a.as<ir::Var>();
    const auto size = ir::constant_int(d->b);
    return v && v->id == tx && size && *size > 0 ? size : std::nullopt;
  };
  auto clipped = [&](int64_t begin, int64_t end) {
    return ThreadRange{std::max<int64_t>(begin, 0), std::min(end, threads)};
  };
  const auto left = group_of(b->a), right = group_of(b->b);
  if (const auto c = ir::constant_int(b->b); left && c && std::abs(*c) <= threads) {
    if (b->op == BinaryOp::Lt) return clipped(0, *c * *left);
    if (b->op == BinaryOp::Le) return clipped(0, (*c + 1) * *left);
    if (b->op == BinaryOp::Eq) return clipped(*c * *left, (*c + 1) * *left);
  }
  if (const auto c = ir::constant_int(b->a); right && c && std::abs(*c) <= threads) {
    if (b->op == BinaryOp::Lt) return clipped((*c + 1) * *right, threads);
    if (b->op == BinaryOp::Le) return clipped(*c * *right, threads);
    if (b->op == BinaryOp::Eq) return clipped(*c * *right, (*c + 1) * *right);
  }
  return std::nullopt;
}

bool holds_collectives(const Body& body) {
  bool found = false;
  ir::walk(body, [&](const Stmt& s) {
    const bool orders = s.as<ir::Arrive>() || s.as<ir::Expect>() || s.as<ir::Wait>();
    found = found || orders || ir::effects_of(s).scope == ir::Scope::Collective;
  });
  return found;
}

std::optional<Body> as_roles(const Stmt& s, const ir::Launch& launch) {
  const auto* branch = s.as<ir::If>();
  const int64_t threads = launch.thread_count();
  if (!branch || launch.threads[0] != threads)
    return std::nullopt;  // only blocks along x: a range of tx is a range of threads
  if (!holds_collectives(branch->then_body) && !holds_collectives(branch->else_body)) return std::nullopt;
  const auto range = threads_where(branch->condition, launch.thread[0], threads);
  auto aligned = [&](int64_t t) { return t % 32 == 0 || t == threads; };
  if (!range || range->begin >= range->end || !aligned(range->begin) || !aligned(range->end)) return std::nullopt;
  Body out;
  if (!branch->then_body.empty())
    out.push_back(ir::make_stmt(ir::Role{range->begin, range->end, branch->then_body}, s->location));
  if (branch->else_body.empty()) return out;
  // The other threads are one range too, or their side stays a branch.
  if (range->begin == 0 && range->end < threads) {
    out.push_back(ir::make_stmt(ir::Role{range->end, threads, branch->else_body}, s->location));
  } else if (range->begin > 0 && range->end == threads) {
    out.push_back(ir::make_stmt(ir::Role{0, range->begin, branch->else_body}, s->location));
  } else {
    out.push_back(ir::make_stmt(ir::If{ir::logical_not(branch->condition), branch->else_body, {}}, s->location));
  }
  return out;
}

// ---- maps and constant conditions

std::optional<Body> merged_maps(const Stmt& s) {
  const auto* outer = s.as<ir::Map>();
  const auto* inner = outer && outer->body.size() == 1 ? outer->body[0].as<ir::Map>() : nullptr;
  if (!inner) return std::nullopt;
  for (const Expr& e : inner->extents)
    for (ir::VarId id : ir::used_vars(e))
      if (std::find(outer->vars.begin(), outer->vars.end(), id) != outer->vars.end()) return std::nullopt;
  ir::Map merged = *outer;
  merged.vars.insert(merged.vars.end(), inner->vars.begin(), inner->vars.end());
  merged.extents.insert(merged.extents.end(), inner->extents.begin(), inner->extents.end());
  merged.body = inner->body;
  return Body{ir::make_stmt(std::move(merged), s->location)};
}

std::optional<Body> decided(const Stmt& s) {
  const auto* branch = s.as<ir::If>();
  const auto value = branch ? ir::constant_int(branch->condition) : std::nullopt;
  if (!value) return std::nullopt;
  return *value ? branch->then_body : branch->else_body;
}

}  // namespace

ir::TileProgram canonicalize(ir::TileProgram program) {
  for (ir::Launch& launch : program.launches) {
    if (program.options.contract)
      launch.body = ir::rewrite_exprs(launch.body, [](const Expr& e) { return form_fma(e); });
    launch.body = ir::rewrite(launch.body, [&](const Stmt& s) -> std::optional<Body> {
      if (auto r = decided(s)) return r;
      if (auto r = merged_maps(s)) return r;
      return as_roles(s, launch);
    });
  }
  return program;
}

}  // namespace tilewright::passes
