#include "passes/own_fragments.h"

#include "analysis/uniformity.h"
#include "ir/effects.h"
#include "ir/number_statements.h"
#include "ir/rewrite.h"

namespace tilewright::passes {

using namespace ir;

namespace {

// What a launch does with its fragments.
class Uses {
 public:
  Uses(const TileProgram& p, const Launch& launch) : p_(p), threads_(p, launch) {
    walk(launch.body, [&](const Stmt& s) { add(s); });
  }
  std::vector<BufferId> own(const Launch& launch) const {
    std::vector<BufferId> out;
    const auto index = static_cast<int32_t>(&launch - p_.launches.data());
    for (const auto& [id, use] : uses_) {
      const Buffer& b = p_.buffer(id);
      const bool is_plain = b.space == Space::Fragment && b.launch == index && !b.is_view() && !b.reducer &&
                            b.layout.kind == LayoutHint::None;
      const bool all_come = use.stored && (!use.loaded || use.stored->contains(*use.loaded));
      if (is_plain && !use.shared && use.apart && all_come) out.push_back(id);
    }
    return out;
  }

 private:
  struct Use {
    bool shared = false;  // more than elements are used, or other elements by other threads
    bool apart = false;   // threads store values of their own
    std::optional<analysis::ThreadSet> stored, loaded;
  };

  void add(const Stmt& s) {
    for_each_expr(s, [&](const Expr& whole) {
      walk(whole, [&](const Expr& e) {
        if (const auto* n = e.as<Load>()) load(n->buffer, n->indices, s);
      });
    });
    if (const auto* n = s.as<Store>(); n && n->queue == Queue::None)
      return store(n->to.buffer, at_one_place(n->to.indices, s), n->value, s);
    if (const auto* n = s.as<Fill>())
      return store(n->to.buffer, at_one_place(n->to.min, s) && at_one_place(n->to.extent, s), n->value, s);
    for_each_region(s, [&](const Region& r) {
      if (r.valid()) of(r.buffer).shared = true;
    });
    for (const Effect& e : own_effects_of(s).list)
      if (e.region.valid()) of(e.region.buffer).shared = true;
  }
  void store(BufferId id, bool at_one, const Expr& value, const Stmt& s) {
    Use& use = of(id);
    const analysis::ThreadSet& set = threads_.executing_set(s);
    use.shared = use.shared || !at_one || !threads_.is_uniform_control(s) || (use.stored && !(*use.stored == set));
    use.apart = use.apart || !threads_.is_uniform(value, s);
    use.stored = set;
  }
  void load(BufferId id, const std::vector<Expr>& indices, const Stmt& s) {
    Use& use = of(id);
    use.shared = use.shared || !at_one_place(indices, s);
    const analysis::ThreadSet& set = threads_.executing_set(s);
    // Those of several roles are the ones that hold them all.
    if (!use.loaded || set.contains(*use.loaded))
      use.loaded = set;
    else if (!use.loaded->contains(set))
      use.shared = true;
  }
  bool at_one_place(const std::vector<Expr>& indices, const Stmt& s) const {
    return !threads_.in_map(s) &&
           std::ranges::all_of(indices, [&](const Expr& e) { return threads_.is_uniform(e, s); });
  }
  Use& of(BufferId id) {
    if (p_.buffer(id).is_view()) uses_[p_.root(id)].shared = true;
    return uses_[id];
  }

  const TileProgram& p_;
  const analysis::Uniformity threads_;
  std::map<BufferId, Use> uses_;
};

// Whether thread code gives a fragment values that may differ: without, there is nothing to ask.
bool may_be_apart(const Body& body, const TileProgram& p) {
  return std::ranges::any_of(body, [&](const Stmt& s) {
    if (s.as<Map>()) return false;
    const auto* store = s.as<Store>();
    const auto* fill = s.as<Fill>();
    if (store || fill)
      return p.buffer(store ? store->to.buffer : fill->to.buffer).space == Space::Fragment &&
             !(store ? store->value : fill->value).as<Const>();
    bool inside = false;
    for_each_body(s, [&](const Body& b) { inside = inside || may_be_apart(b, p); });
    return inside;
  });
}

}  // namespace

void give_threads_own_fragments(TileProgram& program, Launch& launch) {
  // What is computed from a thread's own is its own too.
  while (may_be_apart(launch.body, program)) {
    number_statements(launch);
    const std::vector<BufferId> own = Uses(program, launch).own(launch);
    if (own.empty()) return;
    for (BufferId id : own) program.buffers[id.index].space = Space::Local;
  }
}

}  // namespace tilewright::passes
