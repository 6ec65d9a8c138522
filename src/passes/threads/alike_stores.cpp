#include "passes/threads/alike_stores.h"

#include "analysis/body_order.h"
#include "ir/effects.h"
#include "ir/rewrite.h"
#include "layout/fragment.h"

namespace tilewright::passes {

using namespace ir;

namespace {

class AlikeStores {
 public:
  AlikeStores(const ProgramTables& p, const Launch& launch, const analysis::Uniformity& u) : p_(p), u_(u) {
    walk(launch.body, [&](const Stmt& s) {
      for (const Effect& e : effects_of(s).list) {
        if (!e.region.valid()) continue;
        const BufferId root = p_.root(e.region.buffer);
        ++touches_[root];
        if (e.access != Access::Read) written_.insert(root);
      }
    });
  }

  void collect(const Body& body, bool in_loop) {
    for (const Stmt& s : body) {
      if (is_alike(s, in_loop)) found.insert(s->id);
      for_each_body(s, [&](const Body& inner) { collect(inner, in_loop || s.as<For>() || s.as<While>()); });
    }
  }

  std::set<StmtId> found;

 private:
  bool is_alike(const Stmt& s, bool in_loop) const {
    const auto* store = s.as<Store>();
    if (!store || store->queue != Queue::None || !u_.happens_once(s) || (in_loop && !store->value.as<Const>()))
      return false;
    const BufferId root = p_.root(store->to.buffer);
    const Space space = p_.buffer(root).space;
    if ((space != Space::Global && space != Space::Shared) || touches_of(root) != 1) return false;
    bool stays = true;  // what it reads is the same for every lane, whenever it comes to it
    const auto reads = [&](const Expr& x) {
      const auto* load = x.as<Load>();
      stays = stays && !x.as<Intrinsic>() &&
              (!load || p_.buffer(p_.root(load->buffer)).space == Space::Local ||
               !analysis::may_overlap(load->buffer, written_, p_));
    };
    walk(store->value, reads);
    for (const Expr& index : store->to.indices) walk(index, reads);
    return stays;
  }

  // Of what may lie at the same place.
  int touches_of(BufferId id) const {
    int count = 0;
    for (const auto& [root, touches] : touches_)
      if (analysis::may_overlap(root, id, p_)) count += touches;
    return count;
  }

  const ProgramTables& p_;
  const analysis::Uniformity& u_;
  std::map<BufferId, int> touches_;
  std::set<BufferId> written_;
};

}  // namespace

std::set<StmtId> alike_stores(const ProgramTables& program, const Launch& launch,
                              const analysis::Uniformity& uniformity) {
  if (launch.thread_count() > kWarpThreads) return {};
  AlikeStores stores(program, launch, uniformity);
  stores.collect(launch.body, false);
  return std::move(stores.found);
}

}  // namespace tilewright::passes
