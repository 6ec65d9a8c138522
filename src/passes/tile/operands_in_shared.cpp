#include "passes/tile/operands_in_shared.h"

#include <algorithm>

#include "analysis/own_schedule.h"
#include "ir/effects.h"
#include "ir/extent.h"
#include "ir/rewrite.h"

namespace tilewright::passes {

using namespace ir;

namespace {

constexpr int kBits = 8;  // of the smallest elements that have a byte each

class Operands {
 public:
  Operands(const ProgramTables& p, const Launch& launch) : p_(p) {
    walk(launch.body, [&](const Stmt& s) {
      if (const auto* gemm = s.as<Gemm>(); gemm && gemm->completion.immediate()) {
        read_.insert(gemm->a.buffer), read_.insert(gemm->b.buffer);
        use(s, {gemm->a.buffer, gemm->b.buffer});
        others_.insert(gemm->c.buffer);
      } else if (const auto* copy = s.as<Copy>(); copy && brings(*copy)) {
        brought_.insert(copy->to.buffer);
        use(s, {copy->to.buffer});
      } else {
        use(s, {});
      }
    });
  }

  bool has(BufferId id) const {
    const Buffer& b = p_.buffer(id);
    return b.space == Space::Fragment && b.rank() == 2 && !b.is_view() && !b.reducer &&
           b.layout.kind == LayoutHint::None && b.type.bits >= kBits && brought_.contains(id) && read_.contains(id) &&
           !others_.contains(id) && std::ranges::none_of(p_.buffers, [&](const Buffer& x) { return x.root == id; });
  }

 private:
  // As a ring may bring it: what converts goes through registers anyway.
  bool brings(const Copy& c) const {
    const Buffer &to = p_.buffer(c.to.buffer), &from = p_.buffer(p_.root(c.from.buffer));
    return from.space == Space::Global && p_.buffer(c.from.buffer).type == to.type && is_whole(c.to, to) &&
           c.combine == ir::Combine::None && !c.im2col.present() && c.completion.immediate();
  }
  // A statement that does something with buffers other than what is known of it here; of loops, their own expressions.
  void use(const Stmt& s, const std::set<BufferId>& known) {
    for (const Effect& e : effects_of(s).list)
      if (e.region.valid() && !known.contains(e.region.buffer)) others_.insert(p_.root(e.region.buffer));
    for_each_region(s, [&](const Region& r) {
      if (r.valid() && !known.contains(r.buffer)) others_.insert(p_.root(r.buffer));
    });
  }

  const ProgramTables& p_;
  std::set<BufferId> brought_, read_, others_;
};

}  // namespace

void operands_in_shared(TileProgram& program, const target::GpuTarget& target) {
  for (const Launch& launch : program.launches) {
    if (!analysis::why_as_written(launch).empty()) continue;
    const Operands operands(program, launch);
    const std::set<BufferId> used = used_roots(launch.body, program);
    int64_t room = target.shared_bytes;
    for (BufferId id : used)
      if (program.buffer(id).space == Space::Shared) room -= bytes_on_chip(program.buffer(id));
    for (BufferId id : used) {
      if (!operands.has(id) || bytes_on_chip(program.buffer(id)) > room) continue;
      room -= bytes_on_chip(program.buffer(id));
      program.buffers[id.index].space = Space::Shared;
    }
  }
}

}  // namespace tilewright::passes
