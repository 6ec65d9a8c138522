#include "analysis/block_reads.h"

#include "ir/operators.h"
#include "ir/rewrite.h"

namespace tilewright::analysis {

using namespace ir;

namespace {

class Places {
 public:
  explicit Places(const Launch& launch) {
    for (size_t d = 0; d < launch.grid.size(); ++d)
      if (constant_int(launch.grid[d]) != 1) all_.insert(launch.block[d]), told_[launch.block[d]] = {launch.block[d]};
  }
  void see(const Stmt& s) {
    if (const auto* n = s.as<Let>()) told_[n->var] = told_by(n->value);
    if (const auto* n = s.as<For>()) told_[n->var] = told_by(n->begin);
  }
  bool tell_the_block(const std::vector<Expr>& index) const {
    std::set<VarId> told;
    for (const Expr& e : index) told.merge(told_by(e));
    return told == all_;
  }

 private:
  // The dimensions of the grid that the value tells apart: not those that are divided, for some of them give the same.
  std::set<VarId> told_by(const Expr& e) const {
    if (const auto* n = e.as<Var>()) {
      const auto found = told_.find(n->id);
      return found == told_.end() ? std::set<VarId>{} : found->second;
    }
    std::set<VarId> out;
    if (const auto* n = e.as<Sum>()) {
      for (const Term& t : n->terms) out.merge(told_by(t.value));
    } else if (const auto* n = e.as<Cast>()) {
      out = told_by(n->value);
    } else if (const auto* n = e.as<Load>()) {
      for (const Expr& i : n->indices) out.merge(told_by(i));
    } else if (const auto* n = e.as<Binary>(); n && n->op == BinaryOp::Mul) {
      out = told_by(n->a), out.merge(told_by(n->b));
    }
    return out;
  }

  std::set<VarId> all_;
  std::map<VarId, std::set<VarId>> told_;
};

}  // namespace

std::set<BufferId> read_by_single_blocks(const TileProgram& program) {
  std::set<BufferId> copied, by_several;
  for (const Launch& launch : program.launches) {
    Places places(launch);
    walk(launch.body, [&](const Stmt& s) {
      places.see(s);
      const auto* n = s.as<Copy>();
      if (!n || program.buffer(program.root(n->from.buffer)).space != Space::Global) return;
      const BufferId tensor = program.root(n->from.buffer);
      copied.insert(tensor);
      if (!places.tell_the_block(n->from.min)) by_several.insert(tensor);
    });
  }
  for (BufferId id : by_several) copied.erase(id);
  return copied;
}

}  // namespace tilewright::analysis
