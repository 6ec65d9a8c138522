#include "codegen/guarded_loads.h"

#include "analysis/anywhere.h"
#include "ir/rewrite.h"

namespace tilewright::codegen {

using namespace ir;

namespace {

Space space_of(BufferId id, const ProgramTables& program) { return program.buffer(program.root(id)).space; }

bool may_be_anywhere(const std::vector<Expr>& index) {
  return std::ranges::all_of(
      index, [](const Expr& e) { return analysis::may_run_anywhere(e, [](const Load&) { return false; }); });
}

bool is_width(int64_t bytes) { return bytes == 1 || bytes == 2 || bytes == 4 || bytes == 8 || bytes == 16; }

// Constants for registers, and nothing else.
bool is_fill(const Body& b, const ProgramTables& program) {
  return std::ranges::all_of(b, [&](const Stmt& s) {
    if (const auto* n = s.as<For>()) return n->kind == LoopKind::Unroll && is_fill(n->body, program);
    const auto* n = s.as<Store>();
    return n && n->value.as<Const>() && space_of(n->to.buffer, program) == Space::Local;
  });
}

}  // namespace

std::optional<PlainLoad> plain_load(const Stmt& s, const ProgramTables& program) {
  PlainLoad out;
  int64_t count = 1;
  if (const auto* n = s.as<Copy>()) {
    count = constant_int(n->to.extent.back()).value_or(0);
    if (n->combine != Combine::None || n->completion.queue != Queue::None) return std::nullopt;
    if (constant_int(n->from.extent.back()) != count) return std::nullopt;
    out.from = {n->from.buffer, n->from.min}, out.to = {n->to.buffer, n->to.min};
  } else {
    const auto* store = s.as<Store>();
    const auto* from = store ? store->value.as<Load>() : nullptr;
    if (!from || store->value->type != program.buffer(store->to.buffer).type) return std::nullopt;
    if (program.buffer(from->buffer).type != store->value->type) return std::nullopt;
    out.from = {from->buffer, from->indices}, out.to = store->to;
  }
  const DType type = program.buffer(out.to.buffer).type;
  out.bytes = bytes_of(type, count);
  const bool is = !type.is_packed() && is_width(out.bytes) && space_of(out.from.buffer, program) == Space::Global &&
                  space_of(out.to.buffer, program) == Space::Local && may_be_anywhere(out.from.indices) &&
                  may_be_anywhere(out.to.indices);
  return is ? std::optional(std::move(out)) : std::nullopt;
}

bool are_guarded_loads(const If& n, const ProgramTables& program) {
  return !n.then_body.empty() && is_fill(n.else_body, program) && std::ranges::all_of(n.then_body, [&](const Stmt& s) {
    const auto* inner = s.as<If>();
    return inner ? are_guarded_loads(*inner, program) : plain_load(s, program).has_value();
  });
}

bool may_load_under(const Expr& e, const ProgramTables& program) {
  return analysis::may_run_anywhere(e, [&](const Load& n) {
    return space_of(n.buffer, program) == Space::Global && !program.buffer(n.buffer).type.is_packed();
  });
}

}  // namespace tilewright::codegen
