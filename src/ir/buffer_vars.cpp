#include "ir/buffer_vars.h"

#include "ir/rewrite.h"

namespace tilewright::ir {

namespace {

void add(const Buffer& b, std::set<VarId>& out) {
  for (const auto* list : {&b.shape, &b.strides})
    for (const Expr& e : *list)
      if (e) out.merge(used_vars(e));
  for (const Expr& e : {b.offset, b.cta, b.address, b.fill})
    if (e) out.merge(used_vars(e));
}

}  // namespace

std::set<VarId> vars_of_buffers(const ProgramTables& program) {
  std::set<VarId> out;
  for (const Buffer& b : program.buffers) add(b, out);
  return out;
}

std::set<VarId> vars_of_buffer(const ProgramTables& program, BufferId id) {
  std::set<VarId> out;
  add(program.buffer(id), out);
  add(program.buffer(program.root(id)), out);
  return out;
}

}  // namespace tilewright::ir
