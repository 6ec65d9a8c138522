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

}  // namespace

bool is_plain_load(const Stmt& s, const ProgramTables& program) {
  if (const auto* n = s.as<Copy>()) {
    const DType type = program.buffer(n->to.buffer).type;
    const int64_t count = constant_int(n->to.extent.back()).value_or(0);
    return n->combine == Combine::None && n->completion.queue == Queue::None && !type.is_packed() &&
           is_width(bytes_of(type, count)) && constant_int(n->from.extent.back()) == count &&
           space_of(n->from.buffer, program) == Space::Global && space_of(n->to.buffer, program) == Space::Local &&
           may_be_anywhere(n->from.min) && may_be_anywhere(n->to.min);
  }
  const auto* n = s.as<Store>();
  const auto* from = n ? n->value.as<Load>() : nullptr;
  if (!from) return false;
  const DType type = program.buffer(n->to.buffer).type;
  return n->value->type == type && program.buffer(from->buffer).type == type && !type.is_packed() &&
         space_of(from->buffer, program) == Space::Global && space_of(n->to.buffer, program) == Space::Local &&
         may_be_anywhere(from->indices) && may_be_anywhere(n->to.indices);
}

bool is_fill(const Body& b, const ProgramTables& program) {
  return std::ranges::all_of(b, [&](const Stmt& s) {
    if (const auto* n = s.as<For>()) return n->kind == LoopKind::Unroll && is_fill(n->body, program);
    const auto* n = s.as<Store>();
    return n && n->value.as<Const>() && space_of(n->to.buffer, program) == Space::Local;
  });
}

bool are_guarded_loads(const If& n, const ProgramTables& program) {
  return !n.then_body.empty() && is_fill(n.else_body, program) && std::ranges::all_of(n.then_body, [&](const Stmt& s) {
    const auto* inner = s.as<If>();
    return inner ? are_guarded_loads(*inner, program) : is_plain_load(s, program);
  });
}

bool may_load_under(const Expr& e, const ProgramTables& program) {
  return analysis::may_run_anywhere(e, [&](const Load& n) {
    return space_of(n.buffer, program) == Space::Global && !program.buffer(n.buffer).type.is_packed();
  });
}

}  // namespace tilewright::codegen
