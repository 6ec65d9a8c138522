#include "passes/name_tensors.h"

#include "ir/buffer_vars.h"
#include "ir/operators.h"
#include "ir/rewrite.h"

namespace tilewright::passes {

using namespace ir;

namespace {

bool meet(const std::set<VarId>& a, const std::set<VarId>& b) {
  return std::ranges::any_of(a, [&](VarId v) { return b.contains(v); });
}

class Names {
 public:
  Names(TileProgram& p, Launch& launch) : p_(p), launch_(launch) {
    walk(launch.body, [&](const Stmt& s) {
      if (const auto* n = s.as<For>()) turns_.insert(n->var);
      if (const auto* n = s.as<Map>()) turns_.insert(n->vars.begin(), n->vars.end());
    });
  }
  void run() {
    for (BufferId id : buffers_needed(launch_.body, p_)) {
      Buffer b = p_.buffer(id);
      names_.clear(), used_.clear();
      for (auto* list : {&b.shape, &b.strides})
        for (Expr& e : *list) name(e, b);
      name(b.offset, b), name(b.address, b);
      if (names_.empty()) continue;
      Body body = launch_.body;
      if (place(body, id)) launch_.body = std::move(body), p_.buffers[id.index] = std::move(b);
    }
  }

 private:
  void name(Expr& e, const Buffer& b) {
    if (!e || !meet(used_vars(e), turns_)) return;
    used_.merge(used_vars(e));
    const VarId v = p_.new_var(b.name, e->type);
    names_.push_back(make_stmt(Let{v, e}, b.location));
    e = var(v, e->type);
  }
  bool needs(const Body& body, BufferId id) const { return buffers_needed(body, p_).contains(id); }
  // Where all is known that they are made of. False: that is in several places.
  bool place(Body& body, BufferId id) const {
    const auto first = std::ranges::find_if(body, [&](const Stmt& s) { return needs({s}, id); });
    if (first == body.end()) return false;
    if (!meet(used_, bound_vars({*first}))) {
      body.insert(first, names_.begin(), names_.end());
      return true;
    }
    int bodies = 0;
    bool placed = false;
    *first = with_bodies(*first, [&](const Body& inner) {
      Body out = inner;
      if (needs(inner, id)) ++bodies, placed = place(out, id);
      return out;
    });
    return placed && bodies == 1;
  }

  TileProgram& p_;
  Launch& launch_;
  std::set<VarId> turns_;  // of loops and maps
  Body names_;             // of one buffer
  std::set<VarId> used_;   // by these
};

}  // namespace

void name_tensors_of_turns(TileProgram& program, Launch& launch) { Names(program, launch).run(); }

}  // namespace tilewright::passes
