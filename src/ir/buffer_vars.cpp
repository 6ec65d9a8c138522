#include "ir/buffer_vars.h"

#include <algorithm>

#include "ir/rewrite.h"
#include "support/function_ref.h"

namespace tilewright::ir {

namespace {

void for_each_part(const Buffer& b, function_ref<void(const Expr&)> f) {
  for (const auto* list : {&b.shape, &b.strides})
    for (const Expr& e : *list)
      if (e) f(e);
  for (const Expr& e : {b.offset, b.cta, b.address, b.fill})
    if (e) f(e);
}

void add(const Buffer& b, std::set<VarId>& out) {
  for_each_part(b, [&](const Expr& e) { out.merge(used_vars(e)); });
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

bool stands_by(const ProgramTables& program, BufferId id, const std::set<VarId>& names) {
  return !names.empty() && std::ranges::any_of(vars_of_buffer(program, id), [&](VarId v) { return names.contains(v); });
}

bool binds_buffers(const ProgramTables& program, const Stmt& s) {
  const std::set<VarId> bound = bound_vars({s});
  return std::ranges::any_of(used_buffers({s}), [&](BufferId id) { return stands_by(program, id, bound); });
}

std::set<BufferId> buffers_needed(const Body& body, const ProgramTables& program) {
  std::set<BufferId> out;
  std::vector<BufferId> open;
  const auto need = [&](BufferId id) {
    if (out.insert(id).second) open.push_back(id);
  };
  for (BufferId id : used_buffers(body)) need(id);
  while (!open.empty()) {
    const BufferId id = open.back();
    open.pop_back();
    need(program.root(id));
    for_each_part(program.buffer(id), [&](const Expr& part) {
      walk(part, [&](const Expr& e) {
        if (const auto* load = e.as<Load>()) need(load->buffer);
        if (const auto* address = e.as<Address>()) need(address->buffer);
      });
    });
  }
  return out;
}

}  // namespace tilewright::ir
